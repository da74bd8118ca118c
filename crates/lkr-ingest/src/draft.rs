//! A document on its way: parsed, layered, its points made as they are asked for.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use lkr_catalog::{PointSource, Task, points_in, tags_of};
use lkr_domain::{
    Counts, DocId, Document, Fingerprint, Layer, Layered, Node, Parsed, SPACE_DEFAULT, SparseVector, hex,
};
use lkr_layers::{LayerOptions, indexed_text, layer};
use lkr_models::{SparseEncoder, average_terms};
use lkr_parsers::{Parser, Source, decode_blocks};
use lkr_text::{Language, estimate_tokens};
use lkr_vectors::{Point, Tags};
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use tokio_util::sync::CancellationToken;

use crate::{
    Error, ErrorKind, Result,
    dense::passage,
    describe::{Described, Part, Section},
    fingerprint::fingerprint,
    ingestor::Inner,
    long_texts::Share,
};

/// A document on its way: its record to be, and its layers, of which points are made batch by batch: all at once they
/// would take many times the memory of the text.
pub(crate) struct Draft {
    pub(crate) document: Document,
    /// What all of the points can be filtered by.
    pub(crate) tags: Tags,
    body: Arc<Body>,
    _share: Share,
}

/// What does not change any more.
struct Body {
    doc_id: DocId,
    revision: u64,
    text: String,
    bounds: CharBounds,
    layered: Layered,
    /// The words of L1, which are those of the text without its furniture.
    root: SparseVector,
    language: Option<Language>,
    sparse: SparseEncoder,
}

/// A point that has its words, and its dense vector not yet.
pub(crate) struct Drafted {
    pub(crate) source: PointSource,
    /// What is embedded of a chunk; empty for nodes.
    pub(crate) passage: String,
    sparse: SparseVector,
}

/// A text as it is stored.
pub(crate) struct Text {
    pub(crate) text: String,
    /// Its blocks as they were written down, where it was extracted from a file.
    pub(crate) blocks: Option<Bytes>,
}

impl Text {
    fn parse(self, parser: &dyn Parser) -> Result<Parsed> {
        let Self { text, blocks } = self;
        let Some(blocks) = blocks else {
            let parsed = parser.parse(&Source::from(text.as_str()));
            return parsed.map_err(|error| Error::new(ErrorKind::Invalid, "parse", error));
        };
        let blocks = decode_blocks(&blocks, &text);
        let blocks = blocks.map_err(|error| Error::new(ErrorKind::Unreadable, "read blocks", error))?;
        Ok(Parsed { text, blocks, warnings: Vec::new() })
    }
}

/// Parses the text, and tells it from others. Pure computing, off the async workers.
pub(crate) async fn parse(inner: &Inner, text: Text) -> Result<(Parsed, Fingerprint)> {
    let parser = inner.ports.parser.clone();
    tokio::task::spawn_blocking(move || {
        let parsed = text.parse(&*parser)?;
        let fingerprint = fingerprint(&parsed.text);
        Ok((parsed, fingerprint))
    })
    .await?
}

/// Layers a parsed text. Pure computing, off the async workers.
pub(crate) async fn draft(
    inner: &Inner,
    task: &Task,
    parsed: Parsed,
    fingerprint: Fingerprint,
    share: Share,
) -> Result<(Draft, Vec<String>)> {
    let abandoned = CancellationToken::new();
    let _waiting = abandoned.clone().drop_guard();
    let (doc_id, sparse, task) = (task.doc_id()?, inner.sparse, task.clone());
    tokio::task::spawn_blocking(move || {
        let layered = layer(&parsed, &task.input.title, &LayerOptions::default());
        let document = document(doc_id, &task, &parsed.text, &layered, fingerprint);
        check_wanted(&abandoned)?;
        let language = Language::from_code(&layered.root.language);
        // The whole title stands before the whole text alone.
        let whole = [document.title.as_str(), &parsed.body()].join("\n");
        let root = sparse.passage(&whole, language, average_terms(Layer::L1));
        let Parsed { text, warnings, .. } = parsed;
        let warnings = task.input.warnings.into_iter().chain(warnings).collect();
        let (tags, bounds) = (tags_of(&document), CharBounds::new(&text));
        let Document { doc_id, revision, .. } = document;
        let body = Arc::new(Body { doc_id, revision, text, bounds, layered, root, language, sparse });
        Ok((Draft { document, tags, body, _share: share }, warnings))
    })
    .await?
}

