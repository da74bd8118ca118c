use lkr_state::{ConflictError, contention_reason};

/// The result of ingestion.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The input cannot be ingested.
    Invalid,
    /// A record changed between being read and being written. Repeating the operation may succeed.
    Conflict,
    /// The task was cancelled, its document deleted or replaced, or another worker has it.
    Superseded,
    /// Another operation has to end first. The runner repeats the attempt after this pause.
    Waiting(std::time::Duration),
    /// The current state of the task or store does not allow the operation.
    Refused,
    /// The queue is full. The same call may succeed later.
    Overloaded,
    /// The records changed during every attempt. The stores work, and the same call may succeed later.
    Contention,
    /// One of the service's own stores is unavailable or full. The same call may succeed later.
    StoreUnavailable,
    /// A model did not respond. The same call may succeed later.
    ModelUnavailable,
    /// The text of this document cannot be read. The same call may succeed later.
    Unreadable,
    /// The model cannot embed a text of this document.
    Unembeddable,
    /// Anything else.
    Internal,
}

lkr_domain::declare_error! {
    /// A failure of ingestion: its kind, the operation, and the source.
    retryable: ErrorKind::Overloaded
        | ErrorKind::Contention
        | ErrorKind::StoreUnavailable
        | ErrorKind::ModelUnavailable
        | ErrorKind::Unreadable
}

impl Error {
    /// A failure of a [`DeletionPolicy`](crate::DeletionPolicy). One that may pass pauses the task.
    #[must_use]
    pub fn of_policy(
        is_retryable: bool,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::of_records("delete documents", is_retryable, source)
    }

    /// A failure of [`SpaceRecords`](crate::SpaceRecords) in an operation. One that may pass pauses the task.
    #[must_use]
    pub fn of_records(
        operation: &'static str,
        is_retryable: bool,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        let kind = if is_retryable { ErrorKind::StoreUnavailable } else { ErrorKind::Internal };
        Self::new(kind, operation, source)
    }

    /// Whether the task that failed should stop: it was superseded, or its fencing token no longer holds.
    pub(crate) fn is_superseded(&self) -> bool {
        matches!(self.kind(), ErrorKind::Superseded | ErrorKind::Conflict)
    }
}

impl ConflictError for Error {
    fn is_conflict(&self) -> bool {
        self.kind() == ErrorKind::Conflict
    }

    fn contention(operation: &'static str, attempts: u32) -> Self {
        Self::new(ErrorKind::Contention, operation, contention_reason(attempts))
    }
}

impl From<lkr_catalog::Error> for Error {
    fn from(error: lkr_catalog::Error) -> Self {
        let kind = match error.kind() {
            // A client gets this message, to which the name of the crate adds nothing.
            lkr_catalog::ErrorKind::Refused => {
                return Self::new(ErrorKind::Refused, error.operation(), error.reason());
            }
            lkr_catalog::ErrorKind::Conflict => ErrorKind::Conflict,
            lkr_catalog::ErrorKind::Contention => ErrorKind::Contention,
            lkr_catalog::ErrorKind::Unavailable => ErrorKind::StoreUnavailable,
            _ => ErrorKind::Internal,
        };
        Self::new(kind, "catalog", error)
    }
}

impl From<lkr_vectors::Error> for Error {
    fn from(error: lkr_vectors::Error) -> Self {
        let kind = if error.is_retryable() { ErrorKind::StoreUnavailable } else { ErrorKind::Internal };
        Self::new(kind, "vector store", error)
    }
}

impl From<lkr_state::Error> for Error {
    fn from(error: lkr_state::Error) -> Self {
        let kind = match error.kind() {
            lkr_state::ErrorKind::Conflict => ErrorKind::Conflict,
            lkr_state::ErrorKind::LeaseLost => ErrorKind::Superseded,
            lkr_state::ErrorKind::Contention => ErrorKind::Contention,
            _ if error.is_retryable() => ErrorKind::StoreUnavailable,
            _ => ErrorKind::Internal,
        };
        Self::new(kind, "task queue", error)
    }
}

impl From<lkr_models::Error> for Error {
    fn from(error: lkr_models::Error) -> Self {
        let kind = match error.kind() {
            _ if error.is_retryable() => ErrorKind::ModelUnavailable,
            lkr_models::ErrorKind::Config => ErrorKind::Internal,
            _ => ErrorKind::Unembeddable,
        };
        Self::new(kind, "embed", error)
    }
}

impl From<lkr_taxonomy::Error> for Error {
    fn from(error: lkr_taxonomy::Error) -> Self {
        let kind = if error.is_retryable() { ErrorKind::ModelUnavailable } else { ErrorKind::Internal };
        Self::new(kind, "classify", error)
    }
}

impl From<tokio::task::JoinError> for Error {
    /// A blocking step panicked: the attempt fails, the process continues.
    fn from(error: tokio::task::JoinError) -> Self {
        Self::new(ErrorKind::Internal, "blocking step", error)
    }
}
