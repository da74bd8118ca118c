//! Gives one document the vectors of a model, in that model's collections.

use lkr_catalog::{Stored, l1_id};
use lkr_domain::{DocId, Document, Layer, PointId};
use lkr_models::Embedder;
use lkr_vectors::{Collection, Condition, Filter, Include, Point};

use crate::{
    Error, ErrorKind, Result,
    change::Pending,
    collection_sets::{collection, delete_everywhere},
    dense::{Means, batches, embed, passage},
    ingestor::Inner,
};

/// Writes a document's points with vectors into the embedder's collections, unless they are there; answers how many
/// texts were embedded. One that was deleted or replaced meanwhile leaves nothing behind.
pub(crate) async fn fill(inner: &Inner, embedder: &dyn Embedder, doc_id: DocId) -> Result<u64> {
    let Some(stored) = inner.ports.catalog.document(doc_id).await? else { return Ok(0) };
    let written = write_document(inner, embedder, &stored).await;
    remove_if_gone(inner, &stored.value).await?;
    written
}

/// Writes a document's points without vectors into a model's collections, where its words find it.
pub(crate) async fn fill_bare(inner: &Inner, model: &str, doc_id: DocId) -> Result<()> {
    let Some(stored) = inner.ports.catalog.document(doc_id).await? else { return Ok(()) };
    let written = write_bare(inner, model, &stored).await;
    remove_if_gone(inner, &stored.value).await?;
    written
}

async fn write_bare(inner: &Inner, model: &str, stored: &Stored<Document>) -> Result<()> {
    let pending = Pending::begin(inner, stored.value.doc_id).await?;
    for layer in [Layer::Chunks, Layer::L3, Layer::L2, Layer::L1] {
        write_points(inner, model, &stored.value, layer, |_| None).await?;
    }
    pending.confirm(stored).await
}

/// Those of some documents whose points with vectors of `model` are not there.
pub(crate) async fn lacking(inner: &Inner, model: &str, documents: &[Document]) -> Result<Vec<DocId>> {
    let ids: Vec<PointId> =
        documents.iter().map(|document| l1_id(document.doc_id, document.revision)).collect();
    let l1 = collection(Layer::L1, Some(model))?;
    let stored = inner.ports.vectors.get(&l1, &ids, Include::All).await?;
    let has_vector = |stored: Option<Point>| stored.is_some_and(|point| point.dense.is_some());
    let lacking = documents
        .iter()
        .zip(stored)
        .filter_map(|(document, stored)| (!has_vector(stored)).then_some(document.doc_id));
    Ok(lacking.collect())
}

/// The document's own vector, where its points have vectors of `model`.
pub(crate) async fn own_vector(inner: &Inner, model: &str, document: &Document) -> Result<Option<Vec<f32>>> {
    let l1 = collection(Layer::L1, Some(model))?;
    let point = points(inner, &l1, document, Layer::L1, 0..1).await?.into_iter().flatten().next();
    Ok(point.and_then(|point| point.dense))
}

/// Writes L1 last: where that is, all are.
async fn write_document(inner: &Inner, embedder: &dyn Embedder, stored: &Stored<Document>) -> Result<u64> {
    let document = &stored.value;
    let model = &embedder.profile().id;
    if own_vector(inner, model, document).await?.is_some() {
        return Ok(0);
    }
    let pending = Pending::begin(inner, document.doc_id).await?;
    let (mut means, embedded) = embed_chunks(inner, embedder, document).await?;
    let own = means.take(&l1_id(document.doc_id, document.revision));
    for layer in [Layer::L3, Layer::L2] {
        write_points(inner, model, document, layer, |point| means.take(point)).await?;
    }
    write_points(inner, model, document, Layer::L1, |_| own.clone()).await?;
    pending.confirm(stored).await?;
    Ok(embedded)
}

