//! What of the things that settings choose among is built in.

use lkr_settings::Plugins;

/// The plugins by what they read, the default first.
#[must_use]
pub fn plugins() -> Plugins {
    let none = || vec!["none".to_owned()];
    Plugins { pdf: none(), docx: none(), html: none(), ocr: none() }
}
