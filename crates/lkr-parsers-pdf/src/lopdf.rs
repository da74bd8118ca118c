//! The engine lopdf: its objects and encodings, with an interpreter of page contents that is part of this crate.

mod content;
mod encodings;
mod fields;
mod fonts;
mod forms;
mod ink;
mod layers;
mod marked_content;
mod matrix;
mod objects;
mod painted_areas;
mod paths;
mod repair;
mod scrub;
mod state;
mod streams;
mod tex;
mod text;
mod to_unicode;
mod tokens;

use std::collections::HashSet;

use content::{Interpreter, PageContent};
pub(crate) use ink::PALE;
use layers::Layers;
use lkr_domain::Parsed;
use lkr_parsers::{Parser, Result, Source};
use lopdf::{Dictionary, Document, LoadOptions, Object, ObjectId};
pub(crate) use painted_areas::PaintedAreas;
pub(crate) use scrub::{PaleText, Scrubbed};
pub(crate) use text::LEAST_SIZE;
use text::{TextItem, TextVisibility};

use crate::{
    PdfOptions, error,
    outline::{self, Entry},
    page::{Line, Page, Rect},
    read::{self, Engine},
    render::PageRenderer,
    runs,
};

/// Most bytes of an unpacked stream.
const MAX_STREAM: usize = 32 * 1024 * 1024;

/// Most levels of a page tree.
const MAX_DEPTH: usize = 32;

/// Most levels of forms within forms whose fonts are looked at before they are drawn.
const FORM_DEPTH: usize = 2;

/// Parses PDF files with lopdf. It cannot render pages, so it uses no OCR.
#[derive(Debug, Clone, Default)]
pub struct Lopdf {
    options: PdfOptions,
}

impl Lopdf {
    /// The name of the plugin.
    pub(crate) const NAME: &str = "lopdf";

    /// Creates a parser with these options.
    #[must_use]
    pub const fn new(options: PdfOptions) -> Self {
        Self { options }
    }
}

impl Parser for Lopdf {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn parse(&self, source: &Source<'_>) -> Result<Parsed> {
        error::check_header(source.bytes)?;
        read::read(&LopdfDocument::load(source.bytes, self.options.max_pages)?, source, &self.options)
    }
}

/// A document opened by lopdf.
pub(crate) struct LopdfDocument {
    document: Document,
    pages: Vec<ObjectId>,
    layers: Layers,
}

impl Engine for LopdfDocument {
    fn pages(&self) -> usize {
        self.pages.len()
    }

    fn outline(&self) -> Vec<Entry> {
        outline::entries(&self.document)
    }

    fn page(&self, index: usize) -> Result<Page> {
        let PageContent { texts, .. } = self.content_of(index)?;
        let hidden = texts
            .iter()
            .filter(|text| matches!(text.visibility, TextVisibility::Hidden | TextVisibility::PaleText));
        let hidden = hidden.filter(|text| !text.run.text.trim().is_empty()).count();
        let is_seen = |visibility| {
            matches!(
                visibility,
                TextVisibility::Shown | TextVisibility::Undrawn | TextVisibility::Transparent
            )
        };
        // Type 3 fonts may have any size, but the layout needs at least one point.
        let is_read =
            |text: &TextItem| is_seen(text.visibility) && text.run.size >= 1.0 && !text.run.text.is_empty();
        let visible = texts.into_iter().filter(is_read);
        let runs = visible.map(|text| runs::Run { is_undrawn: false, ..text.run });
        let frame = self.pages.get(index).and_then(|page| self.frame(*page));
        Ok(Page { frame, hidden, lines: runs::lines(runs), ..Page::default() })
    }

    fn field_values(&self, index: usize) -> Vec<Line> {
        self.field_values(index)
    }

    fn shown_text(&self, index: usize) -> usize {
        self.shown_text(index)
    }

    fn fallback_pages(&self, _: &[Page]) -> Option<Vec<Page>> {
        None
    }

    fn renderer(&self) -> std::result::Result<&dyn PageRenderer, String> {
        Err("the plugin lopdf cannot render pages".to_owned())
    }

    fn has_picture(&self, index: usize) -> Option<bool> {
        self.painted_areas(index).map(|areas| !areas.is_empty())
    }

    fn has_lost_content(&self, index: usize) -> bool {
        let content = |page: &ObjectId| self.complete_content(*page);
        self.pages.get(index).is_some_and(|page| error::guarded(|| content(page)).is_err())
    }

    fn is_encrypted(&self) -> bool {
        self.document.was_encrypted()
    }
}

impl LopdfDocument {
    /// Opens a document and lists up to `max_pages` pages.
    pub(crate) fn load(bytes: &[u8], max_pages: usize) -> Result<Self> {
        let options = LoadOptions::with_max_decompressed_size(MAX_STREAM);
        let open = || Document::load_mem_with_options(bytes, options).map_err(error::from_lopdf);
        let document = error::guarded(open)?;
        if let Ok(cipher) = document.get_encrypted() {
            return Err(if has_short_key(cipher) { error::unsupported_cipher() } else { error::encrypted() });
        }
        let pages = pages(&document, max_pages.saturating_add(1));
        let layers = Layers::new(&document);
        Ok(Self { document, pages, layers })
    }

