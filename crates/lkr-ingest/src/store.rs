//! Vectors of a document's points, and storing them.

use std::ops::Range;

use lkr_catalog::{Progress, Stage, l1_id};
use lkr_domain::{Layer, PointId};
use lkr_vectors::{Condition, Filter, Include, Point};

use crate::{
    Error, ErrorKind, Result,
    classify::{self, Category},
    collection_sets::{CollectionSet, collection, set_tags_everywhere},
    dense::{Means, batches, embed},
    draft::{Draft, Drafted},
    ingestor::Inner,
    pipeline::Report,
    reuse::Earlier,
};

/// Embeds what has no vector yet and stores all points: chunks by batches, with each one the nodes above it that have
/// no chunks to come, so that the store can write them at once and no more is in memory than a batch. With the last
/// one the document has its vector, and with it its category. Answers how many texts were embedded, and the category.
pub(crate) async fn store(
    inner: &Inner,
    shelf: &CollectionSet<'_>,
    draft: &mut Draft,
    earlier: &Earlier,
    report: &Report,
) -> Result<(u64, Category)> {
    let total = draft.count(Layer::Chunks);
    let progress = |done: u32| (Stage::Embed, Progress { done: done.into(), total: total.into() });
    let (mut means, mut nodes) = (Means::default(), Nodes::default());
    let (mut embedded, mut category) = (0, Category::default());
    report.send_replace(progress(0));
    for batch in batches(total, inner.options.batch) {
        let chunks = draft.points(Layer::Chunks, batch.clone()).await?;
        let (vectors, fresh) = batch_vectors(inner, shelf, total, &chunks, earlier).await?;
        embedded += fresh;
        for (chunk, vector) in chunks.iter().zip(&vectors) {
            vector.iter().for_each(|vector| means.add(&chunk.source.origin, vector));
        }
        let chunks = chunks.into_iter().zip(vectors);
        if batch.end == total {
            category = store_last(inner, shelf, draft, batch.clone(), chunks, nodes, &mut means).await?;
        } else {
            let chunks = chunks.map(|(chunk, vector)| draft.whole(chunk, vector)).collect();
            let lost = || Error::new(ErrorKind::Internal, "store points", "a chunk lies in no node");
            let ready = draft.above(batch.end).ok_or_else(lost)?;
            store_points(inner, shelf, draft, chunks, nodes.up_to(ready), &mut means).await?;
        }
        report.send_replace(progress(batch.end));
    }
    Ok((embedded, category))
}

/// The first nodes that are not stored yet: their ordinals in L2 and L3.
#[derive(Debug, Clone, Copy, Default)]
struct Nodes {
    l2: u32,
    l3: u32,
}

/// Nodes to be stored, by layer.
type Ready = [(Layer, Range<u32>); 2];

impl Nodes {
    /// Those before the ones given, which are stored from now on.
    fn up_to(&mut self, (l2, l3): (u32, u32)) -> Ready {
        let from = std::mem::replace(self, Self { l2, l3 });
        [(Layer::L2, from.l2..l2), (Layer::L3, from.l3..l3)]
    }
}

/// Stores the last chunks and all nodes that are left, with the category that the document turns out to have. What was
/// stored before gets it too; nobody sees any of it yet.
async fn store_last(
    inner: &Inner,
    shelf: &CollectionSet<'_>,
    draft: &mut Draft,
    batch: Range<u32>,
    chunks: impl Iterator<Item = (Drafted, Option<Vec<f32>>)>,
    mut nodes: Nodes,
    means: &mut Means,
) -> Result<Category> {
    let own = means.take(&l1_id(draft.document.doc_id, draft.document.revision));
    let model = shelf.embedder().map(|embedder| embedder.profile().id.as_str());
    let vector = own.as_deref().zip(model);
    let category = classify::category_of(inner, &draft.document, vector).await;
    draft.categorise(category.name.clone());
    let chunks = chunks.map(|(chunk, vector)| draft.whole(chunk, vector)).collect();
    let ready = nodes.up_to((draft.count(Layer::L2), draft.count(Layer::L3)));
    let root = draft.points(Layer::L1, 0..1).await?;
    let root = root.into_iter().map(|point| draft.whole(point, own.clone())).collect();
    store_points(inner, shelf, draft, chunks, ready, means).await?;
    // Last: where it is, all are.
    upsert(inner, shelf, Layer::L1, root).await?;
    if batch.start > 0 && !draft.document.category.is_empty() {
        let filter = Filter::only(Condition::Revision(draft.document.doc_id, draft.document.revision));
        set_tags_everywhere(&*inner.ports.vectors, &filter, &draft.tags).await?;
    }
    Ok(category)
}

