//! Gives dense vectors to documents that came in without, or with another model's.

use std::{sync::Arc, time::Duration};

use lkr_catalog::{Stored, l1_id};
use lkr_domain::{DocId, Document, Layer, PointId};
use lkr_models::Embedder;
use lkr_vectors::{Collection, Condition, Filter, Point, With};

use crate::{
    Error, ErrorKind, Result,
    change::Pending,
    classify,
    dense::{Means, batches, embed, passage},
    ingestor::Inner,
    shelves::{Shelves, collection, delete_everywhere},
};

/// How many documents are listed at a time.
const PAGE: usize = 100;

/// The pause before what failed is tried again.
const PAUSE: Duration = Duration::from_secs(10);

/// Works until every document has vectors of the embedder in use; at once where there is none.
pub(crate) async fn run(inner: Arc<Inner>) {
    let Some(embedder) = inner.ports.embedder.clone() else { return };
    while let Err(error) = catch_up(&inner, &*embedder).await {
        tracing::warn!(%error, "embedding what came in without a model failed; it will be tried again");
        tokio::time::sleep(PAUSE).await;
    }
}

async fn catch_up(inner: &Inner, embedder: &dyn Embedder) -> Result<()> {
    let live = Shelves::live_model(&*inner.ports.vectors).await?;
    if live.as_deref() != Some(embedder.profile().id.as_str()) {
        tracing::info!(model = embedder.profile().name, "embedding every document anew");
        refill(inner, embedder).await?;
    }
    let mut after = None;
    loop {
        let noted = inner.ports.catalog.unembedded(after, PAGE).await?;
        let Some(last) = noted.last() else { return Ok(()) };
        after = Some(*last);
        let mut done = Vec::new();
        for doc_id in noted {
            match settle(inner, embedder, doc_id).await {
                Ok(()) => done.push(doc_id),
                Err(error) if error.is_retryable() => return Err(error),
                // The next start tries again; until then it keeps no other from having vectors.
                Err(error) => tracing::error!(%doc_id, %error, "a document stays without vectors"),
            }
        }
        inner.ports.catalog.embedded(&done).await?;
    }
}

/// Gives a document that was noted its vectors, or removes what is left of one that is gone.
async fn settle(inner: &Inner, embedder: &dyn Embedder, doc_id: DocId) -> Result<()> {
    let catalog = &inner.ports.catalog;
    if let Some(document) = catalog.document(doc_id).await? {
        return embed_document(inner, embedder, &document.value).await;
    }
    if catalog.active(doc_id).await?.is_none() {
        let filter = Filter::only(Condition::Docs(vec![doc_id]));
        delete_everywhere(&*inner.ports.vectors, &filter).await?;
    }
    Ok(())
}

/// Fills the collections of the embedder beside the old ones, which answer searches until all is there.
async fn refill(inner: &Inner, embedder: &dyn Embedder) -> Result<()> {
    let vectors = &*inner.ports.vectors;
    inner.shelves.begin_filling(vectors, embedder).await?;
    let mut after: Option<DocId> = None;
    loop {
        let page = inner.ports.catalog.list(&Default::default(), after, PAGE).await?;
        // Should the process end amid one that is deleted meanwhile, the note tells the next start to look after it.
        let noted: Vec<DocId> = page.items.iter().map(|document| document.doc_id).collect();
        inner.ports.catalog.embedding(&noted).await?;
        for document in &page.items {
            embed_document(inner, embedder, document).await?;
        }
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    inner.shelves.end_filling(vectors, embedder).await?;
    // A search that was answered by the earlier collections may be asked again.
    Ok(inner.ports.catalog.embedded(&[]).await?)
}

/// Writes a document's points with vectors into the embedder's collections, unless they are there. One that was
/// deleted meanwhile leaves nothing behind.
async fn embed_document(inner: &Inner, embedder: &dyn Embedder, document: &Document) -> Result<()> {
    let written = match inner.ports.catalog.document(document.doc_id).await? {
        Some(stored) if stored.value.revision == document.revision => {
            write_document(inner, embedder, &stored).await
        }
        _ => Ok(()),
    };
    remove_if_gone(inner, document).await?;
    written
}

/// Writes L1 last: where that is, all are.
async fn write_document(inner: &Inner, embedder: &dyn Embedder, stored: &Stored<Document>) -> Result<()> {
    let document = &stored.value;
    let model = &embedder.profile().id;
    let [l1] = &*points(inner, &collection(Layer::L1, Some(model))?, document, Layer::L1, 0..1).await? else {
        return Err(internal("one L1 point was asked for"));
    };
    if let Some(own) = l1.as_ref().and_then(|point| point.dense.as_deref()) {
        // The process may have ended before the category was found.
        return classify::catch_up(inner, document, Some(own)).await;
    }
    let pending = Pending::begin(inner, document.doc_id).await?;
    let mut means = embed_chunks(inner, embedder, document).await?;
    let own = means.take(&l1_id(document.doc_id, document.revision));
    for layer in [Layer::L3, Layer::L2] {
        embed_nodes(inner, model, document, layer, &mut means).await?;
    }
    let root = points(inner, &Layer::L1.into(), document, Layer::L1, 0..1).await?;
    let root = root.into_iter().flatten().map(|point| Point { dense: own.clone(), ..point });
    inner.ports.vectors.upsert(&collection(Layer::L1, Some(model))?, root.collect()).await?;
    pending.confirm(stored).await?;
    classify::catch_up(inner, document, own.as_deref()).await
}

/// Embeds the chunks by batches, and answers the vectors of the points above them.
async fn embed_chunks(inner: &Inner, embedder: &dyn Embedder, document: &Document) -> Result<Means> {
    let target = collection(Layer::Chunks, Some(&embedder.profile().id))?;
    let mut means = Means::default();
    for range in batches(count(document, Layer::Chunks), inner.options.batch) {
        let stored = points(inner, &Layer::Chunks.into(), document, Layer::Chunks, range).await?;
        let stored: Vec<Point> = stored.into_iter().flatten().collect();
        let texts = stored
            .iter()
            .map(|point| Ok(passage(&document.title, &lkr_catalog::chunk_of(point.payload.clone())?)))
            .collect::<Result<Vec<_>>>()?;
        let (vectors, _) = embed(embedder, texts.iter().map(String::as_str)).await?;
        for (point, vector) in stored.iter().zip(&vectors) {
            means.add(&point.origin, vector);
        }
        let renewed =
            stored.into_iter().zip(vectors).map(|(point, dense)| Point { dense: Some(dense), ..point });
        inner.ports.vectors.upsert(&target, renewed.collect()).await?;
    }
    Ok(means)
}

/// Writes the nodes of a layer with the means of their chunks' vectors, by batches.
async fn embed_nodes(
    inner: &Inner,
    model: &str,
    document: &Document,
    layer: Layer,
    means: &mut Means,
) -> Result<()> {
    let target = collection(layer, Some(model))?;
    for range in batches(count(document, layer), inner.options.batch) {
        let stored = points(inner, &layer.into(), document, layer, range).await?;
        let renewed = stored.into_iter().flatten().map(|point| {
            let dense = means.take(&point.id);
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
    Ok(inner.ports.vectors.get(collection, &ids, With::All).await?)
}

fn count(document: &Document, layer: Layer) -> u32 {
    u32::try_from(document.counts.of(layer)).unwrap_or(u32::MAX)
}

fn internal(reason: &str) -> Error {
    Error::new(ErrorKind::Internal, "embed document", reason)
}
