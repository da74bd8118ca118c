//! The engine pdf_oxide, in pure Rust. It is the default.

mod objects;
#[cfg(feature = "oxide-rendering")]
mod render;
mod runs;

use std::{borrow::Cow, cell::OnceCell, path::Path};

use lkr_domain::Parsed;
use lkr_parsers::{Parser, Result, Source};
use pdf_oxide::PdfDocument;

use crate::{
    PdfOptions, error, fallback,
    lopdf::{Lopdf, PaintedAreas, PaleText},
    outline::{self, Entry},
    page::{Line, Page, Rect},
    pdfium::{Pdfium, PdfiumEngine},
    prepared::PreparedFile,
    read::{self, Engine},
    render::PageRenderer,
};

/// Parses PDF files with pdf_oxide, and with unpdf if pdf_oxide finds no readable text.
#[derive(Debug, Clone, Default)]
pub struct PdfOxide {
    options: PdfOptions,
}

impl PdfOxide {
    /// Creates a parser with these options.
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
        error::check_header(source.bytes)?;
        // The engine does not report the position of pale text in the image of a rotated page. Without a renderer it also
        // cannot tell pale text from text in a colour space that it does not convert, so lopdf decides on all pages.
        let pale = if self.options.can_render() { PaleText::OnRotated } else { PaleText::Everywhere };
        let mut prepared = PreparedFile::new(source, pale, self.options.max_pages);
        let mut document = error::guarded(|| open(&prepared.bytes));
        let pages = document.as_ref().ok().and_then(|document| document.page_count().ok());
        if prepared.revert_if_pages_differ(source, pages) {
            document = error::guarded(|| open(&prepared.bytes));
        }
        let library = self.options.pdfium_library.as_deref();
        let engine = OxideEngine {
            document: document?,
            prepared: &prepared,
            pale,
            source: *source,
            library,
            pdfium: OnceCell::new(),
        };
        read::read(&engine, source, &self.options)
    }
}

fn open(bytes: &[u8]) -> Result<PdfDocument> {
    let document = PdfDocument::from_bytes(bytes.to_vec()).map_err(error::from_oxide)?;
    if document.is_encrypted() && !document.authenticate(b"").unwrap_or(false) {
        return Err(error::encrypted());
    }
    Ok(document)
}

struct OxideEngine<'a> {
    document: PdfDocument,
    prepared: &'a PreparedFile<'a>,
    /// The pages whose pale text was removed from `prepared`.
    pale: PaleText,
    source: Source<'a>,
    /// PDFium's library, if it is to render pages.
    library: Option<&'a Path>,
    /// The file as PDFium opened it for rendering and for pages that pdf_oxide cannot read, or why it did not.
    pdfium: OnceCell<std::result::Result<PdfiumEngine<'a>, String>>,
}

