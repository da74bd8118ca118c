use std::time::Duration;

/// The result of a call to a model.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The model's files or settings are not usable.
    Config,
    /// The model did not answer now; it may later.
    Unavailable,
    /// The model asks to be asked less; it may answer after this time, where it names one.
    Throttled {
        /// How long to wait.
        retry_after: Option<Duration>,
    },
    /// It is too much at a time; fewer texts may be taken.
    TooLarge,
    /// The input cannot be taken by this model.
    Input,
    /// The model or its engine failed.
    Internal,
}

impl ErrorKind {
    /// Its name in metrics.
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
