//! lopdf: its objects and encodings, with a reading of page contents of our own.

mod content;
mod fonts;
mod forms;
mod ground;
mod ink;
mod layers;
mod marks;
mod matrix;
mod objects;
mod paths;
mod scrub;
mod shown;
mod state;
mod streams;
mod tokens;

use std::collections::HashSet;

use content::{Walked, Walker};
pub(crate) use ground::Ground;
pub(crate) use ink::PALE;
use layers::Layers;
use lkr_domain::Parsed;
use lkr_parsers::{Parser, Result, Source};
use lopdf::{Dictionary, Document, LoadOptions, Object, ObjectId};
pub(crate) use scrub::{Pale, Scrubbed};
use shown::{Set, Sight};

use crate::{
    PdfOptions, error,
    outline::{self, Entry},
    page::{Page, Rect},
    read::{self, Engine},
    render::PageRenderer,
    runs,
};

/// No stream may be longer than this when it is unpacked.
const MAX_STREAM: usize = 32 * 1024 * 1024;

/// Page trees are no deeper than this.
const MAX_DEPTH: usize = 32;

/// Reads PDF files with lopdf; it draws no pages, so that it reads no pictures.
#[derive(Debug, Clone, Default)]
pub struct Lopdf {
    options: PdfOptions,
}

impl Lopdf {
    /// A parser with these options.
    #[must_use]
    pub const fn new(options: PdfOptions) -> Self {
        Self { options }
    }
}

impl Parser for Lopdf {
    fn name(&self) -> &'static str {
        "lopdf"
    }

    fn parse(&self, source: &Source<'_>) -> Result<Parsed> {
        error::check_begins(source.bytes)?;
        read::read(&Open::load(source.bytes, self.options.max_pages)?, source, &self.options)
    }
}

/// A document that lopdf has opened.
pub(crate) struct Open {
    document: Document,
    pages: Vec<ObjectId>,
    layers: Layers,
}

impl Engine for Open {
    fn pages(&self) -> usize {
        self.pages.len()
    }

    fn outline(&self) -> Vec<Entry> {
        outline::entries(&self.document)
    }

    fn page(&self, index: usize) -> Result<Page> {
        let Walked { texts, .. } = self.walked(index)?;
        let hidden = texts.iter().filter(|text| matches!(text.sight, Sight::Hidden | Sight::Pale));
        let hidden = hidden.filter(|text| !text.run.text.trim().is_empty()).count();
        let is_seen = |sight| matches!(sight, Sight::Shown | Sight::Undrawn);
        // Letters that are drawn by the file may have any size, but the layout makes nothing of such small ones.
        let is_read = |text: &Set| is_seen(text.sight) && text.run.size >= 1.0 && !text.run.text.is_empty();
        let seen = texts.into_iter().filter(is_read);
        let runs = seen.map(|text| runs::Run { undrawn: false, ..text.run });
        let frame = self.pages.get(index).and_then(|page| self.frame(*page));
        Ok(Page { frame, hidden, lines: runs::lines(runs), ..Page::default() })
    }

    fn second(&self, _: &[Page]) -> Option<Vec<Page>> {
        None
    }

    fn renderer(&self) -> std::result::Result<&dyn PageRenderer, String> {
        Err("the plugin lopdf cannot render pages".to_owned())
    }

    fn is_encrypted(&self) -> bool {
        self.document.was_encrypted()
    }
}

impl Open {
    /// Opens a document, of which up to `max_pages` are wanted.
    pub(crate) fn load(bytes: &[u8], max_pages: usize) -> Result<Self> {
        let options = LoadOptions::with_max_decompressed_size(MAX_STREAM);
        let open = || Document::load_mem_with_options(bytes, options).map_err(error::from_lopdf);
        let document = error::guarded(open)?;
        if let Ok(cipher) = document.get_encrypted() {
            return Err(if has_short_key(cipher) { error::undeciphered() } else { error::encrypted() });
        }
        let pages = pages(&document, max_pages.saturating_add(1));
        let layers = Layers::new(&document);
        Ok(Self { document, pages, layers })
    }

    /// How many pages there are, of those that are wanted.
    pub(crate) const fn page_count(&self) -> usize {
        self.pages.len()
    }

