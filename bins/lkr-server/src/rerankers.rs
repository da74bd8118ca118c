//! The reranker that the settings name.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use async_trait::async_trait;
use lkr::ports::{
    Reranker, RerankerSource,
    models::{Error, ErrorKind, Result},
};
use lkr_models_remote::{HttpReranker, RemoteOptions};
use lkr_outgoing::Outgoing;
use lkr_settings::{Derived, ModelEntry, Settings};

/// Names the reranker of the settings in force. Cheap to clone; before it follows settings, it names none.
#[derive(Debug, Clone, Default)]
pub struct Rerankers(Arc<OnceLock<Derived<Built>>>);

/// What the settings made, kept while they stay; an error is told as its kind and reason.
type Built = Result<Option<Arc<dyn Reranker>>, (ErrorKind, String)>;

impl Rerankers {
    /// From now on `settings` count, and `outgoing` calls whom they name. The first ones stay.
    pub fn follow(&self, settings: &Settings, outgoing: Outgoing) {
        let build = move |settings: &lkr_settings::RuntimeSettings| -> Built {
            let named = remote(&settings.models.rerank, &outgoing).transpose();
            named.map_err(|error| (error.kind(), error.reason()))
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
        let settings = |error| Error::new(ErrorKind::Unavailable, "settings of the reranker", error);
        let built = derived.get().await.map_err(settings)?;
        let failed =
            |(kind, reason): (ErrorKind, String)| Error::new(kind, "settings of the reranker", reason);
        built.as_ref().clone().map_err(failed)
    }
}

/// The reranker that an entry names; `None` where it names none.
pub(crate) fn remote(entry: &ModelEntry, outgoing: &Outgoing) -> Option<Result<Arc<dyn Reranker>>> {
    entry.provider?;
    let unreadable = |error| Error::new(ErrorKind::Config, "settings of the reranker", error);
    let make = || {
        let options = RemoteOptions {
            base_url: entry.base_url.clone(),
            model: entry.model.clone(),
            api_key: entry.api_key.secret().map_err(unreadable)?.cloned(),
            timeout: Duration::from_secs(entry.timeout_s.into()),
        };
        Ok(Arc::new(HttpReranker::new(outgoing.clone(), options)?) as Arc<dyn Reranker>)
    };
    Some(make())
}