/// Embeds the chunks by batches, those left out that an earlier attempt embedded. Answers the vectors of the points
/// above them, and how many texts were embedded.
async fn embed_chunks(inner: &Inner, embedder: &dyn Embedder, document: &Document) -> Result<(Means, u64)> {
    let target = collection(Layer::Chunks, Some(&embedder.profile().id))?;
    let total = count(document, Layer::Chunks);
    let (mut means, mut embedded) = (Means::default(), 0);
    for range in batches(total, inner.options.batch) {
        // Only a document of several batches can have some behind it.
        if total as usize > inner.options.batch
            && let Some(vectors) = earlier(inner, &target, document, range.clone()).await?
        {
            vectors.iter().for_each(|(point, vector)| means.add(&point.origin, vector));
            continue;
        }
        let stored = points(inner, &Layer::Chunks.into(), document, Layer::Chunks, range).await?;
        let stored: Vec<Point> = stored.into_iter().flatten().collect();
        let texts = stored
            .iter()
            .map(|point| Ok(passage(&document.title, &lkr_catalog::chunk_of(point.payload.clone())?)))
            .collect::<Result<Vec<_>>>()?;
        let (vectors, fresh) = embed(embedder, texts.iter().map(String::as_str)).await?;
        embedded += fresh;
        for (point, vector) in stored.iter().zip(&vectors) {
            means.add(&point.origin, vector);
        }
        let renewed =
            stored.into_iter().zip(vectors).map(|(point, dense)| Point { dense: Some(dense), ..point });
        inner.ports.vectors.upsert(&target, renewed.collect()).await?;
    }
    Ok((means, embedded))
}

/// The chunks of a batch with their vectors, if all of them have some in the collection.
async fn earlier(
    inner: &Inner,
    target: &Collection,
    document: &Document,
    range: std::ops::Range<u32>,
) -> Result<Option<Vec<(Point, Vec<f32>)>>> {
    let stored = points(inner, target, document, Layer::Chunks, range).await?;
    let with_vector = |point: Option<Point>| {
        let mut point = point?;
        let vector = point.dense.take()?;
        Some((point, vector))
    };
    Ok(stored.into_iter().map(with_vector).collect())
}

/// Writes the points of a layer, each with the vector that it is to have, by batches.
async fn write_points(
    inner: &Inner,
    model: &str,
    document: &Document,
    layer: Layer,
    mut vector: impl FnMut(&PointId) -> Option<Vec<f32>> + Send,
) -> Result<()> {
    let target = collection(layer, Some(model))?;
    for range in batches(count(document, layer), inner.options.batch) {
        let stored = points(inner, &layer.into(), document, layer, range).await?;
        let renewed = stored.into_iter().flatten().map(|point| {
            let dense = vector(&point.id);
            Point { dense, ..point }
        });
        inner.ports.vectors.upsert(&target, renewed.collect()).await?;
    }
    Ok(())
}

async fn remove_if_gone(inner: &Inner, document: &Document) -> Result<()> {
    let live = inner.ports.catalog.document(document.doc_id).await?;
    if live.is_some_and(|live| live.value.revision == document.revision) {
        return Ok(());
    }
    let filter = Filter::only(Condition::Revision(document.doc_id, document.revision));
    delete_everywhere(&*inner.ports.vectors, &filter).await
}

async fn points(
    inner: &Inner,
    collection: &Collection,
    document: &Document,
    layer: Layer,
    ordinals: std::ops::Range<u32>,
) -> Result<Vec<Option<Point>>> {
    let id = |ordinal| PointId::derive(document.doc_id, document.revision, layer, ordinal);
    let ids: Vec<PointId> = ordinals.map(id).collect();
    match inner.ports.vectors.get(collection, &ids, Include::All).await {
        Err(error) if error.kind() == lkr_vectors::ErrorKind::NotFound => {
            Err(Error::new(ErrorKind::StoreAway, "embed document", error))
        }
        stored => Ok(stored?),
    }
}

fn count(document: &Document, layer: Layer) -> u32 {
    u32::try_from(document.counts.of(layer)).unwrap_or(u32::MAX)
}
