//! Clients of a test provider on the local host.
#![allow(dead_code, reason = "not every test uses all of it")]

use std::{sync::Arc, time::Duration};

use lkr_models::{ChatMessage, ChatRequest};
use lkr_models_remote::{ChatOptions, EmbedOptions, HttpChat, HttpEmbedder, RemoteOptions};
use lkr_outgoing::{Outgoing, Policy, Resolve, Roots, SystemResolver};
use lkr_test_provider::TestProvider;

pub(crate) const KEY: &str = "sk-planted-4711";

pub(crate) fn outgoing() -> Outgoing {
    // The tests use plain HTTP. A small certificate file avoids reading the system's certificates, which is slow.
    let resolver: Arc<dyn Resolve> = Arc::new(SystemResolver);
    let roots = Roots::Pem(include_bytes!("../../../lkr-outgoing/tests/tls/authority.pem").to_vec());
    Outgoing::with(Policy::any(), resolver, &roots).unwrap()
}

pub(crate) fn remote(provider: &TestProvider) -> RemoteOptions {
    RemoteOptions {
        base_url: provider.base_url(),
        model: "thinker".to_owned(),
        api_key: Some(KEY.into()),
        timeout: Duration::from_secs(20),
    }
}

pub(crate) fn chat(provider: &TestProvider) -> HttpChat {
    HttpChat::new(outgoing(), remote(provider), &ChatOptions::default()).unwrap()
}

pub(crate) async fn embedder(provider: &TestProvider, options: EmbedOptions) -> HttpEmbedder {
    HttpEmbedder::connect(outgoing(), remote(provider), options).await.unwrap()
}

pub(crate) fn request(text: &str) -> ChatRequest {
    let messages = vec![ChatMessage::system("Repeat it."), ChatMessage::user(text)];
    ChatRequest { messages, max_tokens: 100, temperature: 0.2, schema: None }
}
