use std::time::Duration;

/// The result of a call to a model.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The model's files or settings are unusable.
    Config,
    /// The model did not answer; a later call may succeed.
    Unavailable,
    /// The provider limits the rate of calls; a later call may succeed.
    Throttled {
        /// The time to wait, if the provider names one.
        retry_after: Option<Duration>,
    },
    /// The request is too large; a call with fewer texts may succeed.
    TooLarge,
    /// The model rejects this input.
    Input,
    /// The model or its engine failed.
    Internal,
}

impl ErrorKind {
    /// The name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Unavailable => "unavailable",
            Self::Throttled { .. } => "throttled",
            Self::TooLarge => "too_large",
            Self::Input => "input",
            Self::Internal => "internal",
        }
    }
}

lkr_domain::declare_error! {
    /// A failure of a model: its kind, the operation, and the source.
    retryable: ErrorKind::Unavailable | ErrorKind::Throttled { .. }
}
