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
