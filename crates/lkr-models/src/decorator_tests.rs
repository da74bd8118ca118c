//! Runs the conformance suites on a complete stack of decorators, which must not change the answers of a healthy model.

use std::{num::NonZeroUsize, sync::Arc};

use crate::{
    AdaptiveBatch, AdaptiveBatchOptions, CallObserver, ChatModel, CircuitBreaker, CircuitBreakerOptions,
    ConcurrencyLimit, Embedder, Instrumented, MemoryEmbedder, ModelCall, Retry, RetryOptions, ScriptedChat,
};

#[derive(Debug)]
struct NoopObserver;

impl CallObserver for NoopObserver {
    fn ended(&self, _: &ModelCall) {}
}

const MAX_CONCURRENT: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1);

async fn echo_model() -> (Arc<dyn ChatModel>, ()) {
    let model: Arc<dyn ChatModel> =
        Arc::new(ScriptedChat::new(|request| Ok(request.messages.last().unwrap().text.clone())));
    let model: Arc<dyn ChatModel> = Arc::new(Instrumented::new(model, Arc::new(NoopObserver)));
    let model: Arc<dyn ChatModel> = Arc::new(ConcurrencyLimit::new(model, MAX_CONCURRENT));
    let model: Arc<dyn ChatModel> = Arc::new(CircuitBreaker::new(model, CircuitBreakerOptions::default()));
    (Arc::new(Retry::new(model, RetryOptions::default())), ())
}

async fn embedder() -> (Arc<dyn Embedder>, ()) {
    let model: Arc<dyn Embedder> = Arc::new(MemoryEmbedder::new());
    let model: Arc<dyn Embedder> = Arc::new(Instrumented::new(model, Arc::new(NoopObserver)));
    let model: Arc<dyn Embedder> = Arc::new(ConcurrencyLimit::new(model, MAX_CONCURRENT));
    let model: Arc<dyn Embedder> = Arc::new(CircuitBreaker::new(model, CircuitBreakerOptions::default()));
    let model: Arc<dyn Embedder> = Arc::new(Retry::new(model, RetryOptions::default()));
    (Arc::new(AdaptiveBatch::new(model, AdaptiveBatchOptions::default())), ())
}

mod chat {
    crate::chat_suite!(super::echo_model());
}

mod embed {
    crate::embedder_suite!(super::embedder());
}