/// Stores chunks, and the nodes that are ready.
async fn store_points(
    inner: &Inner,
    shelf: &CollectionSet<'_>,
    draft: &Draft,
    chunks: Vec<Point>,
    [l2, l3]: Ready,
    means: &mut Means,
) -> Result<()> {
    let l2 = (l2.0, nodes(draft, l2, means).await?);
    let l3 = (l3.0, nodes(draft, l3, means).await?);
    let writes = [(Layer::Chunks, chunks), l2, l3];
    let writes = writes.map(|(layer, points)| upsert(inner, shelf, layer, points));
    futures_util::future::try_join_all(writes).await?;
    Ok(())
}

async fn upsert(inner: &Inner, shelf: &CollectionSet<'_>, layer: Layer, points: Vec<Point>) -> Result<()> {
    if points.is_empty() {
        return Ok(());
    }
    shelf.upsert(&inner.ports, layer, points).await
}

/// Nodes as they are stored, with the means of their chunks' vectors.
async fn nodes(
    draft: &Draft,
    (layer, ordinals): (Layer, Range<u32>),
    means: &mut Means,
) -> Result<Vec<Point>> {
    let points = draft.points(layer, ordinals).await?;
    let whole = |point: Drafted| {
        let dense = means.take(&point.source.id);
        draft.whole(point, dense)
    };
    Ok(points.into_iter().map(whole).collect())
}

/// The vectors of a batch of chunks: those that an earlier attempt stored, else those of the same passages in the
/// revision that is replaced, else fresh ones, and how many these are.
async fn batch_vectors(
    inner: &Inner,
    shelf: &CollectionSet<'_>,
    total: u32,
    batch: &[Drafted],
    earlier: &Earlier,
) -> Result<(Vec<Option<Vec<f32>>>, u64)> {
    let Some(embedder) = shelf.embedder() else { return Ok((vec![None; batch.len()], 0)) };
    // Only a document of several batches can have some behind it.
    if total as usize > inner.options.batch
        && let Some(stored) = stored_vectors(inner, &embedder.profile().id, batch).await?
    {
        return Ok((stored, 0));
    }
    let mut vectors = earlier.vectors(inner, &embedder.profile().id, batch).await?;
    let missing = batch.iter().zip(&vectors).filter(|(_, vector)| vector.is_none());
    let missing: Vec<&str> = missing.map(|(chunk, _)| chunk.passage.as_str()).collect();
    if missing.is_empty() {
        return Ok((vectors, 0));
    }
    let (embedded, fresh) = embed(embedder, missing.into_iter()).await?;
    vectors.iter_mut().filter(|vector| vector.is_none()).zip(embedded).for_each(|(at, new)| *at = Some(new));
    Ok((vectors, fresh))
}

/// The vectors of `model` that are stored for these very chunks, if all of them are.
async fn stored_vectors(
    inner: &Inner,
    model: &str,
    batch: &[Drafted],
) -> Result<Option<Vec<Option<Vec<f32>>>>> {
    let collection = collection(Layer::Chunks, Some(model))?;
    let ids: Vec<PointId> = batch.iter().map(|point| point.source.id).collect();
    let stored = match inner.ports.vectors.get(&collection, &ids, Include::All).await {
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