/// Fails where nobody waits for the work any more.
fn check_wanted(abandoned: &CancellationToken) -> Result<()> {
    if abandoned.is_cancelled() {
        return Err(Error::new(ErrorKind::Overtaken, "layer", "nobody waits for it"));
    }
    Ok(())
}

fn document(doc_id: DocId, task: &Task, text: &str, layered: &Layered, fingerprint: Fingerprint) -> Document {
    let now = OffsetDateTime::now_utc();
    let root = layered.root.clone();
    Document {
        doc_id,
        space: SPACE_DEFAULT.to_owned(),
        revision: task.input.revision,
        title: root.title,
        source: task.input.source.clone(),
        summary: root.summary,
        keywords: root.keywords,
        category: String::new(),
        language: root.language,
        metadata: task.input.metadata.clone(),
        counts: Counts {
            l1: 1,
            l2: layered.l2.len() as u64,
            l3: layered.l3.len() as u64,
            chunks: layered.chunks.len() as u64,
        },
        char_count: root.char_count,
        content_sha256: hex(&Sha256::digest(text)),
        created_at: now,
        updated_at: now,
        created_by: task.created_by.clone(),
        category_by_hand: false,
        original: task.input.original.clone(),
        fingerprint: Some(fingerprint),
    }
}

impl Draft {
    /// How many points a layer has.
    pub(crate) fn count(&self, layer: Layer) -> u32 {
        u32::try_from(self.document.counts.of(layer)).unwrap_or(u32::MAX)
    }

    /// The ordinals of the L2 and the L3 node that a chunk lies in.
    pub(crate) fn above(&self, chunk: u32) -> Option<(u32, u32)> {
        let Layered { l3, chunks, .. } = &self.body.layered;
        let parent = chunks.get(chunk as usize)?.parent;
        Some((l3.get(parent as usize)?.parent?, parent))
    }

    /// The points of a layer with these ordinals. Pure computing, off the async workers.
    pub(crate) async fn points(&self, layer: Layer, ordinals: Range<u32>) -> Result<Vec<Drafted>> {
        if ordinals.is_empty() {
            return Ok(Vec::new());
        }
        let body = Arc::clone(&self.body);
        Ok(tokio::task::spawn_blocking(move || body.points(layer, ordinals)).await?)
    }

    /// A section, for somebody to describe.
    pub(crate) async fn section(&self, ordinal: u32) -> Result<Section> {
        let body = Arc::clone(&self.body);
        Ok(tokio::task::spawn_blocking(move || body.section(ordinal)).await?)
    }

    /// The document as a whole, for somebody to describe: what its sections say, or their summaries where that is much.
    pub(crate) async fn whole_document(&self) -> Result<Section> {
        let body = Arc::clone(&self.body);
        Ok(tokio::task::spawn_blocking(move || body.whole()).await?)
    }

