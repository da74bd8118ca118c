//! pdf_oxide: the default, pure Rust.

mod objects;
#[cfg(feature = "oxide-rendering")]
mod render;
mod runs;

use std::{borrow::Cow, cell::OnceCell, path::Path};

use lkr_domain::Parsed;
use lkr_parsers::{Parser, Result, Source};
use pdf_oxide::PdfDocument;

use crate::{
    PdfOptions,
    clean::Clean,
    error, fallback,
    lopdf::{Ground, Pale},
    outline::{self, Entry},
    page::{Page, Rect},
    pdfium,
    read::{self, Engine},
    render::PageRenderer,
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
        // The engine does not tell where pale text stands in the picture of a page that is turned.
        let mut clean = Clean::new(source, Pale::OnTurned, self.options.max_pages);
        let mut document = error::guarded(|| open(&clean.bytes));
        let pages = document.as_ref().ok().and_then(|document| document.page_count().ok());
        if clean.settle(source, pages) {
            document = error::guarded(|| open(&clean.bytes));
        }
        let library = self.options.pdfium_library.as_deref();
        let engine =
            Oxide { document: document?, clean: &clean, source: *source, library, pdfium: OnceCell::new() };
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

struct Oxide<'a> {
    document: PdfDocument,
    clean: &'a Clean<'a>,
    source: Source<'a>,
    /// PDFium's library, if it is to render pages.
    library: Option<&'a Path>,
    /// The file as PDFium opened it for rendering, or why it did not.
    pdfium: OnceCell<std::result::Result<pdfium_render::prelude::PdfDocument<'a>, String>>,
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
        // The engine does not say which text is not drawn. Where lopdf does not either, and some of a page may be, the
        // picture of the page tells.
        let veiled = || self.document.get_page_content_data(index).is_ok_and(|content| is_veiled(&content));
        if self.clean.is_unchecked(index) && veiled() && self.renderer().is_ok() {
            lines.iter_mut().for_each(|line| line.pale = true);
        }
        Ok(Page { frame: self.frame(index), turned, hidden: runs::tiny(&spans), lines })
    }

    fn second(&self, pages: &[Page]) -> Option<Vec<Page>> {
        // What unpdf reads is not looked at, so it gets nothing to read that is hidden.
        fallback::instead(pages, || {
            let (lopdf, bytes) = (self.clean.lopdf.as_ref()?, self.source.bytes);
            let scrubbed = lopdf.scrubbed(bytes, Pale::Everywhere, self.source.deadline).ok()?;
            scrubbed.unchecked.is_empty().then(|| scrubbed.bytes.map_or(Cow::Borrowed(bytes), Cow::Owned))
        })
    }

    fn hidden(&self) -> usize {
        self.clean.hidden
    }

    fn unchecked(&self, pages: usize) -> usize {
        self.clean.unchecked(pages)
    }

    fn ground(&self, index: usize) -> Option<Ground> {
        // Places on pages that are turned are not those of lopdf, which has looked at such pages before.
        let turned = self.document.get_page_rotation(index).unwrap_or(0) != 0;
        if turned { Some(Ground::everywhere()) } else { self.clean.ground(index) }
    }

    fn is_encrypted(&self) -> bool {
        self.document.is_encrypted()
    }

    fn faster(&self) -> Option<&dyn Engine> {
        Some(self.clean.lopdf.as_ref()?)
    }

    fn renderer(&self) -> std::result::Result<&dyn PageRenderer, String> {
        match self.pdfium.get_or_init(|| self.open_pdfium()) {
            Ok(document) => Ok(document),
            Err(reason) => self.own_renderer(reason),
        }
    }
}

impl<'a> Oxide<'a> {
    /// PDFium's document of the file, for rendering. Its library is loaded only when the first page is to be rendered.
    fn open_pdfium(&self) -> std::result::Result<pdfium_render::prelude::PdfDocument<'a>, String> {
        let Some(library) = self.library else {
            return Err("set LKR_PDFIUM_LIBRARY to the path of PDFium's library".to_owned());
        };
        pdfium::open_renderer(library, &self.clean.bytes, self.pages())
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

/// Whether a page's content shows some text and sets other text that is not drawn (text rendering mode 3). Text that is
/// all undrawn is what a scanner has read.
fn is_veiled(content: &[u8]) -> bool {
    let find = |part: &[u8], words: &[u8]| part.windows(words.len()).position(|window| window == words);
    let Some(undrawn) = find(content, b"3 Tr") else { return false };
    let (before, after) = content.split_at(undrawn);
    let shows = |part| find(part, b"Tj").is_some() || find(part, b"TJ").is_some();
    shows(before) || find(after, b"0 Tr").is_some()
}