impl Engine for OxideEngine<'_> {
    fn pages(&self) -> usize {
        self.document.page_count().unwrap_or(0)
    }

    fn outline(&self) -> Vec<Entry> {
        outline::entries(&self.document)
    }

    fn page(&self, index: usize) -> Result<Page> {
        let spans = self.document.extract_spans(index).map_err(error::from_oxide)?;
        let is_rotated = self.document.get_page_rotation(index).unwrap_or(0) != 0;
        let is_checked = !self.prepared.is_unchecked(index);
        let vertical = || self.prepared.lopdf_engine().and_then(|lopdf| lopdf.vertical_direction(index));
        let mut lines = runs::lines(&spans, is_checked, vertical);
        // The engine does not report which text is not drawn. If lopdf has not checked the page, and some text may not be drawn,
        // the rendered page decides.
        let may_hide_text = || {
            self.document
                .get_page_content_data(index)
                .is_ok_and(|content| has_drawn_and_undrawn_text(&content))
        };
        if !is_checked && may_hide_text() && self.renderer().is_ok() {
            lines.iter_mut().for_each(|line| line.is_pale = true);
        }
        if self.pale == PaleText::Everywhere && is_checked {
            lines.iter_mut().for_each(|line| line.is_pale = false);
        }
        Ok(Page {
            frame: self.frame(index).map(|frame| runs::shown_frame(&spans, frame)),
            is_rotated,
            is_unsure: runs::are_mostly_tiny(&spans),
            hidden: if is_checked { 0 } else { runs::tiny(&spans) },
            lines,
        })
    }

    fn fallback_pages(&self, pages: &[Page]) -> Option<Vec<Page>> {
        // The text from unpdf is not checked, so it gets a file without hidden text.
        fallback::better_pages(pages, || {
            let (lopdf, bytes) = (self.prepared.lopdf.as_ref()?, self.source.bytes);
            let scrubbed = lopdf.scrubbed(bytes, PaleText::Everywhere, self.source.deadline).ok()?;
            scrubbed
                .unchecked_pages
                .is_empty()
                .then(|| scrubbed.bytes.map_or(Cow::Borrowed(bytes), Cow::Owned))
        })
    }

    fn field_values(&self, index: usize) -> Vec<Line> {
        self.prepared.field_values(index)
    }

    fn hidden(&self) -> usize {
        self.prepared.hidden
    }

    fn unchecked_pages(&self, pages: usize) -> usize {
        self.prepared.unchecked_pages(pages)
    }

    fn painted_areas(&self, index: usize) -> Option<PaintedAreas> {
        // Positions on rotated pages differ from those of lopdf, which has already checked such pages.
        let is_rotated = self.document.get_page_rotation(index).unwrap_or(0) != 0;
        if is_rotated { Some(PaintedAreas::everywhere()) } else { self.prepared.painted_areas(index) }
    }

    fn is_encrypted(&self) -> bool {
        self.document.is_encrypted()
    }

    fn shown_text(&self, index: usize) -> usize {
        self.prepared.shown_text(index)
    }

    fn has_lost_content(&self, index: usize) -> bool {
        self.prepared.lopdf_engine().is_some_and(|lopdf| lopdf.has_lost_content(index))
    }

    fn other_engines(&self) -> Vec<(&'static str, &dyn Engine)> {
        let pdfium = self.pdfium().ok().map(|pdfium| (Pdfium::NAME, pdfium as &dyn Engine));
        let lopdf = self.prepared.lopdf_engine().map(|lopdf| (Lopdf::NAME, lopdf as &dyn Engine));
        pdfium.into_iter().chain(lopdf).collect()
    }

    fn faster_engine(&self) -> Option<&dyn Engine> {
        Some(self.prepared.lopdf.as_ref()?)
    }

    fn renderer(&self) -> std::result::Result<&dyn PageRenderer, String> {
        match self.pdfium() {
            Ok(pdfium) => pdfium.renderer(),
            Err(reason) => self.own_renderer(reason),
        }
    }
}

impl<'a> OxideEngine<'a> {
    /// PDFium with the file. Its library is loaded only when the first page needs it.
    fn pdfium(&self) -> std::result::Result<&PdfiumEngine<'a>, &str> {
        let open = || {
            let missing = || "set LKR_PDFIUM_LIBRARY to the path of PDFium's library".to_owned();
            PdfiumEngine::open(self.library.ok_or_else(missing)?, self.prepared, self.pages())
        };
        self.pdfium.get_or_init(open).as_ref().map_err(String::as_str)
    }

    #[cfg(feature = "oxide-rendering")]
    fn own_renderer(&self, _: &str) -> std::result::Result<&dyn PageRenderer, String> {
        Ok(self)
    }

    #[cfg(not(feature = "oxide-rendering"))]
    #[expect(clippy::unused_self, reason = "the other variant returns it")]
    fn own_renderer(&self, reason: &str) -> std::result::Result<&dyn PageRenderer, String> {
        Err(reason.to_owned())
    }

    fn frame(&self, index: usize) -> Option<Rect> {
        let (left, bottom, right, top) = self.document.get_page_visible_box(index).ok()?;
        (left < right && bottom < top).then_some(Rect { left, bottom, right, top })
    }
}

/// Whether the content of a page draws some text and sets other text that is not drawn (text rendering mode 3). A page with
/// only undrawn text has the OCR text of a scanner.
fn has_drawn_and_undrawn_text(content: &[u8]) -> bool {
    let find = |part: &[u8], words: &[u8]| part.windows(words.len()).position(|window| window == words);
    let Some(is_undrawn) = find(content, b"3 Tr") else { return false };
    let (before, after) = content.split_at(is_undrawn);
    let shows = |part| find(part, b"Tj").is_some() || find(part, b"TJ").is_some();
    shows(before) || find(after, b"0 Tr").is_some()
}
