//! The reranker that the settings name.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use lkr::ports::{
    Reranker, RerankerSource,
    models::{Error, ErrorKind, Result},
};
use lkr_models_remote::HttpReranker;
use lkr_outgoing::Outgoing;
use lkr_settings::{Derived, ModelEntry, RuntimeSettings, Settings};

use crate::remote::{Built, OPERATION, kept, remote_options, told};

/// Names the reranker of the settings in force. Cheap to clone; before it follows settings, it names none.
#[derive(Debug, Clone, Default)]
pub struct Rerankers(Arc<OnceLock<Derived<Named>>>);

type Named = Built<Option<Arc<dyn Reranker>>>;

impl Rerankers {
    /// From now on `settings` count, and `outgoing` calls whom they name. The first ones stay.
    pub fn follow(&self, settings: &Settings, outgoing: Outgoing) {
        let build = move |settings: &RuntimeSettings| -> Named {
            kept(remote(&settings.models.rerank, &outgoing).transpose())
        };
        if self.0.set(settings.derive(build)).is_err() {
            tracing::error!("rerankers were to follow settings twice");
        }
    }
}

#[async_trait]
impl RerankerSource for Rerankers {
    async fn reranker(&self) -> Result<Option<Arc<dyn Reranker>>> {
        let Some(derived) = self.0.get() else { return Ok(None) };
        let settings = |error| Error::new(ErrorKind::Unavailable, OPERATION, error);
        told(&*derived.get().await.map_err(settings)?)
    }
}

/// The reranker that an entry names; `None` where it names none.
pub(crate) fn remote(entry: &ModelEntry, outgoing: &Outgoing) -> Option<Result<Arc<dyn Reranker>>> {
    entry.provider?;
    let make = || {
        let reranker = HttpReranker::new(outgoing.clone(), remote_options(entry)?)?;
        Ok(Arc::new(reranker) as Arc<dyn Reranker>)
    };
    Some(make())
}
