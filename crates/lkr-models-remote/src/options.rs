use std::time::Duration;

use lkr_sealing::Secret;

/// How a remote model is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteOptions {
    /// The provider's address, such as `https://models.example/v1`, without the paths of its API.
    pub base_url: String,
    /// The provider's name of the model; empty for a provider with a single model.
    pub model: String,
    /// The key that is sent as a bearer token.
    pub api_key: Option<Secret>,
    /// The time limit of one call.
    pub timeout: Duration,
}

/// The options of a remote language model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatOptions {
    /// The context window as far as it is known: the most tokens of a request and its answer together.
    pub context_tokens: usize,
    /// The longest time between two parts of a stream.
    pub idle: Duration,
}

impl Default for ChatOptions {
    fn default() -> Self {
        Self { context_tokens: 8_192, idle: Duration::from_secs(60) }
    }
}

/// The options of a remote embedding model.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbedOptions {
    /// The longest text, in estimated tokens; longer texts are truncated.
    pub max_tokens: usize,
    /// The most texts of one request.
    pub batch_texts: usize,
    /// The most estimated tokens of one request. A single text is sent even if it exceeds this.
    pub batch_tokens: usize,
    /// The text that the model expects before a query.
    pub query_prefix: String,
    /// The text that the model expects before a passage.
    pub passage_prefix: String,
    /// The factor of `c₁ − cos` in graded ranks, if it is known: see `EmbedderProfile`.
    pub cosine_scale: Option<f32>,
}

impl Default for EmbedOptions {
    fn default() -> Self {
        Self {
            max_tokens: 512,
            batch_texts: 64,
            batch_tokens: 16_384,
            query_prefix: String::new(),
            passage_prefix: String::new(),
            cosine_scale: None,
        }
    }
}
