//! The errors of Redis as errors of lkr-state.

use deadpool::managed::PoolError;
use deadpool_redis::redis::{self, RedisError};
use lkr_state::{Error, ErrorKind, Result};

/// What an attempt failed with, and what follows from it.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) message: String,
    /// Whether another attempt may succeed soon.
    pub(crate) is_temporary: bool,
    /// Whether the server may have received the request, or will.
    pub(crate) is_unknown: bool,
    /// Whether other requests on this connection would fail too.
    pub(crate) breaks_connection: bool,
    /// Whether the server refuses the command itself, for want of rights or because it does not have it.
    pub(crate) is_refusal: bool,
    /// Whether the server does not take the user and the password. A server with a password that has no room for another connection
    /// gives the same answer.
    is_denied: bool,
    /// Whether the server has not the installation that was opened.
    is_emptied: bool,
    kind: ErrorKind,
}

/// What the server refuses for a while: it starts, runs a long script, is or becomes a replica, has too few replicas, or its
/// cluster is being repaired, or moves the keys to another node.
const TEMPORARY: [&str; 11] = [
    "LOADING",
    "BUSY",
    "READONLY",
    "MASTERDOWN",
    "NOREPLICAS",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "UNBLOCKED",
    "NOMASTERLINK",
    // The nodes did not agree on the owner of the slot during all redirections.
    "MOVED",
    "ASK",
];

/// What the server refuses until somebody makes room on it.
const FULL: [&str; 2] = ["OOM", "MISCONF"];

/// What the server says of a user or a password that it does not take.
const DENIED: [&str; 2] = ["NOAUTH", "WRONGPASS"];

/// What scripts say of a server without the installation that was opened.
const EMPTIED: &str = "EMPTIED";

/// What a server says that is no longer the master.
const DEMOTED: [&str; 4] = ["READONLY", "MASTERDOWN", "UNBLOCKED", "NOMASTERLINK"];

impl Failure {
    /// No answer came in time.
    pub(crate) fn timeout(what: &str) -> Self {
        let message = format!("no answer from Redis in time: {what}");
        Self { breaks_connection: true, ..Self::unavailable(message, true) }
    }

    /// Nothing was sent.
    pub(crate) fn unsent(message: impl Into<String>) -> Self {
        Self::unavailable(message.into(), false)
    }

    /// The server did what it was asked, but too few replicas have received it.
    pub(crate) fn too_few_replicas(reached: i64, wanted: u32) -> Self {
        let message = format!("the write reached {reached} of {wanted} replicas in time");
        Self::unavailable(message, true)
    }

    const fn unavailable(message: String, is_unknown: bool) -> Self {
        Self {
            message,
            is_temporary: true,
            is_unknown,
            breaks_connection: false,
            is_refusal: false,
            is_denied: false,
            is_emptied: false,
            kind: ErrorKind::Unavailable,
        }
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self { is_temporary: false, kind: ErrorKind::Internal, ..Self::unavailable(message.into(), true) }
    }

    pub(crate) fn from_redis(error: &RedisError) -> Self {
        let code = error.code().unwrap_or_default().to_owned();
        let from_server = matches!(error.kind(), redis::ErrorKind::Server(_) | redis::ErrorKind::Extension);
        let is_emptied = code == EMPTIED;
        let needs_help = FULL.contains(&code.as_str()) || is_emptied;
        let is_temporary = !from_server && is_connection_error(error) || TEMPORARY.contains(&code.as_str());
        let kind = if is_temporary || needs_help { ErrorKind::Unavailable } else { ErrorKind::Internal };
        Self {
            message: error.to_string(),
            is_temporary,
            is_unknown: !from_server,
            breaks_connection: !from_server || DEMOTED.contains(&code.as_str()),
            is_refusal: ["NOPERM", "ERR"].contains(&code.as_str()),
            is_denied: error.kind() == redis::ErrorKind::AuthenticationFailed
                || DENIED.contains(&code.as_str()),
            is_emptied,
            kind,
        }
    }

    /// The server did what it was asked, but did not say which replicas have received it.
    pub(crate) fn from_wait(error: &RedisError) -> Self {
        let failure = Self { is_unknown: true, ..Self::from_redis(error) };
        // It became a replica before it was asked. This is the only message about it, and it has no code of its own.
        if error.code() == Some("ERR") && failure.message.contains("replica instances") {
            let breaks_connection = true;
            return Self { breaks_connection, ..Self::unavailable(failure.message, true) };
        }
        failure
    }

    pub(crate) fn from_pool(error: PoolError<RedisError>) -> Self {
        match error {
            PoolError::Backend(error) => {
                let failure = Self::from_redis(&error);
                Self {
                    is_unknown: false,
                    message: format!("cannot connect to Redis: {}", failure.message),
                    ..failure
                }
            }
            PoolError::Timeout(_) => Self::unsent("no connection to Redis in time"),
            error => Self::internal(format!("the pool of connections failed: {error}")),
        }
    }

    /// The failure of a request to a store that is open. The server took the user and the password when the store was opened, so one of
    /// them was changed since: until this is mended, the server is away.
    pub(crate) fn of_open_store(self) -> Self {
        if self.is_denied { Self { kind: ErrorKind::Unavailable, ..self } } else { self }
    }

    pub(crate) fn into_error(self, operation: &'static str) -> Error {
        if self.is_emptied {
            Error::records_lost(operation)
        } else {
            Error::new(self.kind, operation, self.message)
        }
    }
}

fn is_connection_error(error: &RedisError) -> bool {
    let is_missing_master = matches!(
        error.kind(),
        redis::ErrorKind::MasterNameNotFoundBySentinel
            | redis::ErrorKind::ClusterConnectionNotFound
            // The connection ended amid an answer.
            | redis::ErrorKind::Parse
    );
    is_missing_master || error.is_io_error() || error.is_timeout() || error.is_connection_dropped()
}

/// An answer that no script of this crate gives.
pub(crate) fn unexpected<T>(operation: &'static str) -> Result<T> {
    Err(Error::new(ErrorKind::Internal, operation, "Redis answered in an unknown form"))
}
