//! pdf_oxide: the default, pure Rust.

mod objects;
mod runs;

use lkr_domain::Parsed;
use lkr_parsers::{Parser, Result, Source};
use pdf_oxide::{PdfDocument, rendering};

use crate::{
    PdfOptions, error, fallback,
    outline::{self, Entry},
    page::{Page, Rect},
    read::{self, Engine, Picture},
};

/// Reads PDF files with pdf_oxide, and with unpdf what pdf_oxide finds no text in.
#[derive(Debug, Clone, Default)]
pub struct PdfOxide {
    options: PdfOptions,
}

impl PdfOxide {
    /// A parser with these options.
    #[must_use]
    pub const fn new(options: PdfOptions) -> Self {
        Self { options }
    }
}

impl Parser for PdfOxide {
    fn name(&self) -> &'static str {
        "pdf_oxide"
    }

    fn parse(&self, source: &Source<'_>) -> Result<Parsed> {
        error::check_begins(source.bytes)?;
        let open = || PdfDocument::from_bytes(source.bytes.to_vec()).map_err(error::from_oxide);
        let document = error::guarded(open)?;
        if document.is_encrypted() && !document.authenticate(b"").unwrap_or(false) {
            return Err(error::encrypted());
        }
        read::read(&Oxide { document, bytes: source.bytes }, source, &self.options)
    }
}

struct Oxide<'a> {
    document: PdfDocument,
    bytes: &'a [u8],
}

impl Engine for Oxide<'_> {
    fn pages(&self) -> usize {
        self.document.page_count().unwrap_or(0)
    }

    fn outline(&self) -> Vec<Entry> {
        outline::entries(&self.document)
    }

    fn page(&self, index: usize) -> Result<Page> {
        let spans = self.document.extract_spans(index).map_err(error::from_oxide)?;
        let turned = self.document.get_page_rotation(index).unwrap_or(0) != 0;
        let mut lines = runs::lines(&spans);
        // The engine does not say which text is not drawn. Where some of a page may be, the picture of the page tells.
        if self.document.get_page_content_data(index).is_ok_and(|content| is_veiled(&content)) {
            lines.iter_mut().for_each(|line| line.pale = true);
        }
        Ok(Page { frame: self.frame(index), turned, hidden: runs::tiny(&spans), lines })
    }

    fn second(&self, pages: &[Page]) -> Option<Vec<Page>> {
        fallback::instead(self.bytes, pages)
    }

    fn picture(&self, index: usize, max_pixels: u32) -> Option<Picture> {
        let frame = self.frame(index)?;
        let dpi = read::resolution(frame.right - frame.left, frame.height(), max_pixels)?;
        let mut options = rendering::RenderOptions::with_dpi(dpi).as_raw();
        options.max_output_pixels = u64::from(max_pixels);
        let image = rendering::render_page(&self.document, index, &options).ok()?;
        Some(Picture { width: image.width, height: image.height, grey: read::grey(&image.data), dpi })
    }
}

impl Oxide<'_> {
    fn frame(&self, index: usize) -> Option<Rect> {
        let (left, bottom, right, top) = self.document.get_page_visible_box(index).ok()?;
        (left < right && bottom < top).then_some(Rect { left, bottom, right, top })
    }
}

/// Whether a page's content shows some text and sets other text that is not drawn (text rendering mode 3). Text that is
/// all undrawn is what a scanner has read.
fn is_veiled(content: &[u8]) -> bool {
    let find = |part: &[u8], words: &[u8]| part.windows(words.len()).position(|window| window == words);
    let Some(undrawn) = find(content, b"3 Tr") else { return false };
    let (before, after) = content.split_at(undrawn);
    let shows = |part| find(part, b"Tj").is_some() || find(part, b"TJ").is_some();
    shows(before) || find(after, b"0 Tr").is_some()
}
