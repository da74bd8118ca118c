//! The reranker that the settings name.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use lkr::ports::{
    Reranker, RerankerSource,
    models::{CallObserver, Error, ErrorKind, Instrumented, Result},
};
use lkr_models_remote::HttpReranker;
use lkr_outgoing::Outgoing;
use lkr_settings::{Derived, ModelEntry, RuntimeSettings, Settings};

use crate::remote_models::{CachedResult, OPERATION, cacheable, from_cache, remote_options};

/// The reranker of the current settings. Cheap to clone. Before [`Rerankers::follow`] there is none.
#[derive(Debug, Clone, Default)]
pub struct Rerankers(Arc<OnceLock<Derived<CachedReranker>>>);

type CachedReranker = CachedResult<Option<Arc<dyn Reranker>>>;

impl Rerankers {
    /// Follows `settings`: builds the reranker that they name, with calls through `outgoing` and counted by `observer`. A
    /// second call changes nothing.
    pub fn follow(&self, settings: &Settings, outgoing: Outgoing, observer: Arc<dyn CallObserver>) {
        let build = move |settings: &RuntimeSettings| -> CachedReranker {
            let counted =
                |reranker| Arc::new(Instrumented::new(reranker, Arc::clone(&observer))) as Arc<dyn Reranker>;
            let reranker = remote(&settings.models.rerank, &outgoing);
            cacheable(reranker.map(|reranker| reranker.map(counted)).transpose())
        };
        if self.0.set(settings.derive(build)).is_err() {
            tracing::error!("rerankers follow settings already; the second call is ignored");
        }
    }
}

#[async_trait]
impl RerankerSource for Rerankers {
    async fn reranker(&self) -> Result<Option<Arc<dyn Reranker>>> {
        let Some(derived) = self.0.get() else { return Ok(None) };
        let unavailable = |error| Error::new(ErrorKind::Unavailable, OPERATION, error);
        from_cache(&*derived.get().await.map_err(unavailable)?)
    }
}

/// The reranker that an entry names; `None` without a provider.
pub(crate) fn remote(entry: &ModelEntry, outgoing: &Outgoing) -> Option<Result<Arc<dyn Reranker>>> {
    entry.provider?;
    let build = || {
        let reranker = HttpReranker::new(outgoing.clone(), remote_options(entry)?)?;
        Ok(Arc::new(reranker) as Arc<dyn Reranker>)
    };
    Some(build())
}
