//! A document on its way: parsed, layered, its points made and not stored yet.

use bytes::Bytes;
use lkr_catalog::{PointSource, Progress, Stage, Task, points_of, tags_of};
use lkr_domain::{Counts, Document, Layer, Layered, Parsed, SPACE_DEFAULT, SparseVector, hex};
use lkr_layers::{LayerOptions, indexed_text, layer};
use lkr_models::average_terms;
use lkr_parsers::{Parser, Source, decode_blocks};
use lkr_text::Language;
use lkr_vectors::{Point, Tags};
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use tokio_util::sync::CancellationToken;

use crate::{Error, ErrorKind, Result, dense::passage, ingestor::Inner, long_texts::Share, pipeline::Report};

/// A document on its way: its record to be, its layers, and the points that are still without vectors.
pub(crate) struct Draft {
    pub(crate) document: Document,
    pub(crate) layered: Layered,
    points: Vec<Drafted>,
    /// What all of the points can be filtered by.
    pub(crate) tags: Tags,
    _share: Share,
}

/// A point that has its words, and its dense vector not yet.
pub(crate) struct Drafted {
    pub(crate) source: PointSource,
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

/// Parses and layers the text, and makes the points with their sparse vectors. Pure computing, off the async
/// workers.
pub(crate) async fn draft(
    inner: &Inner,
    task: &Task,
    text: Text,
    share: Share,
    report: Report,
) -> Result<(Draft, Vec<String>)> {
    let abandoned = CancellationToken::new();
    let _waiting = abandoned.clone().drop_guard();
    let (parser, sparse, task) = (inner.ports.parser.clone(), inner.sparse, task.clone());
    tokio::task::spawn_blocking(move || {
        let parsed = text.parse(&*parser)?;
        check_wanted(&abandoned)?;
        report.send_replace((Stage::Layer, Progress::default()));
        let layered = layer(&parsed, &task.input.title, &LayerOptions::default());
        let document = document(&task, &parsed.text, &layered);
        let language = Language::from_code(&layered.root.language);
        let texts = texts_of(&document.title, &parsed, &layered);
        let points = points_of(&document, &layered).into_iter().zip(texts).map(|(source, text)| {
            check_wanted(&abandoned)?;
            let sparse = sparse.passage(&text, language, average_terms(source.layer));
            Ok(Drafted { source, sparse })
        });
        let points = points.collect::<Result<_>>()?;
        let warnings = task.input.warnings.into_iter().chain(parsed.warnings).collect();
        let tags = tags_of(&document);
        Ok((Draft { document, layered, points, tags, _share: share }, warnings))
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

fn document(task: &Task, text: &str, layered: &Layered) -> Document {
    let now = OffsetDateTime::now_utc();
    let root = layered.root.clone();
    Document {
        doc_id: task.doc_id,
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
    }
}

/// What the sparse vectors are made of, in the order of [`points_of`]: every point's own text, title and headings
/// before it. The whole title stands before the whole text alone.
fn texts_of<'a>(
    title: &'a str,
    parsed: &'a Parsed,
    layered: &'a Layered,
) -> impl Iterator<Item = String> + 'a {
    let text = parsed.text.as_str();
    let bounds = CharBounds::new(text);
    let of_node = move |node: &lkr_domain::Node| {
        let body = bounds.cut(text, node.span);
        indexed_text(title, &node.path, body)
    };
    let of_node_too = of_node.clone();
    std::iter::once_with(move || [title, &parsed.body()].join("\n"))
        .chain(layered.l2.iter().map(of_node))
        .chain(layered.l3.iter().map(of_node_too))
        .chain(layered.chunks.iter().map(move |chunk| passage(title, chunk)))
}

impl Draft {
    pub(crate) fn of_layer(&self, layer: Layer) -> impl Iterator<Item = &Drafted> {
        self.points.iter().filter(move |point| point.source.layer == layer)
    }

    pub(crate) fn chunks(&self) -> impl Iterator<Item = &Drafted> {
        self.of_layer(Layer::Chunks)
    }

    pub(crate) fn categorise(&mut self, category: String) {
        self.document.category = category;
        self.tags = tags_of(&self.document);
    }

    /// The point as it is stored.
    pub(crate) fn whole(&self, point: &Drafted, dense: Option<Vec<f32>>) -> Point {
        point.source.point(&self.tags, point.sparse.clone(), dense)
    }
}

/// Finds the bytes of code points without walking the whole text each time: every 256th is noted.
#[derive(Clone)]
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
