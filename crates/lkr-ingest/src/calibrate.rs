//! Measures how far a model's cosines spread over the stored chunks, which sets the scale of its graded ranks.

use std::collections::BTreeMap;

use lkr_catalog::ListFilter;
use lkr_domain::{DocId, Document, Layer, PointId, Scope};
use lkr_models::{CALIBRATION_SAMPLE, Embedder, cosine_scale, spread};
use lkr_vectors::Include;
use sha2::{Digest, Sha256};

use crate::{Ports, Result, collections::collection};

/// The number of documents that are listed at a time.
const PAGE: usize = 100;

/// Measures and stores the scale of a model whose collections are filled. With too few chunks to measure, the scale stays the
/// one of the model's profile. See docs/studies.md#cosine-scale.
pub(crate) async fn calibrate(ports: &Ports, embedder: &dyn Embedder) -> Result<()> {
    let profile = embedder.profile();
    let Some(spread) = spread(&sample(ports, &profile.id).await?) else { return Ok(()) };
    let scale = cosine_scale(spread);
    tracing::info!(model = profile.name, spread, scale, "calibrated the model's cosines");
    Ok(ports.catalog.put_cosine_scale(&profile.id, scale).await?)
}

/// Calibrates the live model once there are enough chunks, unless its scale is stored.
pub(crate) async fn calibrate_first(ports: &Ports, embedder: &dyn Embedder) -> Result<()> {
    let catalog = &ports.catalog;
    let is_known = catalog.cosine_scale(&embedder.profile().id).await?.is_some();
    if !is_known && catalog.stats(&Scope::All).await?.counts.chunks >= CALIBRATION_SAMPLE as u64 {
        calibrate(ports, embedder).await?;
    }
    Ok(())
}

/// Vectors of chunks of as many documents as possible.
async fn sample(ports: &Ports, model: &str) -> Result<Vec<Vec<f32>>> {
    let sampled = sampled_documents(ports).await?;
    let chunks_each = CALIBRATION_SAMPLE.div_ceil(sampled.len().max(1));
    let ids: Vec<PointId> = sampled.iter().flat_map(|document| chunks(document, chunks_each)).collect();
    let collection = collection(Layer::Chunks, Some(model))?;
    let mut vectors = Vec::with_capacity(ids.len());
    for ids in ids.chunks(PAGE) {
        let points = ports.vectors.get(&collection, ids, Include::All).await?;
        vectors.extend(points.into_iter().flatten().filter_map(|point| point.dense));
    }
    Ok(vectors)
}

/// The documents whose ids have the least digests: an arbitrary choice that is the same each time.
async fn sampled_documents(ports: &Ports) -> Result<Vec<Document>> {
    let mut sampled = BTreeMap::new();
    let mut after: Option<DocId> = None;
    loop {
        let page = ports.catalog.list(&Scope::All, &ListFilter::default(), after, PAGE).await?;
        for document in page.items {
            sampled.insert(Sha256::digest(document.doc_id.as_bytes()), document);
            if sampled.len() > CALIBRATION_SAMPLE {
                sampled.pop_last();
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(sampled.into_values().collect());
        }
    }
}

/// Up to `limit` chunks of a document, evenly spaced.
fn chunks(document: &Document, limit: usize) -> impl Iterator<Item = PointId> {
    let total = u32::try_from(document.counts.chunks).unwrap_or(u32::MAX);
    let limit = u32::try_from(limit).unwrap_or(u32::MAX);
    let (doc_id, revision, step) = (document.doc_id, document.revision, total.div_ceil(limit).max(1));
    let ordinals = (0..total).step_by(step as usize);
    ordinals.map(move |ordinal| PointId::derive(doc_id, revision, Layer::Chunks, ordinal))
}
