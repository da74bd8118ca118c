//! lopdf: its objects and encodings, with a reading of page contents of our own.

mod content;
mod fonts;
mod matrix;
mod objects;

use lkr_domain::Parsed;
use lkr_parsers::{Parser, Result, Source};
use lopdf::{Dictionary, Document, LoadOptions, ObjectId};

use crate::{
    PdfOptions, error,
    outline::{self, Entry},
    page::{Page, Rect},
    read::{self, Engine, Picture},
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
        let options = LoadOptions::with_max_decompressed_size(MAX_STREAM);
        let open = || Document::load_mem_with_options(source.bytes, options).map_err(error::from_lopdf);
        let document = error::guarded(open)?;
        if document.is_encrypted() {
            return Err(error::encrypted());
        }
        let pages = document.page_iter().take(self.options.max_pages.saturating_add(1)).collect();
        read::read(&Open { document, pages }, source, &self.options)
    }
}

struct Open {
    document: Document,
    pages: Vec<ObjectId>,
}

impl Engine for Open {
    fn pages(&self) -> usize {
        self.pages.len()
    }

    fn outline(&self) -> Vec<Entry> {
        outline::entries(&self.document)
    }

    fn page(&self, index: usize) -> Result<Page> {
        let Some(id) = self.pages.get(index) else { return Ok(Page::default()) };
        let content =
            self.document.get_page_content_with_limit(*id, MAX_STREAM).map_err(error::from_lopdf)?;
        let runs = content::runs(&self.document, self.inherited(*id, b"Resources"), &content);
        let frame = self.frame(*id);
        let inside = runs.into_iter().filter(|run| frame.is_none_or(|frame| run.place.is_in(frame)));
        Ok(Page { frame, lines: runs::lines(inside), ..Page::default() })
    }

    fn second(&self, _: &[Page]) -> Option<Vec<Page>> {
        None
    }

    fn picture(&self, _: usize, _: u32) -> Option<Picture> {
        None
    }
}

impl Open {
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
