use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use lkr_models::{
    ChatAnswer, ChatModel, ChatProfile, ChatRequest, ChatStream, ErrorKind, FinishReason, Result,
};
use lkr_outgoing::{Limits, Outgoing};

use crate::{
    ChatOptions, ProviderCapabilities, RemoteOptions,
    capabilities::Uses,
    error,
    provider::{Failure, Provider},
    stream::in_parts,
    thoughts::without_thoughts,
    wire::{Answer, Ask},
};

const PATH: &str = "/chat/completions";

/// What a token of an answer may take, in bytes: in a stream each has an event of its own.
const TOKEN_BYTES: usize = 4 * 1024;
/// The largest answer that is taken.
const LARGEST_BYTES: usize = 64 * 1024 * 1024;

/// A language model behind the chat API of OpenAI, which Ollama, llama.cpp, vLLM and many others share.
#[derive(Debug)]
pub struct HttpChat {
    profile: ChatProfile,
    provider: Arc<Provider>,
    idle: Duration,
    /// In which manner the provider wants to be asked, as far as was found out.
    manner: Mutex<ProviderCapabilities>,
}

impl HttpChat {
    /// The model that `remote` names. Nothing is sent yet.
    ///
    /// # Errors
    /// `Config` where the address may not be called or the key cannot be sent.
    pub fn new(outgoing: Outgoing, remote: RemoteOptions, options: &ChatOptions) -> Result<Self> {
        let name = if remote.model.is_empty() { "language model" } else { &remote.model };
        let profile = ChatProfile { name: name.to_owned(), context_tokens: options.context_tokens };
        let provider = Arc::new(Provider::new(outgoing, remote)?);
        Ok(Self { profile, provider, idle: options.idle, manner: Mutex::default() })
    }

    /// In which manner the provider is asked: what it refused so far is left out.
    #[must_use]
    pub fn manner(&self) -> ProviderCapabilities {
        *self.manner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has `send` ask in the manner that is known, and where the provider refuses that, in those that ask for less. The
    /// first that it takes is kept.
    async fn ask<T, F: Future<Output = Result<T, Failure>>>(
        &self,
        uses: Uses,
        send: impl Fn(ProviderCapabilities) -> F,
    ) -> Result<T> {
        let mut manner = self.manner();
        let mut first = None;
        loop {
            let Failure { error, said } = match send(manner).await {
                Ok(answer) => {
                    let mut known = self.manner.lock().unwrap_or_else(PoisonError::into_inner);
                    *known = known.and(manner);
                    return Ok(answer);
                }
                Err(failure) => failure,
            };
            if error.kind() != ErrorKind::Input {
                return Err(error);
            }
            match manner.after(&said, uses) {
                Some(next) => manner = next,
                // What it said first is what counts.
                None => return Err(first.unwrap_or(error)),
            }
            first = first.or(Some(error));
        }
    }

    fn model(&self) -> &str {
        &self.provider.options().model
    }
}

#[async_trait]
impl ChatModel for HttpChat {
    fn profile(&self) -> &ChatProfile {
        &self.profile
    }

    async fn complete(&self, request: &ChatRequest) -> Result<ChatAnswer> {
        let uses = Uses { schema: request.schema.is_some(), stream: false };
        let send = |manner| async move {
            let ask = Ask::new(self.model(), request, manner, false);
            self.provider.post::<Answer>(PATH, &ask, answer_bytes(request)).await
        };
        whole(self.ask(uses, send).await?, &self.provider)
    }

    async fn stream(&self, request: &ChatRequest) -> Result<ChatStream> {
        let uses = Uses { schema: request.schema.is_some(), stream: true };
        let limits = Limits { idle: self.idle, ..self.provider.limits(answer_bytes(request)) };
        let send = |manner| async move {
            let ask = Ask::new(self.model(), request, manner, true);
            let body = serde_json::to_vec(&ask).map_err(error::wrong_answer)?;
            self.provider.open(PATH, body, limits).await
        };
        let response = self.ask(uses, send).await?;
        in_parts(response, Arc::clone(&self.provider)).await
    }
}

/// What an answer may have, in bytes.
fn answer_bytes(request: &ChatRequest) -> usize {
    let tokens = usize::try_from(request.max_tokens).unwrap_or(usize::MAX);
    tokens.saturating_mul(TOKEN_BYTES).min(LARGEST_BYTES)
}

/// The answer that came at once.
pub(crate) fn whole(answer: Answer, provider: &Provider) -> Result<ChatAnswer> {
    if let Some(error) = answer.error.filter(|error| !error.is_null()) {
        return Err(provider.refused_within(&error));
    }
    let first = answer.choices.into_iter().next();
    let mut first = first.ok_or_else(|| error::wrong_answer("it holds no choice"))?;
    let usage = answer.usage.as_ref().map(Into::into).unwrap_or_default();
    Ok(ChatAnswer {
        text: without_thoughts(&first.text()),
        finish_reason: first.end().unwrap_or(FinishReason::Stop),
        usage,
    })
}
