use std::{fmt::Debug, time::Instant};

use crate::Result;

/// A page as a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageImage<'a> {
    /// Pixels from left to right.
    pub width: u32,
    /// Pixels from top to bottom.
    pub height: u32,
    /// `width × height` bytes, row by row from the top: 0 is black, 255 white.
    pub grey: &'a [u8],
    /// Pixels an inch.
    pub dpi: u32,
}

/// Reads the text in a picture of a page.
///
/// It may block, so it is called where blocking is allowed.
pub trait Ocr: Debug + Send + Sync + 'static {
    /// The plugin's name in settings and logs.
    fn name(&self) -> &'static str;

    /// The text in `image`, its lines ended by line feeds and its paragraphs by blank lines; blank where it shows
    /// none. Gives up with an error of kind `Limit` once `deadline` is over.
    fn read(&self, image: &PageImage<'_>, deadline: Instant) -> Result<String>;
}
