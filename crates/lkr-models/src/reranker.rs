use std::{fmt::Debug, sync::Arc};

use async_trait::async_trait;

use crate::Result;

/// What is known of a reranker without asking it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RerankerProfile {
    /// What tells its scores apart from any other model's.
    pub id: String,
    /// A name for people.
    pub name: String,
    /// How many passages a search asks it to score; more take longer than somebody waits for.
    pub candidates: usize,
}

/// Tells how well passages answer a query, by reading both together.
#[async_trait]
pub trait Reranker: Debug + Send + Sync + 'static {
    /// The model's profile.
    fn profile(&self) -> &RerankerProfile;

    /// How well each of `passages` answers `query`, in their order: a finite number for each, the higher the better.
    ///
    /// Its scale is the model's own, most often a probability. Numbers for one query compare, also between calls;
    /// those for two queries need not. Passages longer than the model takes are cut at their end. Equal passages have
    /// equal scores, whatever company they are in. The future may be dropped at any await.
    ///
    /// # Errors
    /// `Throttled` where it asks to be asked less, `Unavailable` where it is away, `Config` where it is set up
    /// wrongly, `Internal` where what it answers does not fit the passages.
    async fn rerank(&self, query: &str, passages: &[String]) -> Result<Vec<f32>>;
}

/// Names the reranker in force, which may be another one from one search to the next.
#[async_trait]
pub trait RerankerSource: Debug + Send + Sync + 'static {
    /// The reranker in force; `None` where there is none.
    ///
    /// # Errors
    /// Where one is meant to be there and cannot be had.
    async fn reranker(&self) -> Result<Option<Arc<dyn Reranker>>>;
}

/// A reranker that stays.
#[async_trait]
impl RerankerSource for Arc<dyn Reranker> {
    async fn reranker(&self) -> Result<Option<Arc<dyn Reranker>>> {
        Ok(Some(Self::clone(self)))
    }
}