    /// Takes over what was said of sections, of what lies in them, and of the document.
    pub(crate) fn describe(&mut self, all: Vec<Described>) -> Result<()> {
        let lost = || Error::new(ErrorKind::Internal, "describe", "points are being made already");
        let Body { layered, .. } = Arc::get_mut(&mut self.body).ok_or_else(lost)?;
        for Described { layer, ordinal, said, parts } in all {
            if layer == Layer::L1 {
                layered.root.summary.clone_from(&said.summary);
                self.document.summary = said.summary;
                if !said.keywords.is_empty() {
                    layered.root.keywords.clone_from(&said.keywords);
                    self.document.keywords = said.keywords;
                }
                continue;
            }
            if let Some(node) = layered.l2.get_mut(ordinal as usize) {
                node.summary = said.summary;
            }
            for (ordinal, summary) in parts.into_iter().zip(said.parts).filter(|(_, said)| !said.is_empty()) {
                if let Some(node) = layered.l3.get_mut(ordinal as usize) {
                    node.summary = summary;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn categorise(&mut self, category: String) {
        self.document.category = category;
        self.tags = tags_of(&self.document);
    }

    /// The point as it is stored.
    pub(crate) fn whole(&self, point: Drafted, dense: Option<Vec<f32>>) -> Point {
        point.source.point(&self.tags, point.sparse, dense)
    }
}

/// Up to so many tokens a document is shown as it is, and beyond as the summaries of its sections; of these so many are
/// shown at the most.
const WHOLE_TOKENS: usize = 3_000;
const WHOLE_SECTIONS: usize = 60;

impl Body {
    fn section(&self, ordinal: u32) -> Section {
        let Layered { root, l2, l3, .. } = &self.layered;
        let node = l2.get(ordinal as usize);
        let headings = node.into_iter().flat_map(|node| node.path.iter().map(String::as_str));
        let titles: Vec<&str> = std::iter::once(root.title.as_str()).chain(headings).collect();
        let first = l3.partition_point(|node| node.parent < Some(ordinal));
        let own = l3.iter().skip(first).take_while(|node| node.parent == Some(ordinal));
        let part = |node: &Node| Part {
            ordinal: node.ordinal,
            title: node.title.clone(),
            text: self.bounds.cut(&self.text, node.span).to_owned(),
        };
        Section { layer: Layer::L2, ordinal, heading: titles.join(" > "), parts: own.map(part).collect() }
    }

    fn whole(&self) -> Section {
        let Layered { root, l2, .. } = &self.layered;
        let cut = |node: &Node| self.bounds.cut(&self.text, node.span);
        let is_short = l2.iter().map(|node| node.span.len()).sum::<u32>() as usize <= 4 * WHOLE_TOKENS
            && l2.iter().map(|node| estimate_tokens(cut(node))).sum::<usize>() <= WHOLE_TOKENS;
        let step = if is_short { 1 } else { l2.len().div_ceil(WHOLE_SECTIONS).max(1) };
        let said = l2.iter().step_by(step).map(|node| match is_short {
            true => cut(node).to_owned(),
            false => format!("{}: {}", node.title, node.summary),
        });
        let text = said.collect::<Vec<_>>().join("\n\n");
        let parts = vec![Part { ordinal: 0, title: String::new(), text }];
        Section { layer: Layer::L1, ordinal: 0, heading: root.title.clone(), parts }
    }

    fn points(&self, layer: Layer, ordinals: Range<u32>) -> Vec<Drafted> {
        let sources = points_in(self.doc_id, self.revision, &self.layered, layer, ordinals);
        sources.into_iter().map(|source| self.drafted(source)).collect()
    }

    /// A point's words are those of its own text, with title and headings before it.
    fn drafted(&self, source: PointSource) -> Drafted {
        let Layered { root, l2, l3, chunks } = &self.layered;
        let ordinal = source.origin.ordinal as usize;
        let of_node = |node: Option<&Node>| {
            let text =
                |node: &Node| indexed_text(&root.title, &node.path, self.bounds.cut(&self.text, node.span));
            node.map(text).unwrap_or_default()
        };
        let encode = |text: &str| self.sparse.passage(text, self.language, average_terms(source.layer));
        let (sparse, passage) = match source.layer {
            Layer::L1 => (self.root.clone(), String::new()),
            Layer::L2 => (encode(&of_node(l2.get(ordinal))), String::new()),
            Layer::L3 => (encode(&of_node(l3.get(ordinal))), String::new()),
            Layer::Chunks => {
                let passage =
                    chunks.get(ordinal).map(|chunk| passage(&root.title, chunk)).unwrap_or_default();
                (encode(&passage), passage)
            }
        };
        Drafted { source, passage, sparse }
    }
}

/// Finds the bytes of code points without walking the whole text each time: every 256th is noted.
struct CharBounds {
    every: Vec<usize>,
}

const STRIDE: usize = 256;

impl CharBounds {
    fn new(text: &str) -> Self {
        Self { every: text.char_indices().step_by(STRIDE).map(|(byte, _)| byte).collect() }
    }

    fn cut<'t>(&self, text: &'t str, span: lkr_domain::CharSpan) -> &'t str {
        let range = self.byte(text, span.start)..self.byte(text, span.end);
        text.get(range).unwrap_or_default()
    }

    fn byte(&self, text: &str, character: u32) -> usize {
        let character = character as usize;
        let Some(&from) = self.every.get(character / STRIDE) else { return text.len() };
        let rest = text.get(from..).unwrap_or_default();
        rest.char_indices().nth(character % STRIDE).map_or(text.len(), |(byte, _)| from + byte)
    }
}
