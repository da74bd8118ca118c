//! Reads a document through an engine; shared by all engines.

mod other_engines;
mod refusal;

use std::{collections::BTreeMap, time::Instant};

use lkr_domain::Parsed;
use lkr_parsers::{ErrorKind, MAX_TEXT_BYTES, Ocr, PageImage, Result, Source};

use crate::{
    PdfOptions,
    damage::is_cut_off,
    error::guarded,
    hidden::{VisibilityChecks, drop_hidden},
    layout,
    lopdf::PaintedAreas,
    outline::Entry,
    pacing::Pacing,
    page::{Line, Page},
    render::PageRenderer,
};

/// A document opened by an engine.
pub(crate) trait Engine {
    /// The number of pages.
    fn pages(&self) -> usize;

    /// The outline without entries that have no page.
    fn outline(&self) -> Vec<Entry>;

    /// Reads a page, counted from 0.
    fn page(&self, index: usize) -> Result<Page>;

    /// The values of the form fields that a page shows.
    fn field_values(&self, _index: usize) -> Vec<Line> {
        Vec::new()
    }

    /// The pages as read by a second engine, if that is better than `pages`.
    fn fallback_pages(&self, pages: &[Page]) -> Option<Vec<Page>>;

    /// The renderer of pages, or the reason why there is none.
    fn renderer(&self) -> std::result::Result<&dyn PageRenderer, String>;

    /// How many hidden texts were removed before the engine opened the document.
    fn hidden(&self) -> usize {
        0
    }

    /// How many of the first `pages` pages were not checked for hidden text.
    fn unchecked_pages(&self, _pages: usize) -> usize {
        0
    }

    /// The painted areas of the page besides its text; `None` if unknown.
    fn painted_areas(&self, _index: usize) -> Option<PaintedAreas> {
        None
    }

    /// Whether something other than text is painted on a page; `None` if unknown.
    fn has_picture(&self, index: usize) -> Option<bool> {
        self.painted_areas(index).map(|areas| !areas.is_empty())
    }

    /// Whether the file is encrypted, although it opens without a password.
    fn is_encrypted(&self) -> bool {
        false
    }

    /// How much text the content of a page sets that is visible, in bytes; 0 if unknown.
    fn shown_text(&self, _index: usize) -> usize {
        0
    }

    /// Other engines with the same document and their names, in the order in which they are tried on a page that this one
    /// cannot read.
    fn other_engines(&self) -> Vec<(&'static str, &dyn Engine)> {
        Vec::new()
    }

    /// Whether a part of the content of a page is missing, or cannot be unpacked; false if unknown.
    fn has_lost_content(&self, _index: usize) -> bool {
        false
    }

    /// A faster engine with the same document, for when time is short.
    fn faster_engine(&self) -> Option<&dyn Engine> {
        None
    }
}

/// Reads a document through an engine.
pub(crate) fn read(engine: &dyn Engine, source: &Source<'_>, options: &PdfOptions) -> Result<Parsed> {
    if engine.pages() == 0 {
        return Err(refusal::without_pages(engine, source.bytes));
    }
    let hidden = engine.hidden();
    let mut reader = DocumentReader {
        engine,
        options,
        pages: vec![],
        warnings: vec![],
        unreadable: 0,
        hidden,
        faster_from: None,
        other_engines: BTreeMap::new(),
        unread_pictures: None,
        is_cut_off: is_cut_off(source.bytes),
    };
    reader.read_pages(source);
    reader.fallback_pages(source);
    reader.warn_of_damage();
    reader.run_ocr();
    reader.warn_of_cipher();
    if let Some(error) = reader.refusal() {
        return Err(error);
    }
    let outline = || guarded(|| Ok(engine.outline())).unwrap_or_default();
    let outline = options.outline.then(outline).unwrap_or_default();
    layout::compose(reader.pages, &outline, reader.warnings)
}

