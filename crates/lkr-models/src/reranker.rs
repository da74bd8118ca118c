use std::{fmt::Debug, sync::Arc};

use async_trait::async_trait;

use crate::Result;

/// The static properties of a reranker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RerankerProfile {
    /// Identifies the model. Scores of different models are not comparable.
    pub id: String,
    /// The display name.
    pub name: String,
    /// The number of passages that a search has it score; bounded because a user waits for the answer.
    pub candidates: usize,
}

/// A cross-encoder: scores how well a passage answers a query by reading both together.
#[async_trait]
pub trait Reranker: Debug + Send + Sync + 'static {
    /// The model's profile.
    fn profile(&self) -> &RerankerProfile;

    /// A finite score for each of `passages`, in the same order; the higher, the better it answers `query`.
    ///
    /// The scale depends on the model; most return probabilities. Scores for one query are comparable, also across
    /// calls; scores for different queries need not be. A passage that exceeds the model's limit is truncated at its
    /// end. Equal passages have equal scores, independent of the other passages. The future is safe to drop at any
    /// await point.
    ///
    /// # Errors
    /// `Throttled` if the provider limits the rate of calls, `Unavailable` if it does not answer, `Config` if it is
    /// misconfigured, `Internal` if its scores do not match the passages.
    async fn rerank(&self, query: &str, passages: &[String]) -> Result<Vec<f32>>;
}

/// Provides the configured reranker, which may change between searches.
#[async_trait]
pub trait RerankerSource: Debug + Send + Sync + 'static {
    /// The configured reranker; `None` if none is configured.
    ///
    /// # Errors
    /// If a reranker is configured but cannot be created.
    async fn reranker(&self) -> Result<Option<Arc<dyn Reranker>>>;
}

/// A source with one fixed reranker.
#[async_trait]
impl RerankerSource for Arc<dyn Reranker> {
    async fn reranker(&self) -> Result<Option<Arc<dyn Reranker>>> {
        Ok(Some(Self::clone(self)))
    }
}
