use std::{fmt::Debug, time::Instant};

use crate::Result;

/// A rendered page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageImage<'a> {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// `width × height` bytes, row by row from the top: 0 is black, 255 white.
    pub grey: &'a [u8],
    /// Pixels per inch.
    pub dpi: u32,
}

/// Recognises the text in the image of a page.
///
/// It may block, so callers run it on a blocking thread.
pub trait Ocr: Debug + Send + Sync + 'static {
    /// The plugin's name in settings and logs.
    fn name(&self) -> &'static str;

    /// The text in `image`, with line feeds after lines and blank lines after paragraphs. Blank if the image has no text.
    /// Fails with an error of kind `Limit` after `deadline`.
    fn read(&self, image: &PageImage<'_>, deadline: Instant) -> Result<String>;
}