struct DocumentReader<'a> {
    engine: &'a dyn Engine,
    options: &'a PdfOptions,
    pages: Vec<Page>,
    warnings: Vec<String>,
    /// How many pages could not be read.
    unreadable: usize,
    /// How many hidden texts were removed.
    hidden: usize,
    /// The first page that the faster engine read.
    faster_from: Option<usize>,
    /// How many pages another engine read, by its name.
    other_engines: BTreeMap<&'static str, usize>,
    /// Why OCR did not read pages without text.
    unread_pictures: Option<String>,
    /// Whether the end of the file is missing.
    is_cut_off: bool,
}

impl DocumentReader<'_> {
    fn read_pages(&mut self, source: &Source<'_>) {
        let all = self.engine.pages();
        let selected = all.min(self.options.max_pages);
        let (mut length, mut checks) = (0, VisibilityChecks::default());
        let mut pacing = Pacing::new(source, self.engine.faster_engine(), selected);
        let mut engine = self.engine;
        for index in 0..selected {
            if source.is_past_deadline() || length > MAX_TEXT_BYTES {
                break;
            }
            if let Some(faster_engine) = pacing.faster_engine(source, index) {
                engine = faster_engine;
                self.faster_from = self.faster_from.or(Some(index));
            }
            let page = self.text(engine, index, &mut checks);
            length += page.len();
            self.pages.push(page);
        }
        self.warn_pages(
            checks.unknown,
            "may contain text too pale to read",
            "may contain text too pale to read",
        );
        self.warn_of_other_engines();
        self.warn_of_faster_engine();
        let left = all - self.pages.len();
        self.warn_pages(left, "was left out", "were left out");
        self.warn_pages(self.unreadable, "could not be read", "could not be read");
        let unchecked_pages = self.engine.unchecked_pages(self.pages.len());
        let what = "not checked for hidden text";
        self.warn_pages(unchecked_pages, &format!("was {what}"), &format!("were {what}"));
        if self.hidden > 0 {
            self.warnings.push("hidden text was left out".into());
        }
    }

    /// If the engine decrypts wrongly, no page has text, just as with scanned pages.
    fn warn_of_cipher(&mut self) {
        let has_words = self.pages.iter().any(Page::has_words);
        if !has_words && !self.pages.is_empty() && self.engine.is_encrypted() {
            self.warnings.push("the file is encrypted, perhaps with an unsupported cipher".into());
        }
    }

    fn warn_of_faster_engine(&mut self) {
        let last = self.pages.len();
        match self.faster_from.map(|first| first + 1) {
            Some(first) if first < last => {
                self.warnings
                    .push(format!("pages {first} to {last} were read by lopdf because time was short"));
            }
            Some(first) if first == last => {
                self.warnings.push(format!("page {first} was read by lopdf because time was short"));
            }
            _ => {}
        }
    }

    /// The visible text of a page; an empty page if it cannot be read.
    fn text(&mut self, engine: &dyn Engine, index: usize, checks: &mut VisibilityChecks) -> Page {
        let page = visible_text(engine, index, checks);
        let page = match page {
            Ok(page) if page.hidden > 0 => Ok(page),
            page => self.with_other_engines(engine, index, page, checks),
        };
        self.unreadable += usize::from(page.is_err());
        let mut page = page.unwrap_or_default();
        page.add_missing(engine.field_values(index));
        self.hidden += page.hidden;
        page
    }

    /// Uses the result of a second engine if that is better, unless it could contain removed hidden text.
    fn fallback_pages(&mut self, source: &Source<'_>) {
        if self.hidden == 0
            && self.faster_from.is_none()
            && !source.is_past_deadline()
            && let Ok(Some(pages)) = guarded(|| Ok(self.engine.fallback_pages(&self.pages)))
        {
            self.pages = pages;
        }
    }

    /// Runs OCR on the pages without text.
    fn run_ocr(&mut self) {
        let empty: Vec<usize> =
            self.pages.iter().enumerate().filter(|(_, page)| !page.has_words()).map(|(at, _)| at).collect();
        let Some(ocr) = self.options.ocr.as_deref() else {
            self.unread_pictures = Some("OCR is off".to_owned());
            return self.warn_pages(empty.len(), "has no text (a picture?)", "have no text (pictures?)");
        };
        if empty.is_empty() {
            return;
        }
        let renderer = match self.engine.renderer() {
            Ok(renderer) => renderer,
            Err(reason) => {
                self.unread_pictures = Some(format!("no renderer is available for OCR: {reason}"));
                let (one, many) =
                    ("has no text and no renderer is available", "have no text and no renderer is available");
                return self.warn_pages(
                    empty.len(),
                    &format!("{one}: {reason}"),
                    &format!("{many}: {reason}"),
                );
            }
        };
        let end = Instant::now() + self.options.ocr_time;
        let max_ocr_pages = self.options.ocr_pages;
        let (selected, rest) = empty.split_at_checked(max_ocr_pages).unwrap_or((&empty, &[]));
        let (mut not_rendered, mut timed_out) = (0, 0);
        for (done, index) in selected.iter().enumerate() {
            match self.ocr_page(renderer, *index, ocr, end) {
                OcrOutcome::Done => {}
                OcrOutcome::NotRendered => not_rendered += 1,
                OcrOutcome::TimedOut => {
                    timed_out = selected.len() - done;
                    break;
                }
            }
        }
        self.warn_without_text(not_rendered, "it cannot be rendered");
        self.warn_without_text(timed_out, "the time limit of OCR was reached");
        self.warn_without_text(rest.len(), &format!("OCR reads at most {max_ocr_pages} pages of a file"));
    }

    fn warn_without_text(&mut self, pages: usize, why: &str) {
        if pages > 0 {
            self.unread_pictures.get_or_insert_with(|| format!("OCR did not read them all: {why}"));
        }
        let (one, many) = ("without text was not read", "without text were not read");
        self.warn_pages(pages, &format!("{one}: {why}"), &format!("{many}: {why}"));
    }

    /// Runs OCR on a page.
    fn ocr_page(
        &mut self,
        renderer: &dyn PageRenderer,
        index: usize,
        ocr: &dyn Ocr,
        end: Instant,
    ) -> OcrOutcome {
        if end <= Instant::now() {
            return OcrOutcome::TimedOut;
        }
        let ocr_page = guarded(|| Ok(renderer.render(index, self.options.max_pixels)));
        let Ok(Some(ocr_page)) = ocr_page else { return OcrOutcome::NotRendered };
        let image = PageImage {
            width: ocr_page.width,
            height: ocr_page.height,
            grey: &ocr_page.grey,
            dpi: ocr_page.dpi,
        };
        match ocr.read(&image, end) {
            Ok(text) => {
                if let Some(page) = self.pages.get_mut(index) {
                    *page = Page::from_text(&text);
                }
                OcrOutcome::Done
            }
            Err(error) if error.kind() == ErrorKind::Limit => OcrOutcome::TimedOut,
            Err(error) => {
                self.warnings.push(format!("page {}: {error}", index + 1));
                OcrOutcome::Done
            }
        }
    }

    fn warn_pages(&mut self, pages: usize, one: &str, many: &str) {
        match pages {
            0 => {}
            1 => self.warnings.push(format!("1 page {one}")),
            pages => self.warnings.push(format!("{pages} pages {many}")),
        }
    }
}

/// The visible text of a page, without the values of form fields.
fn visible_text(engine: &dyn Engine, index: usize, checks: &mut VisibilityChecks) -> Result<Page> {
    guarded(|| {
        let mut page = engine.page(index)?;
        drop_hidden(engine, index, &mut page, checks);
        Ok(page)
    })
}

/// The result of OCR on a page.
enum OcrOutcome {
    /// OCR was run, with or without text.
    Done,
    /// The page could not be rendered.
    NotRendered,
    /// The time for OCR has passed.
    TimedOut,
}
