//! The layers of a document that is being ingested, and the points and sections made from them.

use std::ops::Range;

use lkr_catalog::{PointSource, points_in};
use lkr_domain::{DocId, Layer, Layered, Node, Root, SparseVector};
use lkr_layers::indexed_text;
use lkr_models::{SparseEncoder, average_terms};
use lkr_text::{DocumentTerms, estimate_tokens};
use lkr_vectors::{Point, Tags};

use crate::{
    char_index::CharIndex,
    passage_vectors::passage,
    section::{Part, Section},
};

/// A point with its sparse vector and without its dense one.
pub(crate) struct DraftPoint {
    pub(crate) source: PointSource,
    /// The text to embed of a chunk; empty for nodes.
    pub(crate) passage: String,
    sparse: SparseVector,
}

impl DraftPoint {
    /// The point to store.
    pub(crate) fn finish(self, tags: &Tags, dense: Option<Vec<f32>>) -> Point {
        self.source.point(tags, self.sparse, dense)
    }
}

/// The longest document, in estimated tokens, that is shown to the language model as it is. Of a longer one the model is
/// shown the summaries of its sections.
const MAX_WHOLE_TOKENS: usize = 3_000;
/// The most section summaries that are shown.
const MAX_WHOLE_SECTIONS: usize = 60;

/// The parts of a draft that no longer change.
pub(crate) struct DraftBody {
    pub(crate) doc_id: DocId,
    pub(crate) revision: u64,
    pub(crate) text: String,
    pub(crate) index: CharIndex,
    pub(crate) layered: Layered,
    /// The sparse vector of L1, which covers the whole text without its furniture.
    pub(crate) root: SparseVector,
    /// The terms of its words.
    pub(crate) terms: DocumentTerms,
    pub(crate) sparse: SparseEncoder,
}

/// The title of a document whose nodes and chunks are indexed with another one.
pub(crate) fn unindexed_title(root: &Root) -> Option<&str> {
    Some(root.title.as_str()).filter(|title| *title != root.indexed_title.text)
}

impl DraftBody {
    /// The ordinals of the L2 and the L3 node that a chunk lies in.
    pub(crate) fn parents(&self, chunk: u32) -> Option<(u32, u32)> {
        let Layered { l3, chunks, .. } = &self.layered;
        let parent = chunks.get(chunk as usize)?.parent;
        Some((l3.get(parent as usize)?.parent?, parent))
    }

    /// A section with the texts of its subsections and passages.
    pub(crate) fn section(&self, ordinal: u32) -> Section {
        let Layered { root, l2, l3, .. } = &self.layered;
        let node = l2.get(ordinal as usize);
        let headings = node.into_iter().flat_map(|node| node.path.iter().map(String::as_str));
        let titles: Vec<&str> = std::iter::once(root.title.as_str()).chain(headings).collect();
        let first = l3.partition_point(|node| node.parent < Some(ordinal));
        let children = l3.iter().skip(first).take_while(|node| node.parent == Some(ordinal));
        let part = |node: &Node| Part {
            ordinal: node.ordinal,
            title: node.title.clone(),
            text: self.slice(node).to_owned(),
        };
        Section {
            layer: Layer::L2,
            ordinal,
            heading: titles.join(" > "),
            parts: children.map(part).collect(),
        }
    }

    /// The document as one section: its sections as they are, or the summaries of evenly spaced ones if it is long.
    pub(crate) fn whole_document(&self) -> Section {
        let Layered { root, l2, .. } = &self.layered;
        let is_short = l2.iter().map(|node| node.span.len()).sum::<u32>() as usize <= 4 * MAX_WHOLE_TOKENS
            && l2.iter().map(|node| estimate_tokens(self.slice(node))).sum::<usize>() <= MAX_WHOLE_TOKENS;
        let step = if is_short { 1 } else { l2.len().div_ceil(MAX_WHOLE_SECTIONS).max(1) };
        let sections = l2.iter().step_by(step).map(|node| match is_short {
            true => self.slice(node).to_owned(),
            false => format!("{}: {}", node.title, node.summary),
        });
        let text = sections.collect::<Vec<_>>().join("\n\n");
        let parts = vec![Part { ordinal: 0, title: String::new(), text }];
        Section { layer: Layer::L1, ordinal: 0, heading: root.title.clone(), parts }
    }

    fn slice(&self, node: &Node) -> &str {
        self.index.slice(&self.text, node.span)
    }

    pub(crate) fn points(&self, layer: Layer, ordinals: Range<u32>) -> Vec<DraftPoint> {
        let sources = points_in(self.doc_id, self.revision, &self.layered, layer, ordinals);
        sources.into_iter().map(|source| self.point(source)).collect()
    }

    /// The sparse vector of a point covers its own text, preceded by title and headings. That of the first chunk also
    /// covers a title that is indexed nowhere else: the name of a file finds it.
    fn point(&self, source: PointSource) -> DraftPoint {
        let Layered { root, l2, l3, chunks } = &self.layered;
        let ordinal = source.origin.ordinal as usize;
        let node_text = |node: Option<&Node>| {
            node.map(|node| indexed_text(&root.indexed_title, &node.path, self.slice(node)))
                .unwrap_or_default()
        };
        let encode = |text: &str| self.sparse.part(text, &self.terms, average_terms(source.layer));
        let (sparse, passage) = match source.layer {
            Layer::L1 => (self.root.clone(), String::new()),
            Layer::L2 => (encode(&node_text(l2.get(ordinal))), String::new()),
            Layer::L3 => (encode(&node_text(l3.get(ordinal))), String::new()),
            Layer::Chunks => {
                let chunk = chunks.get(ordinal);
                let passage = chunk.map(|chunk| passage(&root.indexed_title, chunk)).unwrap_or_default();
                let sparse = match unindexed_title(root).filter(|_| ordinal == 0) {
                    Some(title) => encode(&[&passage, title].join("\n")),
                    None => encode(&passage),
                };
                (sparse, passage)
            }
        };
        DraftPoint { source, passage, sparse }
    }
}
