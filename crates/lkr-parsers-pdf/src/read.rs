//! From an engine to a parsed source: the same for every engine.

use std::time::Instant;

use lkr_domain::Parsed;
use lkr_parsers::{ErrorKind, MAX_TEXT_BYTES, Ocr, PageImage, Result, Source};

use crate::{
    PdfOptions,
    error::{self, guarded},
    hidden::{Looks, drop_hidden},
    layout,
    lopdf::Ground,
    outline::Entry,
    pace::Pace,
    page::Page,
    render::PageRenderer,
};

/// A document that an engine has opened.
pub(crate) trait Engine {
    /// How many pages there are.
    fn pages(&self) -> usize;

    /// The outline; entries that lead nowhere left out.
    fn outline(&self) -> Vec<Entry>;

    /// The lines of a page, counted from 0.
    fn page(&self, index: usize) -> Result<Page>;

    /// What another engine reads, where that is better than `pages`.
    fn second(&self, pages: &[Page]) -> Option<Vec<Page>>;

    /// What renders the pages, or why nothing does.
    fn renderer(&self) -> std::result::Result<&dyn PageRenderer, String>;

    /// How many hidden texts were left out before the engine has opened the document.
    fn hidden(&self) -> usize {
        0
    }

    /// How many of the first so many pages may hold text that they do not show, as nobody could look for it.
    fn unchecked(&self, _pages: usize) -> usize {
        0
    }

    /// What the page paints beside its text; nothing where that cannot be told.
    fn ground(&self, _index: usize) -> Option<Ground> {
        None
    }

    /// Whether the file is encrypted, though it opens without a password.
    fn is_encrypted(&self) -> bool {
        false
    }

    /// A faster engine that has opened the document too, for what there is no time for.
    fn faster(&self) -> Option<&dyn Engine> {
        None
    }
}

/// Reads a document through its engine.
pub(crate) fn read(engine: &dyn Engine, source: &Source<'_>, options: &PdfOptions) -> Result<Parsed> {
    if engine.pages() == 0 && engine.is_encrypted() {
        return Err(error::undeciphered());
    }
    let hidden = engine.hidden();
    let mut reading =
        Reading { engine, options, pages: vec![], warnings: vec![], broken: 0, hidden, hasty: None };
    reading.texts(source);
    reading.second(source);
    reading.pictures();
    reading.warn_of_cipher();
    let outline = || guarded(|| Ok(engine.outline())).unwrap_or_default();
    let outline = options.outline.then(outline).unwrap_or_default();
    layout::compose(reading.pages, &outline, reading.warnings)
}

struct Reading<'a> {
    engine: &'a dyn Engine,
    options: &'a PdfOptions,
    pages: Vec<Page>,
    warnings: Vec<String>,
    /// Pages that could not be read.
    broken: usize,
    /// Texts that were left out because nobody sees them.
    hidden: usize,
    /// The first page that the faster engine reads.
    hasty: Option<usize>,
}

