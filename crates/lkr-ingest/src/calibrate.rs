//! Measures how far a model's cosines spread, which sets the scale of its graded ranks.

use lkr_models::{EmbedKind, Embedder, calibration_passages, cosine_scale, spread};

use crate::{Ports, Result};

/// Measures and stores the scale of a model, unless it is known or stored. The vectors of always the same passages are
/// compared, embedded in batches of `batch`. See docs/studies.md#cosine-scale.
///
/// If the model refuses the passages, its scale stays the reference's until the next start or change of the model.
pub(crate) async fn calibrate(ports: &Ports, embedder: &dyn Embedder, batch: usize) -> Result<()> {
    let profile = embedder.profile();
    if profile.cosine_scale.is_some() || ports.catalog.cosine_scale(&profile.id).await?.is_some() {
        return Ok(());
    }
    let passages: Vec<String> = calibration_passages().map(str::to_owned).collect();
    let mut vectors = Vec::with_capacity(passages.len());
    for batch in passages.chunks(batch.max(1)) {
        match embedder.embed(EmbedKind::Passage, batch).await {
            Ok(embedded) => vectors.extend(embedded),
            Err(error) if error.is_retryable() => return Err(error.into()),
            Err(error) => {
                tracing::warn!(model = profile.name, %error, "the model cannot be calibrated");
                return Ok(());
            }
        }
    }
    let Some(spread) = spread(&vectors) else { return Ok(()) };
    let scale = cosine_scale(spread);
    tracing::info!(model = profile.name, spread, scale, "calibrated the model's cosines");
    Ok(ports.catalog.put_cosine_scale(&profile.id, scale).await?)
}
