//! What stands around models changes nothing while all goes well, whatever stands around what.

use std::{num::NonZeroUsize, sync::Arc};

use crate::{
    AdaptiveBatch, AdaptiveBatchOptions, CallObserver, ChatModel, CircuitBreaker, CircuitBreakerOptions,
    ConcurrencyLimit, Embedder, Instrumented, MemoryEmbedder, ModelCall, Retry, RetryOptions, ScriptedChat,
};

#[derive(Debug)]
struct Nobody;

impl CallObserver for Nobody {
    fn ended(&self, _: &ModelCall) {}
}

const AT_ONCE: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1);

async fn parrot() -> (Arc<dyn ChatModel>, ()) {
    let model: Arc<dyn ChatModel> =
        Arc::new(ScriptedChat::new(|request| Ok(request.messages.last().unwrap().text.clone())));
    let model: Arc<dyn ChatModel> = Arc::new(Instrumented::new(model, Arc::new(Nobody)));
    let model: Arc<dyn ChatModel> = Arc::new(ConcurrencyLimit::new(model, AT_ONCE));
    let model: Arc<dyn ChatModel> = Arc::new(CircuitBreaker::new(model, CircuitBreakerOptions::default()));
    (Arc::new(Retry::new(model, RetryOptions::default())), ())
}

async fn embedder() -> (Arc<dyn Embedder>, ()) {
    let model: Arc<dyn Embedder> = Arc::new(MemoryEmbedder::new());
    let model: Arc<dyn Embedder> = Arc::new(Instrumented::new(model, Arc::new(Nobody)));
    let model: Arc<dyn Embedder> = Arc::new(ConcurrencyLimit::new(model, AT_ONCE));
    let model: Arc<dyn Embedder> = Arc::new(CircuitBreaker::new(model, CircuitBreakerOptions::default()));
    let model: Arc<dyn Embedder> = Arc::new(Retry::new(model, RetryOptions::default()));
    (Arc::new(AdaptiveBatch::new(model, AdaptiveBatchOptions::default())), ())
}

mod chat {
    crate::chat_suite!(super::parrot());
}

mod embed {
    crate::embedder_suite!(super::embedder());
}
