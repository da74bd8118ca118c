//! The language models that the settings name.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use lkr::ports::models::{
    CallObserver, ChatModel, ChatModelSource, ChatPurpose, CircuitBreaker, CircuitBreakerOptions,
    ConcurrencyLimit, Error, ErrorKind, Instrumented, Result, Retry, RetryOptions,
};
use lkr_models_remote::{ChatOptions, HttpChat};
use lkr_outgoing::Outgoing;
use lkr_settings::{Derived, ModelEntry, RuntimeSettings, Settings};
use tokio::sync::SetOnce;

use crate::remote_models::{
    CachedResult, MAX_CONCURRENT_CALLS, OPERATION, cacheable, from_cache, remote_options,
};

/// The `patience` of the circuit breaker of a language model, which takes longer to begin an answer than an embedding model takes. A
/// search waits 30 s for a summary. The value is a judgement, not a measurement.
const PATIENCE: Duration = Duration::from_secs(20);

/// The language models of the current settings. Cheap to clone. Calls before [`ChatModels::follow`] wait for it,
/// because documents of an earlier process are resumed before the settings are read.
#[derive(Debug, Clone, Default)]
pub struct ChatModels(Arc<SetOnce<Derived<ModelsByPurpose>>>);

#[derive(Debug)]
struct ModelsByPurpose {
    summarize: CachedModel,
    classify: CachedModel,
}

type CachedModel = CachedResult<Option<Arc<dyn ChatModel>>>;

impl ChatModels {
    /// Follows `settings`: builds the models that they name, with calls through `outgoing` and counted by the observer
    /// of their purpose. A second call changes nothing.
    pub fn follow(
        &self,
        settings: &Settings,
        outgoing: Outgoing,
        observer: impl Fn(&'static str) -> Arc<dyn CallObserver>,
    ) {
        let (summarize, classify) = (observer("summarize"), observer("classify"));
        let build = move |settings: &RuntimeSettings| ModelsByPurpose {
            summarize: build_model(&settings.models.summarize, &outgoing, &summarize),
            classify: build_model(&settings.models.classify, &outgoing, &classify),
        };
        if self.0.set(settings.derive(build)).is_err() {
            tracing::error!("language models follow settings already; the second call is ignored");
        }
    }
}

#[async_trait]
impl ChatModelSource for ChatModels {
    async fn chat_model(&self, purpose: ChatPurpose) -> Result<Option<Arc<dyn ChatModel>>> {
        let derived = self.0.wait().await;
        let unavailable = |error| Error::new(ErrorKind::Unavailable, OPERATION, error);
        let models = derived.get().await.map_err(unavailable)?;
        from_cache(match purpose {
            ChatPurpose::Summarize => &models.summarize,
            ChatPurpose::Classify => &models.classify,
        })
    }
}

/// The language model of an entry, without retries, limits and counting.
pub(crate) fn remote(entry: &ModelEntry, outgoing: &Outgoing) -> Result<HttpChat> {
    let context_tokens = usize::try_from(entry.context_tokens).unwrap_or(usize::MAX);
    let options = ChatOptions { context_tokens, ..ChatOptions::default() };
    HttpChat::new(outgoing.clone(), remote_options(entry)?, &options)
}

fn build_model(entry: &ModelEntry, outgoing: &Outgoing, observer: &Arc<dyn CallObserver>) -> CachedModel {
    let model = entry.provider.map(|_| Ok(decorated(remote(entry, outgoing)?, observer)));
    cacheable(model.transpose())
}

/// The model with a circuit breaker, retries, a concurrency limit and call counts.
fn decorated(model: HttpChat, observer: &Arc<dyn CallObserver>) -> Arc<dyn ChatModel> {
    let model: Arc<dyn ChatModel> = Arc::new(model);
    let model: Arc<dyn ChatModel> = Arc::new(Instrumented::new(model, Arc::clone(observer)));
    let model: Arc<dyn ChatModel> = Arc::new(ConcurrencyLimit::new(model, MAX_CONCURRENT_CALLS));
    let breaker = CircuitBreakerOptions { patience: PATIENCE, ..CircuitBreakerOptions::default() };
    let model: Arc<dyn ChatModel> = Arc::new(Retry::new(model, RetryOptions::default()));
    Arc::new(CircuitBreaker::new(model, breaker))
}