    /// What a page paints beside its text, if that can be told.
    pub(crate) fn ground(&self, index: usize) -> Option<Ground> {
        error::guarded(|| Ok(self.walked(index)?.ground)).ok()
    }

    /// What the content of a page is made of.
    fn walked(&self, index: usize) -> Result<Walked> {
        let Some(id) = self.pages.get(index) else { return Ok(Walked::default()) };
        let mut walker = Walker::new(&self.document, &self.layers, None);
        Ok(self.walk(&mut walker, *id, &self.content(*id)?))
    }

    /// What the content of a page is made of.
    fn walk<'a>(&'a self, walker: &mut Walker<'a>, page: ObjectId, content: &[u8]) -> Walked {
        let unit =
            self.document.get_dictionary(page).and_then(|page| page.get_deref(b"UserUnit", &self.document));
        let unit = unit.and_then(Object::as_float).unwrap_or(1.0).max(1.0);
        walker.walk(self.inherited(page, b"Resources"), content, (self.frame(page), unit))
    }

    fn content(&self, page: ObjectId) -> Result<Vec<u8>> {
        self.document.get_page_content_with_limit(page, MAX_STREAM).map_err(error::from_lopdf)
    }

    fn is_turned(&self, page: ObjectId) -> bool {
        let angle =
            self.holder(page, b"Rotate").and_then(|page| page.get_deref(b"Rotate", &self.document).ok());
        angle.and_then(|angle| angle.as_i64().ok()).is_some_and(|angle| angle % 360 != 0)
    }

    /// The nearest dictionary on the way from the page to the root that has the key.
    fn holder(&self, page: ObjectId, key: &[u8]) -> Option<&Dictionary> {
        let mut node = self.document.get_dictionary(page).ok()?;
        for _ in 0..MAX_DEPTH {
            if node.has(key) {
                return Some(node);
            }
            node = node.get_deref(b"Parent", &self.document).ok()?.as_dict().ok()?;
        }
        None
    }

    fn inherited(&self, page: ObjectId, key: &[u8]) -> Option<&Dictionary> {
        self.holder(page, key)?.get_deref(key, &self.document).ok()?.as_dict().ok()
    }

    fn frame(&self, page: ObjectId) -> Option<Rect> {
        let key: &[u8] = if self.holder(page, b"CropBox").is_some() { b"CropBox" } else { b"MediaBox" };
        let edges = self.holder(page, key)?.get_deref(key, &self.document).ok()?.as_array().ok()?;
        let edges: Vec<f32> = edges.iter().filter_map(|edge| edge.as_float().ok()).collect();
        let [left, bottom, right, top] = *edges.first_chunk()?;
        (left < right && bottom < top).then_some(Rect { left, bottom, right, top })
    }
}

/// Whether a file under V 4 says that its key is shorter than 128 bits: lopdf takes the right password for a wrong one.
fn has_short_key(cipher: &Dictionary) -> bool {
    let number = |key| cipher.get(key).and_then(Object::as_i64).ok();
    number(b"V") == Some(4) && number(b"Length").is_some_and(|bits| bits < 128)
}

/// The first pages of a document. What has no kids is a page, whatever it says that it is.
fn pages(document: &Document, most: usize) -> Vec<ObjectId> {
    let kids = |node: &Dictionary| {
        let kids = node.get_deref(b"Kids", document).and_then(Object::as_array).ok()?;
        Some(kids.iter().rev().filter_map(|kid| kid.as_reference().ok()).collect::<Vec<_>>())
    };
    let root = document.catalog().and_then(|catalog| catalog.get_deref(b"Pages", document));
    let mut open = root.and_then(Object::as_dict).ok().and_then(kids).unwrap_or_default();
    let (mut pages, mut known) = (Vec::new(), HashSet::new());
    while let Some(id) = open.pop().filter(|_| pages.len() < most) {
        match document.get_dictionary(id).ok().and_then(kids) {
            // Nodes that hold each other have no end.
            Some(kids) if known.insert(id) => open.extend(kids),
            Some(_) => {}
            None => pages.push(id),
        }
    }
    pages
}
