//! The language models that the settings name.

use std::sync::Arc;

use async_trait::async_trait;
use lkr::ports::models::{
    CallObserver, ChatModel, ChatModelSource, ChatPurpose, CircuitBreaker, CircuitBreakerOptions,
    ConcurrencyLimit, Error, ErrorKind, Instrumented, Result, Retry, RetryOptions,
};
use lkr_models_remote::{ChatOptions, HttpChat};
use lkr_outgoing::Outgoing;
use lkr_settings::{Derived, ModelEntry, RuntimeSettings, Settings};
use tokio::sync::SetOnce;

use crate::{
    remote::{AT_ONCE, Built, OPERATION, kept, remote_options, told},
    state::AppState,
};

/// Names the language models of the settings in force. Cheap to clone; whoever asks before it follows settings waits:
/// documents that an earlier process left are taken up before these are read.
#[derive(Debug, Clone, Default)]
pub struct ChatModels(Arc<SetOnce<Derived<ByPurpose>>>);

#[derive(Debug)]
struct ByPurpose {
    summarize: Named,
    classify: Named,
}

type Named = Built<Option<Arc<dyn ChatModel>>>;

impl ChatModels {
    /// From now on `settings` count, `outgoing` calls whom they name, and `app` counts the calls. The first ones stay.
    pub fn follow(&self, settings: &Settings, outgoing: Outgoing, app: &AppState) {
        let summarize = app.metrics.model_calls("summarize");
        let classify = app.metrics.model_calls("classify");
        let build = move |settings: &RuntimeSettings| ByPurpose {
            summarize: named(&settings.models.summarize, &outgoing, &summarize),
            classify: named(&settings.models.classify, &outgoing, &classify),
        };
        if self.0.set(settings.derive(build)).is_err() {
            tracing::error!("language models were to follow settings twice");
        }
    }
}

#[async_trait]
impl ChatModelSource for ChatModels {
    async fn chat_model(&self, purpose: ChatPurpose) -> Result<Option<Arc<dyn ChatModel>>> {
        let derived = self.0.wait().await;
        let settings = |error| Error::new(ErrorKind::Unavailable, OPERATION, error);
        let named = derived.get().await.map_err(settings)?;
        told(match purpose {
            ChatPurpose::Summarize => &named.summarize,
            ChatPurpose::Classify => &named.classify,
        })
    }
}

/// The language model of an entry, as it stands.
pub(crate) fn remote(entry: &ModelEntry, outgoing: &Outgoing) -> Result<HttpChat> {
    let context_tokens = usize::try_from(entry.context_tokens).unwrap_or(usize::MAX);
    let options = ChatOptions { context_tokens, ..ChatOptions::default() };
    HttpChat::new(outgoing.clone(), remote_options(entry)?, &options)
}

fn named(entry: &ModelEntry, outgoing: &Outgoing, observer: &Arc<dyn CallObserver>) -> Named {
    let named = entry.provider.map(|_| Ok(guarded(remote(entry, outgoing)?, observer)));
    kept(named.transpose())
}

/// The model asked for no more than it bears, and each call of it counted.
fn guarded(model: HttpChat, observer: &Arc<dyn CallObserver>) -> Arc<dyn ChatModel> {
    let model: Arc<dyn ChatModel> = Arc::new(model);
    let model: Arc<dyn ChatModel> = Arc::new(Instrumented::new(model, Arc::clone(observer)));
    let model: Arc<dyn ChatModel> = Arc::new(ConcurrencyLimit::new(model, AT_ONCE));
    let model: Arc<dyn ChatModel> = Arc::new(CircuitBreaker::new(model, CircuitBreakerOptions::default()));
    Arc::new(Retry::new(model, RetryOptions::default()))
}
