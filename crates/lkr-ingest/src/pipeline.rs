//! One document through its stages.

use std::{collections::HashMap, ops::Range, time::Instant};

use lkr_catalog::{
    Active, DocumentResult, PointSource, Progress, Stage, Task, TaskResult, TaskStatus, Usage, l1_id,
    points_of, tags_of,
};
use lkr_domain::{Counts, Document, Layer, Layered, PointId, SPACE_DEFAULT, SparseVector, hex};
use lkr_layers::{LayerOptions, indexed_text, layer};
use lkr_models::average_terms;
use lkr_parsers::Source;
use lkr_text::Language;
use lkr_vectors::{Condition, Filter, Point, Tags, With};
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    Error, ErrorKind, Result, classify,
    dense::{embed, means_above, passage},
    ingestor::Inner,
    long_texts::Share,
    shelves::{Shelf, collection, set_tags_everywhere},
};

/// A document on its way: its record to be, its layers, and the points that are still without vectors.
struct Draft {
    document: Document,
    layered: Layered,
    points: Vec<Drafted>,
    /// What all of the points can be filtered by.
    tags: Tags,
    _share: Share,
}

/// A point that has its words, and its dense vector not yet.
struct Drafted {
    source: PointSource,
    sparse: SparseVector,
}

/// How a task stands, for whoever writes it down.
pub(crate) type Report = watch::Sender<(Stage, Progress)>;

/// Takes the document of `task` from its text to being visible.
pub(crate) async fn ingest(inner: &Inner, active: Active, task: &Task, report: &Report) -> Result<()> {
    let begun = Instant::now();
    report.send_replace((Stage::Parse, Progress::default()));
    let (text, share) = text(inner, task).await?;
    let (mut draft, mut warnings) = draft(inner, task, text, share, report.clone()).await?;
    let shelf = inner.shelves.enter().await;
    let (embedded, warning) = store(inner, &shelf, &mut draft, report).await?;
    report.send_replace((Stage::Publish, Progress::default()));
    warnings.extend(warning);
    warnings.extend(inner.ports.embedder.is_none().then(|| NO_MODEL.to_owned()));
    let mut task = task.clone();
    task.status = TaskStatus::Done;
    task.stage = Stage::Publish;
    task.progress = Progress { done: 1, total: 1 };
    task.updated_at = OffsetDateTime::now_utc();
    task.error = None;
    task.result = Some(TaskResult::Document(DocumentResult {
        title: draft.document.title.clone(),
        category: draft.document.category.clone(),
        language: draft.document.language.clone(),
        counts: draft.document.counts,
        embedded,
        usage: Usage::default(),
        warnings,
        elapsed_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
    }));
    let has_dense = shelf.shows_vectors(&inner.ports).await?;
    inner.ports.catalog.publish(active, &draft.document, &task, has_dense).await?;
    Ok(())
}

const NO_MODEL: &str = "no embedding model: the document is found by its words alone until there is one";

/// The text of the task's document. Where the store answers and only this text cannot be read, that is an attempt of
/// this task, which must not wait for ever for one damaged file.
async fn text(inner: &Inner, task: &Task) -> Result<(String, Share)> {
    let texts = &inner.ports.texts;
    let (doc_id, revision) = (task.doc_id, task.input.revision);
    let read = async {
        let length = texts.length(doc_id, revision).await?;
        let share = inner.long_texts.share(length).await;
        Ok::<_, lkr_catalog::Error>((texts.get(doc_id, revision).await?, share))
    };
    match read.await {
        Err(error) if error.is_retryable() && texts.health().await.is_ok() => {
            Err(Error::new(ErrorKind::Unreadable, "read text", error))
        }
        read => Ok(read?),
    }
}

/// Fails where nobody waits for the work any more.
fn check_wanted(abandoned: &CancellationToken) -> Result<()> {
    if abandoned.is_cancelled() {
        return Err(Error::new(ErrorKind::Overtaken, "layer", "nobody waits for it"));
    }
    Ok(())
}

