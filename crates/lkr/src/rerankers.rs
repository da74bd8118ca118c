use std::sync::Arc;

use lkr_models::{Reranker, RerankerSource, Result};

/// The reranker that somebody names anew at each search, and the one that stands in where nobody names one.
#[derive(Debug, Default)]
pub(crate) struct Rerankers {
    pub(crate) named: Option<Arc<dyn RerankerSource>>,
    pub(crate) own: Option<Arc<dyn Reranker>>,
}

#[async_trait::async_trait]
impl RerankerSource for Rerankers {
    async fn reranker(&self) -> Result<Option<Arc<dyn Reranker>>> {
        let named = match &self.named {
            Some(source) => source.reranker().await?,
            None => None,
        };
        Ok(named.or_else(|| self.own.clone()))
    }
}
