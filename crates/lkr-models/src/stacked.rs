//! What stands around models changes nothing while all goes well, whatever stands around what.

use std::{num::NonZeroUsize, sync::Arc};

use crate::{
    Breaker, BreakerOptions, CallObserver, ChatModel, Embedder, Limited, MemoryEmbedder, Metered, ModelCall,
    PaceOptions, Paced, Retried, RetryOptions, ScriptedChat,
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
    let model: Arc<dyn ChatModel> = Arc::new(Metered::new(model, Arc::new(Nobody)));
    let model: Arc<dyn ChatModel> = Arc::new(Limited::new(model, AT_ONCE));
    let model: Arc<dyn ChatModel> = Arc::new(Breaker::new(model, BreakerOptions::default()));
    (Arc::new(Retried::new(model, RetryOptions::default())), ())
}

async fn embedder() -> (Arc<dyn Embedder>, ()) {
    let model: Arc<dyn Embedder> = Arc::new(MemoryEmbedder::new());
    let model: Arc<dyn Embedder> = Arc::new(Metered::new(model, Arc::new(Nobody)));
    let model: Arc<dyn Embedder> = Arc::new(Limited::new(model, AT_ONCE));
    let model: Arc<dyn Embedder> = Arc::new(Breaker::new(model, BreakerOptions::default()));
    let model: Arc<dyn Embedder> = Arc::new(Retried::new(model, RetryOptions::default()));
    (Arc::new(Paced::new(model, PaceOptions::default())), ())
}

mod chat {
    crate::chat_suite!(super::parrot());
}

mod embed {
    crate::embedder_suite!(super::embedder());
}