/// Parses and layers the text, and makes the points with their sparse vectors. Pure computing, off the async
/// workers.
async fn draft(
    inner: &Inner,
    task: &Task,
    text: String,
    share: Share,
    report: Report,
) -> Result<(Draft, Vec<String>)> {
    let abandoned = CancellationToken::new();
    let _waiting = abandoned.clone().drop_guard();
    let (parser, sparse, task) = (inner.ports.parser.clone(), inner.sparse, task.clone());
    tokio::task::spawn_blocking(move || {
        let parsed = parser
            .parse(&Source::from(text.as_str()))
            .map_err(|error| Error::new(ErrorKind::Invalid, "parse", error))?;
        check_wanted(&abandoned)?;
        report.send_replace((Stage::Layer, Progress::default()));
        let layered = layer(&parsed, &task.input.title, &LayerOptions::default());
        let document = document(&task, &parsed.text, &layered);
        let language = Language::from_code(&layered.root.language);
        let texts = texts_of(&document.title, &parsed.text, &layered);
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
    }
}

/// What the sparse vectors are made of, in the order of [`points_of`]: every point's own text, title and headings
/// before it. The whole title stands before the whole text alone.
fn texts_of<'a>(title: &'a str, text: &'a str, layered: &'a Layered) -> impl Iterator<Item = String> + 'a {
    let bounds = CharBounds::new(text);
    let of_node = move |node: &lkr_domain::Node| {
        let body = bounds.cut(text, node.span);
        indexed_text(title, &node.path, body)
    };
    let of_node_too = of_node.clone();
    std::iter::once_with(move || [title, text].join("\n"))
        .chain(layered.l2.iter().map(of_node))
        .chain(layered.l3.iter().map(of_node_too))
        .chain(layered.chunks.iter().map(move |chunk| passage(title, chunk)))
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

/// Embeds what has no vector yet and stores all points: chunks by batches, with the last one the nodes above them, so
/// that the store can write both at once. By then the document has its vector, and with it its category. Answers how
/// many texts were embedded, and what is to be said of the category.
async fn store(
    inner: &Inner,
    shelf: &Shelf<'_>,
    draft: &mut Draft,
    report: &Report,
) -> Result<(u64, Option<String>)> {
    let total = draft.layered.chunks.len();
    let progress = |done: usize| (Stage::Embed, Progress { done: done as u64, total: total as u64 });
    let mut vectors: Vec<Option<Vec<f32>>> = Vec::with_capacity(total);
    let (mut embedded, mut warning) = (0, None);
    report.send_replace(progress(0));
    for from in (0..total).step_by(inner.options.batch.max(1)) {
        let batch = from..total.min(from + inner.options.batch.max(1));
        let (dense, fresh) = batch_vectors(inner, draft, batch.clone()).await?;
        embedded += fresh;
        vectors.extend(dense);
        if batch.end < total {
            store_chunks(inner, shelf, draft, batch.clone(), &vectors).await?;
        } else {
            warning = store_last(inner, shelf, draft, batch.clone(), &vectors).await?;
        }
        report.send_replace(progress(batch.end));
    }
    Ok((embedded, warning))
}

/// Stores the last chunks and all nodes, with the category that the document turns out to have. Chunks that were
/// stored before get it too; nobody sees any of them yet.
async fn store_last(
    inner: &Inner,
    shelf: &Shelf<'_>,
    draft: &mut Draft,
    batch: Range<usize>,
    vectors: &[Option<Vec<f32>>],
) -> Result<Option<String>> {
    let means =
        means_above(draft.chunks().map(|point| &point.source.origin).zip(vectors.iter().map(Option::as_ref)));
    let own = means.get(&l1_id(draft.document.doc_id, draft.document.revision));
    let (category, warning) = classify::category_of(inner, &draft.document, own.map(Vec::as_slice)).await;
    draft.categorise(category);
    let earlier = batch.start > 0;
    futures_util::try_join!(
        store_chunks(inner, shelf, draft, batch, vectors),
        store_nodes(inner, shelf, draft, &means)
    )?;
    if earlier && !draft.document.category.is_empty() {
        let filter = Filter::only(Condition::Revision(draft.document.doc_id, draft.document.revision));
        set_tags_everywhere(&*inner.ports.vectors, &filter, &draft.tags).await?;
    }
    Ok(warning)
}

