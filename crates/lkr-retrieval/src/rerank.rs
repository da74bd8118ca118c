//! Reranking candidates with a cross-encoder.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use lkr_models::{Reranker, RerankerProfile};
use tokio::time::timeout;
use tracing::{Instrument, debug_span};

use crate::{RerankReport, candidate::Candidate};

/// What reranks the candidates of a search.
#[derive(Debug, Clone, Default)]
pub(crate) enum Reranking {
    /// Nothing: no reranker is configured, or the request refused one.
    #[default]
    Off,
    /// Nothing: the reranker is misconfigured or cooling down after a timeout.
    Unavailable,
    /// This model, within this time.
    Model(Arc<dyn Reranker>, Duration),
}

impl Reranking {
    /// The profile of the model.
    pub(crate) fn profile(&self) -> Option<&RerankerProfile> {
        match self {
            Self::Model(reranker, _) => Some(reranker.profile()),
            Self::Off | Self::Unavailable => None,
        }
    }
}

/// How reranking ended.
#[derive(Debug, Default)]
pub(crate) enum RerankOutcome {
    /// It was off.
    #[default]
    Off,
    /// The reranker failed; the order is unchanged.
    Failed,
    /// The reranker timed out; the order is unchanged.
    TimedOut,
    /// The reranker scored candidates.
    Done(RerankReport),
}

/// Scores `candidates` by their `passages`, which are in the same order.
pub(crate) async fn rerank(
    reranker: &dyn Reranker,
    time_limit: Duration,
    query: &str,
    candidates: &mut [Candidate],
    passages: Vec<String>,
) -> RerankOutcome {
    let (model, count) = (reranker.profile().name.clone(), passages.len());
    let started = Instant::now();
    let scoring = reranker.rerank(query, &passages).instrument(debug_span!("model.rerank", passages = count));
    let reason = match timeout(time_limit, scoring).await {
        Ok(Ok(scores)) if is_valid(&scores, count) => {
            candidates.iter_mut().zip(scores).for_each(|(candidate, score)| candidate.reranked = Some(score));
            let ms = started.elapsed().as_secs_f64() * 1_000.0;
            return RerankOutcome::Done(RerankReport { model, candidates: count, ms });
        }
        Ok(Ok(scores)) => format!("expected {count} finite scores, got {} scores", scores.len()),
        Ok(Err(error)) => error.to_string(),
        Err(_) => {
            tracing::warn!(reranker = model, timeout = ?time_limit, "reranking timed out; keeping the fused order");
            return RerankOutcome::TimedOut;
        }
    };
    tracing::warn!(reranker = model, reason, "reranking failed; keeping the fused order");
    RerankOutcome::Failed
}

fn is_valid(scores: &[f32], passages: usize) -> bool {
    scores.len() == passages && scores.iter().all(|score| score.is_finite())
}
