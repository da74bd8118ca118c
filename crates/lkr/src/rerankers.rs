use std::sync::Arc;

use lkr_models::{Reranker, RerankerSource, Result};

/// A source that selects the reranker of each search, and the reranker for when it selects none.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rerankers {
    pub(crate) source: Option<Arc<dyn RerankerSource>>,
    pub(crate) fallback: Option<Arc<dyn Reranker>>,
}

#[async_trait::async_trait]
impl RerankerSource for Rerankers {
    async fn reranker(&self) -> Result<Option<Arc<dyn Reranker>>> {
        let selected = match &self.source {
            Some(source) => source.reranker().await?,
            None => None,
        };
        Ok(selected.or_else(|| self.fallback.clone()))
    }
}
