//! Vectors of a document's points, and storing them.

use std::{collections::HashMap, ops::Range};

use lkr_catalog::{Progress, Stage, l1_id};
use lkr_domain::{Layer, PointId};
use lkr_vectors::{Condition, Filter, With};

use crate::{
    Result, classify,
    dense::{embed, means_above, passage},
    draft::{Draft, Drafted},
    ingestor::Inner,
    pipeline::Report,
    shelves::{Shelf, collection, set_tags_everywhere},
};

/// Embeds what has no vector yet and stores all points: chunks by batches, with the last one the nodes above them, so
/// that the store can write both at once. By then the document has its vector, and with it its category. Answers how
/// many texts were embedded, and what is to be said of the category.
pub(crate) async fn store(
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
