//! PDFium, through a library that is loaded at run time.

mod lines;
mod outline;
mod render;

pub(crate) use render::open_renderer;

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

use crate::{
    PdfOptions,
    clean::Clean,
    error,
    lopdf::{Ground, Pale},
    outline::Entry,
    page::{Page, Rect},
    read::{self, Engine},
    render::PageRenderer,
};

/// The library, which a process binds once.
static LIBRARY: OnceLock<Library> = OnceLock::new();

/// Held while the library is bound.
static BINDING: Mutex<()> = Mutex::new(());

/// Reads PDF files with PDFium.
#[derive(Clone)]
pub struct Pdfium {
    library: &'static Library,
    options: PdfOptions,
}

impl Pdfium {
    /// A parser with the library at `path`, with default options. A process keeps the library it has bound first, whatever
    /// later paths say.
    ///
    /// # Errors
    /// `Internal` where there is no such library or it lacks functions.
    pub fn load(path: &Path) -> Result<Self> {
        Ok(Self { library: library(path)?, options: PdfOptions::default() })
    }

    /// The same parser with these options.
    #[must_use]
    pub fn with_options(self, options: PdfOptions) -> Self {
        Self { options, ..self }
    }
}

fn library(path: &Path) -> Result<&'static Library> {
    let _held = BINDING.lock().unwrap_or_else(PoisonError::into_inner);
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
        "pdfium"
    }

    fn parse(&self, source: &Source<'_>) -> Result<Parsed> {
        error::check_begins(source.bytes)?;
        let mut clean = Clean::new(source, Pale::Nowhere, self.options.max_pages);
        let pages = self.opened(&clean.bytes).ok().and_then(|document| count(&document));
        clean.settle(source, pages);
        let document = self.opened(&clean.bytes)?;
        read::read(&Open { document, clean: &clean }, source, &self.options)
    }
}

impl Pdfium {
    fn opened<'a>(&'a self, bytes: &'a [u8]) -> Result<PdfDocument<'a>> {
        self.library.load_pdf_from_byte_slice(bytes, None).map_err(error::from_pdfium)
    }
}

fn count(document: &PdfDocument<'_>) -> Option<usize> {
    usize::try_from(document.pages().len()).ok()
}

struct Open<'a> {
    document: PdfDocument<'a>,
    clean: &'a Clean<'a>,
}

impl Engine for Open<'_> {
    fn pages(&self) -> usize {
        count(&self.document).unwrap_or(0)
    }

    fn outline(&self) -> Vec<Entry> {
        outline::entries(&self.document)
    }

    fn page(&self, index: usize) -> Result<Page> {
        let page = self.document.pages().get(number(index)).map_err(error::from_pdfium)?;
        let text = page.text().map_err(error::from_pdfium)?;
        let frame = page.boundaries().bounding().ok().map(|frame| rect(&frame.bounds));
        let turned = page.rotation().is_ok_and(|rotation| rotation != PdfPageRenderRotation::None);
        Ok(Page { frame, turned, hidden: 0, lines: lines::lines(&text, frame) })
    }

    fn second(&self, _: &[Page]) -> Option<Vec<Page>> {
        None
    }

    fn hidden(&self) -> usize {
        self.clean.hidden
    }

    fn unchecked(&self, pages: usize) -> usize {
        self.clean.unchecked(pages)
    }

    fn ground(&self, index: usize) -> Option<Ground> {
        self.clean.ground(index)
    }

    fn is_encrypted(&self) -> bool {
        let revision = self.document.permissions().security_handler_revision();
        !matches!(revision, Ok(PdfSecurityHandlerRevision::Unprotected))
    }

    fn faster(&self) -> Option<&dyn Engine> {
        Some(self.clean.lopdf.as_ref()?)
    }

    fn renderer(&self) -> std::result::Result<&dyn PageRenderer, String> {
        Ok(&self.document)
    }
}

fn number(index: usize) -> PdfPageIndex {
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
