//! How far a model's cosines spread among what is stored, which sets the scale of its graded ranks.

use std::collections::BTreeMap;

use lkr_catalog::ListFilter;
use lkr_domain::{DocId, Document, Layer, PointId};
use lkr_models::{CALIBRATION_SAMPLE, Embedder, cosine_scale, spread};
use lkr_vectors::Include;
use sha2::{Digest, Sha256};

use crate::{Result, collection_sets::collection, ingestor::Inner};

/// How many documents are listed at a time.
const PAGE: usize = 100;

/// Finds out the scale of a model whose collections are full, and writes it down. Where there is too little to tell, it
/// is the one that the model states.
pub(crate) async fn calibrate(inner: &Inner, embedder: &dyn Embedder) -> Result<f32> {
    let profile = embedder.profile();
    let Some(spread) = spread(&sample(inner, &profile.id).await?) else { return Ok(profile.cosine_scale) };
    let scale = cosine_scale(spread);
    tracing::info!(model = profile.name, spread, scale, "the model's cosines were looked at");
    inner.ports.catalog.put_cosine_scale(&profile.id, scale).await?;
    Ok(scale)
}

/// Finds out the scale of the model in use, where nobody did and there is a whole sample.
pub(crate) async fn calibrate_first(inner: &Inner, embedder: &dyn Embedder) -> Result<()> {
    let catalog = &inner.ports.catalog;
    let is_known = catalog.cosine_scale(&embedder.profile().id).await?.is_some();
    if !is_known && catalog.stats().await?.counts.chunks >= CALIBRATION_SAMPLE as u64 {
        calibrate(inner, embedder).await?;
    }
    Ok(())
}

/// Vectors of chunks, of as many documents as possible: of those with the least digests, so that the choice is as good
/// as any and the same each time.
async fn sample(inner: &Inner, model: &str) -> Result<Vec<Vec<f32>>> {
    let chosen = choose(inner).await?;
    let each = CALIBRATION_SAMPLE.div_ceil(chosen.len().max(1));
    let ids: Vec<PointId> = chosen.iter().flat_map(|document| chunks(document, each)).collect();
    let of_model = collection(Layer::Chunks, Some(model))?;
    let mut vectors = Vec::with_capacity(ids.len());
    for ids in ids.chunks(PAGE) {
        let points = inner.ports.vectors.get(&of_model, ids, Include::All).await?;
        vectors.extend(points.into_iter().flatten().filter_map(|point| point.dense));
    }
    Ok(vectors)
}

async fn choose(inner: &Inner) -> Result<Vec<Document>> {
    let mut chosen = BTreeMap::new();
    let mut after: Option<DocId> = None;
    loop {
        let page = inner.ports.catalog.list(&ListFilter::default(), after, PAGE).await?;
        for document in page.items {
            chosen.insert(Sha256::digest(document.doc_id.as_bytes()), document);
            if chosen.len() > CALIBRATION_SAMPLE {
                chosen.pop_last();
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(chosen.into_values().collect());
        }
    }
}

/// Up to `most` chunks of a document, evenly spaced.
fn chunks(document: &Document, most: usize) -> impl Iterator<Item = PointId> {
    let total = u32::try_from(document.counts.chunks).unwrap_or(u32::MAX);
    let most = u32::try_from(most).unwrap_or(u32::MAX);
    let (doc_id, revision, step) = (document.doc_id, document.revision, total.div_ceil(most).max(1));
    let ordinals = (0..total).step_by(step as usize);
    ordinals.map(move |ordinal| PointId::derive(doc_id, revision, Layer::Chunks, ordinal))
}