/// Stores some of the chunks; `vectors` has those of all chunks up to them.
async fn store_chunks(
    inner: &Inner,
    shelf: &Shelf<'_>,
    draft: &Draft,
    batch: Range<usize>,
    vectors: &[Option<Vec<f32>>],
) -> Result<()> {
    let chunks = draft.chunks().zip(vectors).skip(batch.start).take(batch.len());
    let points = chunks.map(|(point, vector)| draft.whole(point, vector.clone())).collect();
    shelf.upsert(&inner.ports, Layer::Chunks, points).await
}

/// The vectors of a batch of chunks: those that an earlier attempt stored, else fresh ones, and how many these are.
async fn batch_vectors(
    inner: &Inner,
    draft: &Draft,
    batch: Range<usize>,
) -> Result<(Vec<Option<Vec<f32>>>, u64)> {
    let Some(embedder) = &inner.ports.embedder else { return Ok((vec![None; batch.len()], 0)) };
    let total = draft.layered.chunks.len();
    // Only a document of several batches can have some behind it.
    let points: Vec<&Drafted> = draft.chunks().skip(batch.start).take(batch.len()).collect();
    let model = &embedder.profile().id;
    if total > inner.options.batch
        && let Some(stored) = stored_vectors(inner, model, &points).await?
    {
        return Ok((stored, 0));
    }
    let chunks = draft.layered.chunks.iter().skip(batch.start).take(batch.len());
    let texts: Vec<String> = chunks.map(|chunk| passage(&draft.document.title, chunk)).collect();
    let (vectors, fresh) = embed(&**embedder, &texts).await?;
    Ok((vectors.into_iter().map(Some).collect(), fresh))
}

/// The vectors of `model` that are stored for these very chunks, if all of them are.
async fn stored_vectors(
    inner: &Inner,
    model: &str,
    batch: &[&Drafted],
) -> Result<Option<Vec<Option<Vec<f32>>>>> {
    let collection = collection(Layer::Chunks, Some(model))?;
    let ids: Vec<PointId> = batch.iter().map(|point| point.source.id).collect();
    let stored = match inner.ports.vectors.get(&collection, &ids, With::All).await {
        Err(error) if error.kind() == lkr_vectors::ErrorKind::NotFound => return Ok(None),
        stored => stored?,
    };
    let vectors: Vec<_> = batch
        .iter()
        .zip(stored)
        .map(|(point, stored)| stored.filter(|stored| stored.payload == point.source.payload)?.dense)
        .collect();
    Ok(vectors.iter().all(Option::is_some).then_some(vectors))
}

async fn store_nodes(
    inner: &Inner,
    shelf: &Shelf<'_>,
    draft: &Draft,
    means: &HashMap<PointId, Vec<f32>>,
) -> Result<()> {
    let points_of = |layer| {
        let points =
            draft.of_layer(layer).map(|point| draft.whole(point, means.get(&point.source.id).cloned()));
        points.collect::<Vec<_>>()
    };
    let writes = [Layer::L1, Layer::L2, Layer::L3].map(|layer| {
        let points = points_of(layer);
        shelf.upsert(&inner.ports, layer, points)
    });
    futures_util::future::try_join_all(writes).await?;
    Ok(())
}

impl Draft {
    fn of_layer(&self, layer: Layer) -> impl Iterator<Item = &Drafted> {
        self.points.iter().filter(move |point| point.source.layer == layer)
    }

    fn chunks(&self) -> impl Iterator<Item = &Drafted> {
        self.of_layer(Layer::Chunks)
    }

    fn categorise(&mut self, category: String) {
        self.document.category = category;
        self.tags = tags_of(&self.document);
    }

    /// The point as it is stored.
    fn whole(&self, point: &Drafted, dense: Option<Vec<f32>>) -> Point {
        point.source.point(&self.tags, point.sparse.clone(), dense)
    }
}
