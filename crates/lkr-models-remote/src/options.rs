use std::time::Duration;

use lkr_sealing::Secret;

/// How a model on another machine is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteOptions {
    /// Where the provider is, such as `https://models.example/v1`; the paths of its API follow.
    pub base_url: String,
    /// The model's name at the provider; empty for the one that it has.
    pub model: String,
    /// What the provider is shown.
    pub api_key: Option<Secret>,
    /// How long one call may take.
    pub timeout: Duration,
}

/// How a language model on another machine is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatOptions {
    /// How many tokens a request and its answer may have together, as far as is known.
    pub context_tokens: usize,
    /// How long the next part of an answer in parts may take.
    pub idle: Duration,
}

impl Default for ChatOptions {
    fn default() -> Self {
        Self { context_tokens: 8_192, idle: Duration::from_secs(60) }
    }
}

/// How an embedding model on another machine is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbedOptions {
    /// The longest text in tokens; what lies beyond, as it is estimated, is not sent.
    pub max_tokens: usize,
    /// The most texts that are sent at a time.
    pub batch_texts: usize,
    /// The most tokens that are sent at a time, as they are estimated; one text is always sent.
    pub batch_tokens: usize,
    /// What the model wants before a query.
    pub query_prefix: String,
    /// What the model wants before a passage.
    pub passage_prefix: String,
    /// How far its cosines spread: see `EmbedderProfile`.
    pub cosine_scale: f32,
}

impl Default for EmbedOptions {
    fn default() -> Self {
        Self {
            max_tokens: 512,
            batch_texts: 64,
            batch_tokens: 16_384,
            query_prefix: String::new(),
            passage_prefix: String::new(),
            cosine_scale: 30.5,
        }
    }
}