    /// How many pages were listed.
    pub(crate) const fn page_count(&self) -> usize {
        self.pages.len()
    }

    /// The painted areas of a page besides its text, if they are known.
    pub(crate) fn painted_areas(&self, index: usize) -> Option<PaintedAreas> {
        error::guarded(|| Ok(self.content_of(index)?.painted_areas)).ok()
    }

    /// Whether most letters on vertical lines of a page are read upward; `None` if it has none.
    pub(crate) fn vertical_direction(&self, index: usize) -> Option<bool> {
        let upward = error::guarded(|| Ok(self.content_of(index)?.upward)).ok()?;
        (upward != 0).then_some(upward > 0)
    }

    /// Whether a font of a page, or of a form that it may draw, has codes of its own. Other engines may split them wrongly.
    pub(crate) fn has_fonts_with_own_codes(&self, index: usize) -> bool {
        let resources = self.pages.get(index).and_then(|page| self.inherited(*page, b"Resources"));
        resources.is_some_and(|resources| self.have_own_codes(resources, FORM_DEPTH))
    }

    /// Whether fonts of these resources, or of forms among them, have codes of their own.
    fn have_own_codes(&self, resources: &Dictionary, depth: usize) -> bool {
        let all = |key: &[u8]| {
            let objects = resources.get_deref(key, &self.document).and_then(Object::as_dict).ok();
            let objects = objects.into_iter().flat_map(Dictionary::iter);
            objects.filter_map(|(_, object)| Some(self.document.dereference(object).ok()?.1))
        };
        let in_form = |form: &Dictionary| {
            let resources = form.get_deref(b"Resources", &self.document).and_then(Object::as_dict);
            resources.is_ok_and(|resources| self.have_own_codes(resources, depth - 1))
        };
        let mut forms = all(b"XObject").filter_map(|form| Some(&form.as_stream().ok()?.dict));
        let mut fonts = all(b"Font").filter_map(|font| font.as_dict().ok());
        fonts.any(|font| fonts::has_own_codes(&self.document, font)) || (depth > 0 && forms.any(in_form))
    }

    /// How many bytes of visible text the content of a page sets.
    pub(crate) fn shown_text(&self, index: usize) -> usize {
        let shown = |content: PageContent| -> usize {
            let texts = content.texts.iter().filter(|text| text.visibility == TextVisibility::Shown);
            texts.map(|text| text.length).sum()
        };
        error::guarded(|| self.content_of(index)).map_or(0, shown)
    }

    /// Interprets the content of a page.
    fn content_of(&self, index: usize) -> Result<PageContent> {
        let Some(id) = self.pages.get(index) else { return Ok(PageContent::default()) };
        let mut interpreter = Interpreter::new(&self.document, &self.layers, None);
        Ok(self.interpret(&mut interpreter, *id, &self.content(*id)?))
    }

    /// Interprets the content of a page.
    fn interpret<'a>(
        &'a self,
        interpreter: &mut Interpreter<'a>,
        page: ObjectId,
        content: &[u8],
    ) -> PageContent {
        let unit =
            self.document.get_dictionary(page).and_then(|page| page.get_deref(b"UserUnit", &self.document));
        let unit = unit.and_then(Object::as_float).unwrap_or(1.0).max(1.0);
        interpreter.interpret(self.inherited(page, b"Resources"), content, (self.frame(page), unit))
    }

    fn content(&self, page: ObjectId) -> Result<Vec<u8>> {
        self.document.get_page_content_with_limit(page, MAX_STREAM).map_err(error::from_lopdf)
    }

    fn is_rotated(&self, page: ObjectId) -> bool {
        let angle =
            self.holder(page, b"Rotate").and_then(|page| page.get_deref(b"Rotate", &self.document).ok());
        angle.and_then(|angle| angle.as_i64().ok()).is_some_and(|angle| angle % 360 != 0)
    }

    /// The nearest dictionary with this key, from the page to the root of the page tree.
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

/// Whether a file with encryption V 4 declares a key shorter than 128 bits. lopdf rejects the right password of such files.
fn has_short_key(cipher: &Dictionary) -> bool {
    let number = |key| cipher.get(key).and_then(Object::as_i64).ok();
    number(b"V") == Some(4) && number(b"Length").is_some_and(|bits| bits < 128)
}

/// The first pages of a document. A node without kids counts as a page, regardless of its type.
fn pages(document: &Document, max_pages: usize) -> Vec<ObjectId> {
    let kids = |node: &Dictionary| {
        let kids = node.get_deref(b"Kids", document).and_then(Object::as_array).ok()?;
        Some(kids.iter().rev().filter_map(|kid| kid.as_reference().ok()).collect::<Vec<_>>())
    };
    let root = document.catalog().and_then(|catalog| catalog.get_deref(b"Pages", document));
    let mut open = root.and_then(Object::as_dict).ok().and_then(kids).unwrap_or_default();
    let (mut pages, mut visited) = (Vec::new(), HashSet::new());
    while let Some(id) = open.pop().filter(|_| pages.len() < max_pages) {
        match document.get_dictionary(id).ok().and_then(kids) {
            // Cyclic nodes would never end.
            Some(kids) if visited.insert(id) => open.extend(kids),
            Some(_) => {}
            None => pages.push(id),
        }
    }
    pages
}
