//! Why a document without any text is refused.

use lkr_parsers::Error;

use super::{DocumentReader, Engine};
use crate::{error, page::Page};

impl DocumentReader<'_> {
    /// The error for a document without text; `None` if it has text, or is blank, or its warnings say what was left out.
    pub(super) fn refusal(&self) -> Option<Error> {
        let pages = self.pages.len();
        if pages == 0 || self.hidden > 0 || self.pages.iter().any(Page::has_words) {
            return None;
        }
        if self.unreadable == pages {
            return Some(error::damaged("none of its pages can be read"));
        }
        let shows_picture = |index| self.engine.has_picture(index).unwrap_or_default();
        let has_lost = self.is_cut_off || self.lost_pages() > 0;
        if has_lost && !self.engine.is_encrypted() && !(0..pages).any(shows_picture) {
            return Some(error::damaged("its pages have no content that can be found"));
        }
        // If the cipher is unsupported, a page may only seem to have no text.
        let is_unknown_picture = !self.engine.is_encrypted();
        let has_picture = |index| self.engine.has_picture(index).unwrap_or(is_unknown_picture);
        let reason =
            self.unread_pictures.as_deref().unwrap_or("OCR found no text of the chosen languages in them");
        (0..pages).any(has_picture).then(|| error::pictures(reason))
    }

    /// Warns of missing parts of the file.
    pub(super) fn warn_of_damage(&mut self) {
        if self.is_cut_off {
            self.warnings
                .push("the end of the file is missing, so some of its text may be missing too".to_owned());
        }
        let lost = self.lost_pages();
        let what = "content that is missing or damaged";
        self.warn_pages(lost, &format!("has {what}"), &format!("have {what}"));
    }

    /// How many pages without words have content that is lost.
    fn lost_pages(&self) -> usize {
        let pages = self.pages.iter().enumerate().filter(|(_, page)| !page.has_words());
        pages.filter(|(index, _)| self.engine.has_lost_content(*index)).count()
    }
}

/// The error for a document without pages.
pub(super) fn without_pages(engine: &dyn Engine, bytes: &[u8]) -> Error {
    if engine.is_encrypted() {
        return error::unsupported_cipher();
    }
    // An engine that cannot decrypt a file may find no pages instead of failing.
    let name = b"/Encrypt";
    if bytes.windows(name.len()).any(|window| window == name) {
        return error::encrypted();
    }
    error::damaged("it has no pages that can be found")
}
