//! The engine PDFium, from a library that is loaded at run time.

mod lines;
mod outline;
mod pages;
mod render;

pub(crate) use pages::PageLibrary;

use std::{
    fmt,
    path::Path,
    sync::{Mutex, OnceLock, PoisonError},
};

use lkr_domain::Parsed;
use lkr_parsers::{Parser, Result, Source};
use pdfium_render::prelude::{
    PdfDocument, PdfPageIndex, PdfPageRenderRotation, PdfRect, PdfSecurityHandlerRevision, Pdfium as Library,
};

use self::render::open_renderer;
use crate::{
    PdfOptions, error,
    lopdf::{Lopdf, PaintedAreas, PaleText},
    outline::Entry,
    page::{Line, Page, Rect},
    prepared::PreparedFile,
    read::{self, Engine},
    render::PageRenderer,
};

/// The library. A process binds it once.
static LIBRARY: OnceLock<Library> = OnceLock::new();

/// Locked while the library is being bound.
static BINDING: Mutex<()> = Mutex::new(());

/// Parses PDF files with PDFium.
#[derive(Clone)]
pub struct Pdfium {
    library: &'static Library,
    options: PdfOptions,
}

impl Pdfium {
    /// The name of the plugin.
    pub(crate) const NAME: &str = "pdfium";

    /// Creates a parser with the library at `path` and default options. A process keeps the library that it bound first;
    /// later paths are ignored.
    ///
    /// # Errors
    /// `Internal` if the library is absent or lacks functions.
    pub fn load(path: &Path) -> Result<Self> {
        Ok(Self { library: library(path)?, options: PdfOptions::default() })
    }

    /// Sets the options.
    #[must_use]
    pub fn with_options(self, options: PdfOptions) -> Self {
        Self { options, ..self }
    }
}

fn library(path: &Path) -> Result<&'static Library> {
    let _guard = BINDING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(library) = LIBRARY.get() {
        return Ok(library);
    }
    let bindings = Library::bind_to_library(path).map_err(|error| error::no_library(path, &error))?;
    Ok(LIBRARY.get_or_init(|| Library::new(bindings)))
}

impl fmt::Debug for Pdfium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pdfium").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Parser for Pdfium {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn parse(&self, source: &Source<'_>) -> Result<Parsed> {
        error::check_header(source.bytes)?;
        let mut prepared = PreparedFile::new(source, PaleText::Nowhere, self.options.max_pages);
        let pages = self.open(&prepared.bytes).ok().and_then(|document| count(&document));
        prepared.revert_if_pages_differ(source, pages);
        let document = self.open(&prepared.bytes)?;
        read::read(&PdfiumEngine { document, prepared: &prepared }, source, &self.options)
    }
}

impl Pdfium {
    fn open<'a>(&'a self, bytes: &'a [u8]) -> Result<PdfDocument<'a>> {
        self.library.load_pdf_from_byte_slice(bytes, None).map_err(error::from_pdfium)
    }
}

fn count(document: &PdfDocument<'_>) -> Option<usize> {
    usize::try_from(document.pages().len()).ok()
}

/// The engine with a file. pdf_oxide uses it for rendering, and for pages that it cannot read.
pub(crate) struct PdfiumEngine<'a> {
    document: PdfDocument<'a>,
    prepared: &'a PreparedFile<'a>,
}

impl<'a> PdfiumEngine<'a> {
    /// Opens a file for another engine that found `pages` pages in it. On failure, returns the reason.
    pub(crate) fn open(
        path: &Path,
        prepared: &'a PreparedFile<'a>,
        pages: usize,
    ) -> std::result::Result<Self, String> {
        let document = open_renderer(path, &prepared.bytes, pages)?;
        Ok(Self { document, prepared })
    }
}

impl Engine for PdfiumEngine<'_> {
    fn pages(&self) -> usize {
        count(&self.document).unwrap_or(0)
    }

    fn outline(&self) -> Vec<Entry> {
        outline::entries(&self.document)
    }

    fn page(&self, index: usize) -> Result<Page> {
        let page = self.document.pages().get(page_index(index)).map_err(error::from_pdfium)?;
        let text = page.text().map_err(error::from_pdfium)?;
        let frame = page.boundaries().bounding().ok().map(|frame| rect(&frame.bounds));
        let is_checked = !self.prepared.is_unchecked(index);
        let is_rotated = page.rotation().is_ok_and(|rotation| rotation != PdfPageRenderRotation::None);
        let lines = lines::lines(&text, frame, is_checked);
        let lopdf = self.prepared.lopdf_engine();
        let is_unsure = lopdf.is_some_and(|lopdf| lopdf.has_fonts_with_own_codes(index));
        Ok(Page { frame, is_rotated, lines, is_unsure, ..Page::default() })
    }

    fn fallback_pages(&self, _: &[Page]) -> Option<Vec<Page>> {
        None
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
        self.prepared.painted_areas(index)
    }

    fn is_encrypted(&self) -> bool {
        let revision = self.document.permissions().security_handler_revision();
        !matches!(revision, Ok(PdfSecurityHandlerRevision::Unprotected))
    }

    fn shown_text(&self, index: usize) -> usize {
        self.prepared.shown_text(index)
    }

    fn has_lost_content(&self, index: usize) -> bool {
        self.prepared.lopdf_engine().is_some_and(|lopdf| lopdf.has_lost_content(index))
    }

    fn other_engines(&self) -> Vec<(&'static str, &dyn Engine)> {
        self.prepared.lopdf_engine().map(|lopdf| (Lopdf::NAME, lopdf as &dyn Engine)).into_iter().collect()
    }

    fn faster_engine(&self) -> Option<&dyn Engine> {
        Some(self.prepared.lopdf.as_ref()?)
    }

    fn renderer(&self) -> std::result::Result<&dyn PageRenderer, String> {
        Ok(&self.document)
    }
}

fn page_index(index: usize) -> PdfPageIndex {
    PdfPageIndex::try_from(index).unwrap_or(PdfPageIndex::MAX)
}

fn rect(rect: &PdfRect) -> Rect {
    Rect {
        left: rect.left().value,
        bottom: rect.bottom().value,
        right: rect.right().value,
        top: rect.top().value,
    }
}