impl Reading<'_> {
    fn texts(&mut self, source: &Source<'_>) {
        let all = self.engine.pages();
        let wanted = all.min(self.options.max_pages);
        let (mut length, mut looks) = (0, Looks::default());
        let mut pace = Pace::new(self.engine.faster(), wanted);
        let mut engine = self.engine;
        for index in 0..wanted {
            if source.is_past_deadline() || length > MAX_TEXT_BYTES {
                break;
            }
            if let Some(faster) = pace.faster(source, index) {
                engine = faster;
                self.hasty = self.hasty.or(Some(index));
            }
            let page = self.text(engine, index, &mut looks);
            length += page.len();
            self.pages.push(page);
        }
        self.count(looks.unknown, "may hold text too pale to read", "may hold text too pale to read");
        self.warn_of_haste();
        let left = all - self.pages.len();
        self.count(left, "was left out", "were left out");
        self.count(self.broken, "could not be read", "could not be read");
        let unchecked = self.engine.unchecked(self.pages.len());
        let what = "not looked through for text that pages do not show";
        self.count(unchecked, &format!("was {what}"), &format!("were {what}"));
        if self.hidden > 0 {
            self.warnings.push("text that the pages do not show was left out".into());
        }
    }

    /// A cipher that the engine gets wrong leaves nothing to read on any page, as pictures do.
    fn warn_of_cipher(&mut self) {
        let has_words = self.pages.iter().any(Page::has_words);
        if !has_words && !self.pages.is_empty() && self.engine.is_encrypted() {
            self.warnings.push("the file is encrypted, perhaps in a way that is not known here".into());
        }
    }

    fn warn_of_haste(&mut self) {
        let last = self.pages.len();
        match self.hasty.map(|first| first + 1) {
            Some(first) if first < last => {
                self.warnings.push(format!("pages {first} to {last} were read by lopdf, as time was short"));
            }
            Some(first) if first == last => {
                self.warnings.push(format!("page {first} was read by lopdf, as time was short"));
            }
            _ => {}
        }
    }

    /// What a page shows; nothing where it cannot be read.
    fn text(&mut self, engine: &dyn Engine, index: usize, looks: &mut Looks) -> Page {
        let page = guarded(|| {
            let mut page = engine.page(index)?;
            drop_hidden(engine, index, &mut page, looks);
            Ok(page)
        });
        self.broken += usize::from(page.is_err());
        let page = page.unwrap_or_default();
        self.hidden += page.hidden;
        page
    }

    /// Takes what another engine reads where that is better, unless it would bring back what was left out.
    fn second(&mut self, source: &Source<'_>) {
        if self.hidden == 0
            && self.hasty.is_none()
            && !source.is_past_deadline()
            && let Ok(Some(pages)) = guarded(|| Ok(self.engine.second(&self.pages)))
        {
            self.pages = pages;
        }
    }

    /// Reads the pages without words as pictures.
    fn pictures(&mut self) {
        let empty: Vec<usize> =
            self.pages.iter().enumerate().filter(|(_, page)| !page.has_words()).map(|(at, _)| at).collect();
        let Some(ocr) = self.options.ocr.as_deref() else {
            return self.count(empty.len(), "holds no text (a picture?)", "hold no text (pictures?)");
        };
        if empty.is_empty() {
            return;
        }
        let renderer = match self.engine.renderer() {
            Ok(renderer) => renderer,
            Err(reason) => {
                let (one, many) =
                    ("has no text and no renderer is available", "have no text and no renderer is available");
                return self.count(empty.len(), &format!("{one}: {reason}"), &format!("{many}: {reason}"));
            }
        };
        let end = Instant::now() + self.options.ocr_time;
        let most = self.options.ocr_pages;
        let (wanted, rest) = empty.split_at_checked(most).unwrap_or((&empty, &[]));
        let (mut undrawn, mut late) = (0, 0);
        for (done, index) in wanted.iter().enumerate() {
            match self.picture(renderer, *index, ocr, end) {
                Seen::Read => {}
                Seen::NotDrawn => undrawn += 1,
                Seen::TooLate => {
                    late = wanted.len() - done;
                    break;
                }
            }
        }
        self.count_unread(undrawn, "no picture of it could be drawn");
        self.count_unread(late, "the time for OCR ran out");
        self.count_unread(rest.len(), &format!("OCR reads no more than {most} of a file"));
    }

    fn count_unread(&mut self, pages: usize, why: &str) {
        let (one, many) = ("without text was not read", "without text were not read");
        self.count(pages, &format!("{one}: {why}"), &format!("{many}: {why}"));
    }

    /// Reads one page as a picture.
    fn picture(&mut self, renderer: &dyn PageRenderer, index: usize, ocr: &dyn Ocr, end: Instant) -> Seen {
        if end <= Instant::now() {
            return Seen::TooLate;
        }
        let picture = guarded(|| Ok(renderer.render(index, self.options.max_pixels)));
        let Ok(Some(picture)) = picture else { return Seen::NotDrawn };
        let image =
            PageImage { width: picture.width, height: picture.height, grey: &picture.grey, dpi: picture.dpi };
        match ocr.read(&image, end) {
            Ok(text) => {
                if let Some(page) = self.pages.get_mut(index) {
                    *page = Page::from_text(&text);
                }
                Seen::Read
            }
            Err(error) if error.kind() == ErrorKind::Limit => Seen::TooLate,
            Err(error) => {
                self.warnings.push(format!("page {}: {error}", index + 1));
                Seen::Read
            }
        }
    }

    fn count(&mut self, pages: usize, one: &str, many: &str) {
        match pages {
            0 => {}
            1 => self.warnings.push(format!("1 page {one}")),
            pages => self.warnings.push(format!("{pages} pages {many}")),
        }
    }
}

/// What came of a page that is a picture.
enum Seen {
    /// It was looked at, and its text is what was found.
    Read,
    /// The engine does not draw it.
    NotDrawn,
    /// There is no time for it, nor for another.
    TooLate,
}
