use std::{path::PathBuf, sync::Arc, time::Duration};

use lkr_parsers::Ocr;

/// The options of the parsers.
#[derive(Debug, Clone)]
pub struct PdfOptions {
    /// Recognises the text of pages without text. Without it, they stay empty, with a warning.
    pub ocr: Option<Arc<dyn Ocr>>,
    /// Most pages of a file that are given to OCR.
    pub ocr_pages: usize,
    /// The time limit of OCR for one file, in addition to the deadline of the source.
    pub ocr_time: Duration,
    /// Most pages of a file that are read. The others are left out with a warning.
    pub max_pages: usize,
    /// Most pixels of a page that is rendered for OCR. Larger pages get a lower resolution.
    pub max_pixels: u32,
    /// PDFium's library. `PdfOxide` renders pages with it; without it pages are rendered only with the feature
    /// `oxide-rendering`.
    pub pdfium_library: Option<PathBuf>,
    /// Whether the entries of the outline become the headings, if there is an outline.
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

impl PdfOptions {
    /// Whether `PdfOxide` can render pages.
    pub(crate) const fn can_render(&self) -> bool {
        self.pdfium_library.is_some() || cfg!(feature = "oxide-rendering")
    }
}
