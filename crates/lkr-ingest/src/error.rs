use lkr_state::{ConflictError, contention_reason};

/// The result of ingestion.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The input cannot be ingested.
    Invalid,
    /// The task was overtaken: its document was deleted, or another worker has it.
    Overtaken,
    /// Something else has to end first; it is tried again after this time.
    Waiting(std::time::Duration),
    /// How things stand does not allow it.
    Refused,
    /// The queue is full; try again later.
    Overloaded,
    /// The records changed during every attempt; the same call may succeed later. The stores work.
    Contention,
    /// One of the service's own stores is away or full; the same call may succeed later.
    StoreAway,
    /// A model did not answer; the same call may succeed later.
    ModelAway,
    /// The text of this one document cannot be read; the same call may succeed later.
    Unreadable,
    /// The embedding model has no vectors for a text of this one document.
    Unembeddable,
    /// Anything else.
    Internal,
}

lkr_domain::declare_error! {
    /// A failure of ingestion: its kind, the operation, and the source.
    retryable: ErrorKind::Overloaded
        | ErrorKind::Contention
        | ErrorKind::StoreAway
        | ErrorKind::ModelAway
        | ErrorKind::Unreadable
}

impl ConflictError for Error {
    fn is_conflict(&self) -> bool {
        self.kind() == ErrorKind::Overtaken
    }

    fn contention(operation: &'static str, attempts: u32) -> Self {
        Self::new(ErrorKind::Contention, operation, contention_reason(attempts))
    }
}

impl From<lkr_catalog::Error> for Error {
    fn from(error: lkr_catalog::Error) -> Self {
        let kind = match error.kind() {
            lkr_catalog::ErrorKind::Conflict => ErrorKind::Overtaken,
            lkr_catalog::ErrorKind::Contention => ErrorKind::Contention,
            lkr_catalog::ErrorKind::Refused => ErrorKind::Refused,
            lkr_catalog::ErrorKind::Unavailable => ErrorKind::StoreAway,
            _ => ErrorKind::Internal,
        };
        Self::new(kind, "catalog", error)
    }
}

impl From<lkr_vectors::Error> for Error {
    fn from(error: lkr_vectors::Error) -> Self {
        let kind = if error.is_retryable() { ErrorKind::StoreAway } else { ErrorKind::Internal };
        Self::new(kind, "vector store", error)
    }
}

impl From<lkr_state::Error> for Error {
    fn from(error: lkr_state::Error) -> Self {
        let kind = match error.kind() {
            lkr_state::ErrorKind::Conflict | lkr_state::ErrorKind::LeaseLost => ErrorKind::Overtaken,
            lkr_state::ErrorKind::Contention => ErrorKind::Contention,
            _ if error.is_retryable() => ErrorKind::StoreAway,
            _ => ErrorKind::Internal,
        };
        Self::new(kind, "task queue", error)
    }
}

impl From<lkr_models::Error> for Error {
    fn from(error: lkr_models::Error) -> Self {
        let kind = match error.kind() {
            _ if error.is_retryable() => ErrorKind::ModelAway,
            lkr_models::ErrorKind::Config => ErrorKind::Internal,
            _ => ErrorKind::Unembeddable,
        };
        Self::new(kind, "embed", error)
    }
}

impl From<lkr_taxonomy::Error> for Error {
    fn from(error: lkr_taxonomy::Error) -> Self {
        let kind = if error.is_retryable() { ErrorKind::ModelAway } else { ErrorKind::Internal };
        Self::new(kind, "classify", error)
    }
}

impl From<tokio::task::JoinError> for Error {
    /// A blocking step that panicked: the document fails, the process goes on.
    fn from(error: tokio::task::JoinError) -> Self {
        Self::new(ErrorKind::Internal, "blocking step", error)
    }
}
