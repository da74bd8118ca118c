use std::{path::PathBuf, sync::Arc, time::Duration};

use lkr_parsers::Ocr;

/// What every parser of this crate may be told.
#[derive(Debug, Clone)]
pub struct PdfOptions {
    /// Reads pages that are pictures; without it they stay empty, with a warning.
    pub ocr: Option<Arc<dyn Ocr>>,
    /// The most pages of a file that are read as pictures.
    pub ocr_pages: usize,
    /// The time that reading pictures may take for one file, apart from the source's deadline.
    pub ocr_time: Duration,
    /// The most pages of a file that are read; the rest is left out, with a warning.
    pub max_pages: usize,
    /// The most pixels a page is drawn with for reading; a larger page is drawn coarser.
    pub max_pixels: u32,
    /// PDFium's library. `PdfOxide` renders pages with it; without it pages are rendered only with the feature
    /// `oxide-rendering`.
    pub pdfium_library: Option<PathBuf>,
    /// Whether the outline makes the headings, where there is one.
    pub outline: bool,
}

impl Default for PdfOptions {
    fn default() -> Self {
        Self {
            ocr: None,
            ocr_pages: 50,
            ocr_time: Duration::from_mins(1),
            max_pages: 20_000,
            max_pixels: 24_000_000,
            pdfium_library: None,
            outline: true,
        }
    }
}
