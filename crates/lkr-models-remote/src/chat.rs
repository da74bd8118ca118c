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
    capabilities::RequestFeatures,
    error,
    provider::{Provider, RequestFailure},
    reasoning::strip_reasoning,
    stream::answer_stream,
    wire::{CompletionRequest, CompletionResponse},
};

const PATH: &str = "/chat/completions";

/// The most bytes of a token in a response. It is large because a stream has an event for each token.
const TOKEN_BYTES: usize = 4 * 1024;
/// The largest response, in bytes.
const MAX_RESPONSE_BYTES: usize = 64 * 1024 * 1024;

/// A language model behind the chat API of OpenAI, which Ollama, llama.cpp, vLLM and many other servers implement.
#[derive(Debug)]
pub struct HttpChat {
    profile: ChatProfile,
    provider: Arc<Provider>,
    idle: Duration,
    /// The provider's capabilities as far as they are known.
    capabilities: Mutex<ProviderCapabilities>,
}

impl HttpChat {
    /// Creates a client of the model in `remote`. Sends no request.
    ///
    /// # Errors
    /// `Config` if the policy forbids the address, or the key is not a valid header value.
    pub fn new(outgoing: Outgoing, remote: RemoteOptions, options: &ChatOptions) -> Result<Self> {
        let name = if remote.model.is_empty() { "language model" } else { &remote.model };
        let profile = ChatProfile { name: name.to_owned(), context_tokens: options.context_tokens };
        let provider = Arc::new(Provider::new(outgoing, remote)?);
        Ok(Self { profile, provider, idle: options.idle, capabilities: Mutex::default() })
    }

    /// The provider's capabilities as far as they are known: the features that it has not refused.
    #[must_use]
    pub fn capabilities(&self) -> ProviderCapabilities {
        *self.capabilities.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `send` with the known capabilities, and with fewer after each refusal. Remembers those that succeed.
    async fn negotiate<T, F: Future<Output = Result<T, RequestFailure>>>(
        &self,
        features: RequestFeatures,
        send: impl Fn(ProviderCapabilities) -> F,
    ) -> Result<T> {
        let mut capabilities = self.capabilities();
        let mut first_error = None;
        loop {
            let RequestFailure { error, reported } = match send(capabilities).await {
                Ok(response) => {
                    let mut known = self.capabilities.lock().unwrap_or_else(PoisonError::into_inner);
                    *known = known.intersect(capabilities);
                    return Ok(response);
                }
                Err(failure) => failure,
            };
            if error.kind() != ErrorKind::Input {
                return Err(error);
            }
            match capabilities.downgrade(&reported, features) {
                Some(next) => capabilities = next,
                // The later errors are about requests with fewer features; the first one is the relevant one.
                None => return Err(first_error.unwrap_or(error)),
            }
            first_error = first_error.or(Some(error));
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
        let features = RequestFeatures { schema: request.schema.is_some(), stream: false };
        let send = |capabilities| async move {
            let body = CompletionRequest::new(self.model(), request, capabilities, false);
            self.provider.post(PATH, &body, max_response_bytes(request)).await
        };
        complete_answer(self.negotiate(features, send).await?, &self.provider)
    }

    async fn stream(&self, request: &ChatRequest) -> Result<ChatStream> {
        let features = RequestFeatures { schema: request.schema.is_some(), stream: true };
        let limits = Limits { idle: self.idle, ..self.provider.limits(max_response_bytes(request)) };
        let send = |capabilities| async move {
            let body = CompletionRequest::new(self.model(), request, capabilities, true);
            let body = serde_json::to_vec(&body).map_err(error::unserializable)?;
            self.provider.send(PATH, body, limits).await
        };
        let response = self.negotiate(features, send).await?;
        answer_stream(response, Arc::clone(&self.provider)).await
    }
}

/// The largest response to a request, in bytes.
fn max_response_bytes(request: &ChatRequest) -> usize {
    let tokens = usize::try_from(request.max_tokens).unwrap_or(usize::MAX);
    tokens.saturating_mul(TOKEN_BYTES).min(MAX_RESPONSE_BYTES)
}

/// The answer in a response that is not streamed.
pub(crate) fn complete_answer(response: CompletionResponse, provider: &Provider) -> Result<ChatAnswer> {
    if let Some(error) = response.error.filter(|error| !error.is_null()) {
        return Err(provider.error_in_success(&error));
    }
    let first = response.choices.into_iter().next();
    let mut first = first.ok_or_else(|| error::invalid_response("it contains no choice"))?;
    let usage = response.usage.as_ref().map(Into::into).unwrap_or_default();
    Ok(ChatAnswer {
        text: strip_reasoning(&first.take_text()),
        finish_reason: first.finish_reason().unwrap_or(FinishReason::Stop),
        usage,
    })
}
