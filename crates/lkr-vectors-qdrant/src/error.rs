//! The failures of calls, and their kinds.

use std::{error::Error as StdError, io, time::Duration};

use lkr_vectors::{Error, ErrorKind};
use tonic::{Code, ConnectError, Status};

/// What is known about a request that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// It did not reach the server.
    NotSent,
    /// The connection was lost. The server may have applied it.
    Lost,
    /// The answer did not come in time. The server may have applied it.
    TimedOut,
    /// The server answered.
    Answered,
}

/// A failure, before the operation is known.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) kind: ErrorKind,
    pub(crate) message: String,
    pub(crate) delivery: Delivery,
    /// Whether the server did not take the API key.
    is_denied: bool,
}

/// The result of internal operations.
pub(crate) type InternalResult<T> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), delivery: Delivery::Answered, is_denied: false }
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, message)
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    pub(crate) fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    pub(crate) fn unavailable(delivery: Delivery, message: impl Into<String>) -> Self {
        Self { delivery, ..Self::new(ErrorKind::Unavailable, message) }
    }

    /// The server did not answer in time.
    pub(crate) fn timeout(limit: Duration) -> Self {
        Self::unavailable(Delivery::TimedOut, format!("Qdrant did not answer within {limit:?}"))
    }

    /// Whether the server could not be reached, in contrast to a server that answered.
    pub(crate) const fn is_disconnected(&self) -> bool {
        !matches!(self.delivery, Delivery::Answered)
    }

    /// The error of opening a store.
    pub(crate) fn in_opening(self) -> Error {
        Error::new(self.kind, "open", self.message)
    }

    /// The error of an operation of an open store. The server took the API key when the store was opened, so the key was changed
    /// since: until this is mended, the store is away.
    pub(crate) fn in_operation(self, operation: &'static str) -> Error {
        let kind = if self.is_denied { ErrorKind::Unavailable } else { self.kind };
        Error::new(kind, operation, self.message)
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        let Some(source) = status.source() else {
            let message = format!("Qdrant answered {:?}: {}", status.code(), status.message());
            let is_denied = matches!(status.code(), Code::PermissionDenied | Code::Unauthenticated);
            return Self { is_denied, ..Self::new(kind_of(status.code()), message) };
        };
        // A status with a source was made by the client.
        let was_connected = !causes(source).any(|error| error.is::<ConnectError>());
        let delivery = if was_connected { Delivery::Lost } else { Delivery::NotSent };
        let reasons: Vec<String> = causes(source).map(ToString::to_string).collect();
        Self::unavailable(delivery, format!("cannot reach Qdrant: {}", reasons.join(": ")))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::AlreadyExists => ErrorKind::Invalid,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::Unavailable,
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => ErrorKind::Corrupt,
            _ => ErrorKind::Internal,
        };
        Self::new(kind, error.to_string())
    }
}

/// An error and those behind it.
fn causes<'e>(first: &'e (dyn StdError + 'static)) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    std::iter::successors(Some(first), |error| (*error).source())
}

/// The kind of an answer's code. A node of a cluster answers `Internal` or `FailedPrecondition` while a copy of a shard, the node
/// that orders its writes or the agreement of the nodes is away, and Qdrant itself tries such calls at another node.
const fn kind_of(code: Code) -> ErrorKind {
    match code {
        Code::NotFound => ErrorKind::NotFound,
        Code::AlreadyExists => ErrorKind::Conflict,
        Code::InvalidArgument | Code::OutOfRange => ErrorKind::Invalid,
        Code::Unavailable
        | Code::DeadlineExceeded
        | Code::ResourceExhausted
        | Code::Aborted
        | Code::Cancelled
        | Code::Internal
        | Code::FailedPrecondition => ErrorKind::Unavailable,
        Code::DataLoss => ErrorKind::Corrupt,
        _ => ErrorKind::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_from_lost_connections() {
        let answered = |code| Failure::from(Status::new(code, "reason"));
        for (code, kind) in [
            (Code::NotFound, ErrorKind::NotFound),
            (Code::AlreadyExists, ErrorKind::Conflict),
            (Code::InvalidArgument, ErrorKind::Invalid),
            (Code::Unavailable, ErrorKind::Unavailable),
            (Code::DeadlineExceeded, ErrorKind::Unavailable),
            (Code::ResourceExhausted, ErrorKind::Unavailable),
            (Code::DataLoss, ErrorKind::Corrupt),
            (Code::PermissionDenied, ErrorKind::Internal),
            (Code::Unauthenticated, ErrorKind::Internal),
            (Code::Internal, ErrorKind::Unavailable),
            (Code::FailedPrecondition, ErrorKind::Unavailable),
            (Code::Unimplemented, ErrorKind::Internal),
        ] {
            let failure = answered(code);
            assert_eq!((failure.kind, failure.delivery), (kind, Delivery::Answered), "{code:?}");
            assert!(failure.message.contains("reason") && !failure.is_disconnected());
        }
        let made_here = |error: Box<dyn StdError + Send + Sync>| Failure::from(Status::from_error(error));
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        let not_sent = made_here(Box::new(ConnectError(Box::new(refused()))));
        assert_eq!((not_sent.kind, not_sent.delivery), (ErrorKind::Unavailable, Delivery::NotSent));
        let lost = made_here(Box::new(io::Error::from(io::ErrorKind::ConnectionReset)));
        assert_eq!((lost.kind, lost.delivery), (ErrorKind::Unavailable, Delivery::Lost));
    }
}
