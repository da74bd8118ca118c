//! The table of errors: what kind of failure is which code and which HTTP status.

use std::{error::Error as StdError, io, time::Duration};

use actix_web::http::StatusCode;

/// A public code. Its row in the table below is all there is to know of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// The request is wrong.
    Invalid,
    /// The state does not allow it.
    Conflict,
    /// There is no such thing.
    NotFound,
    /// The credential is missing or no good.
    Unauthenticated,
    /// The account may not do it.
    Forbidden,
    /// Nobody may make an account.
    RegisterDisabled,
    /// The account has to change its password first.
    PasswordChangeRequired,
    /// There were too many failed tries.
    RateLimited,
    /// There is too much to do, or something is away.
    Overloaded,
    /// An operation failed.
    Internal,
}

/// A row of the table: the code, its public number, its name and the HTTP status it usually comes with.
type Row = (Code, u32, &'static str, StatusCode);

const TABLE: [Row; 10] = [
    (Code::Invalid, 1001, "invalid_request", StatusCode::BAD_REQUEST),
    (Code::Conflict, 1003, "conflict", StatusCode::CONFLICT),
    (Code::NotFound, 1004, "not_found", StatusCode::NOT_FOUND),
    (Code::Unauthenticated, 1005, "unauthenticated", StatusCode::UNAUTHORIZED),
    (Code::Forbidden, 1006, "forbidden", StatusCode::FORBIDDEN),
    (Code::RegisterDisabled, 1007, "register_disabled", StatusCode::FORBIDDEN),
    (Code::PasswordChangeRequired, 1008, "password_change_required", StatusCode::FORBIDDEN),
    (Code::RateLimited, 1009, "rate_limited", StatusCode::TOO_MANY_REQUESTS),
    (Code::Overloaded, 1010, "overloaded", StatusCode::SERVICE_UNAVAILABLE),
    (Code::Internal, 2000, "internal", StatusCode::INTERNAL_SERVER_ERROR),
];

impl Code {
    fn row(self) -> Row {
        let internal = (Self::Internal, 2000, "internal", StatusCode::INTERNAL_SERVER_ERROR);
        TABLE.into_iter().find(|(code, ..)| *code == self).unwrap_or(internal)
    }

    /// All codes, by number.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.0)
    }

    /// The number in answers.
    #[must_use]
    pub fn number(self) -> u32 {
        self.row().1
    }

    /// The name in documentation.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().2
    }

    /// The HTTP status, unless an error says otherwise.
    #[must_use]
    pub fn status(self) -> StatusCode {
        self.row().3
    }
}

/// A refusal or failure, ready to be answered.
#[derive(Debug)]
pub(crate) struct ApiError {
    pub(crate) code: Code,
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    /// The methods that a path has, for a wrong one.
    pub(crate) allow: Option<String>,
    /// After how many seconds another try makes sense.
    pub(crate) retry_after: Option<u64>,
    /// The size of a file of which a range was asked for that it does not have.
    pub(crate) size: Option<u64>,
}

impl ApiError {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            status: code.status(),
            message: message.into(),
            allow: None,
            retry_after: None,
            size: None,
        }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::Invalid, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(Code::NotFound, message)
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(Code::Forbidden, message)
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(Code::Conflict, message)
    }

    fn rate_limited(message: impl Into<String>, retry_after: Duration) -> Self {
        let seconds = retry_after.as_secs() + u64::from(retry_after.subsec_nanos() > 0);
        Self { retry_after: Some(seconds.max(1)), ..Self::new(Code::RateLimited, message) }
    }

    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    pub(crate) fn too_large(message: impl Into<String>) -> Self {
        Self::invalid(message).with_status(StatusCode::PAYLOAD_TOO_LARGE)
    }

    pub(crate) fn outside(size: u64) -> Self {
        let message = format!("the range lies outside of the file, which has {size} bytes");
        let error = Self::invalid(message).with_status(StatusCode::RANGE_NOT_SATISFIABLE);
        Self { size: Some(size), ..error }
    }

    pub(crate) fn wrong_content_type(message: impl Into<String>) -> Self {
        Self::invalid(message).with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE)
    }

    pub(crate) fn wrong_method(method: &str, allow: String) -> Self {
        let message = format!("method {method} is not allowed here");
        let error = Self::invalid(message).with_status(StatusCode::METHOD_NOT_ALLOWED);
        Self { allow: Some(allow), ..error }
    }

    /// A failure of the service itself. What it says in full goes to the log alone.
    pub(crate) fn internal(failure: &dyn StdError) -> Self {
        tracing::error!(error = %failure, "an operation failed");
        Self::new(Code::Internal, without_paths(&failure.to_string()))
    }

    fn overloaded(failure: &dyn StdError) -> Self {
        tracing::warn!(error = %failure, "an operation cannot be done now");
        Self::new(Code::Overloaded, without_paths(&failure.to_string()))
    }
}

/// What a failed call to the knowledge base is to its caller.
pub(crate) trait Failing<T> {
    /// The call only read: a store that is away is a failure of the operation.
    fn reading(self) -> Result<T, ApiError>;

    /// The call wrote, or needs a store that may be away: then another try may succeed.
    fn writing(self) -> Result<T, ApiError>;
}

impl<T> Failing<T> for lkr::Result<T> {
    fn reading(self) -> Result<T, ApiError> {
        self.map_err(|error| match error.kind() {
            lkr::ErrorKind::Unavailable => ApiError::internal(&error),
            _ => ApiError::from(error),
        })
    }

    fn writing(self) -> Result<T, ApiError> {
        self.map_err(ApiError::from)
    }
}

impl From<lkr::Error> for ApiError {
    fn from(error: lkr::Error) -> Self {
        use lkr::ErrorKind;
        match error.kind() {
            ErrorKind::Invalid => Self::invalid(error.reason()),
            ErrorKind::NotFound => Self::not_found(error.reason()),
            ErrorKind::Conflict => Self::new(Code::Conflict, error.reason()),
            ErrorKind::Unavailable if disk_is_full(&error) => Self::internal(&error),
            ErrorKind::Overloaded | ErrorKind::Unavailable => Self::overloaded(&error),
            _ => Self::internal(&error),
        }
    }
}

impl From<lkr_auth::Error> for ApiError {
    fn from(error: lkr_auth::Error) -> Self {
        use lkr_auth::ErrorKind;
        match error.kind() {
            ErrorKind::Invalid => Self::invalid(error.to_string()),
            ErrorKind::Unauthenticated => Self::new(Code::Unauthenticated, error.to_string()),
            ErrorKind::Forbidden => Self::forbidden(error.to_string()),
            ErrorKind::NotFound => Self::not_found(error.to_string()),
            ErrorKind::Taken | ErrorKind::TooMany => Self::conflict(error.to_string()),
            ErrorKind::RateLimited { retry_after } => Self::rate_limited(error.to_string(), retry_after),
            ErrorKind::Unavailable if disk_is_full(&error) => Self::internal(&error),
            ErrorKind::Conflict | ErrorKind::Contention | ErrorKind::Overloaded | ErrorKind::Unavailable => {
                Self::overloaded(&error)
            }
            _ => Self::internal(&error),
        }
    }
}

impl From<lkr_settings::Error> for ApiError {
    fn from(error: lkr_settings::Error) -> Self {
        use lkr_settings::ErrorKind;
        match error.kind() {
            ErrorKind::Invalid => Self::invalid(error.to_string()),
            ErrorKind::Conflict => Self::conflict(error.to_string()),
            ErrorKind::Contention => Self::overloaded(&error),
            ErrorKind::Unavailable if !disk_is_full(&error) => Self::overloaded(&error),
            _ => Self::internal(&error),
        }
    }
}

impl From<lkr_webhooks::Error> for ApiError {
    fn from(error: lkr_webhooks::Error) -> Self {
        use lkr_webhooks::ErrorKind;
        match error.kind() {
            ErrorKind::Invalid => Self::invalid(error.reason()),
            ErrorKind::NotFound => Self::not_found(error.reason()),
            ErrorKind::TooMany => Self::conflict(error.reason()),
            ErrorKind::Unavailable if disk_is_full(&error) => Self::internal(&error),
            ErrorKind::Conflict | ErrorKind::Contention | ErrorKind::Unavailable => Self::overloaded(&error),
            _ => Self::internal(&error),
        }
    }
}

/// Whether a failure comes down to a full disk: trying again does not help there, and the contract calls it an
/// internal failure.
fn disk_is_full(error: &(dyn StdError + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        if matches!(kind, Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)) {
            return true;
        }
        next = error.source();
    }
    false
}

/// The message without paths of this machine, which nobody outside has to know.
pub(crate) fn without_paths(message: &str) -> String {
    let hide = |word: &str| {
        let bare = word.trim_start_matches(['"', '\'', '(', '`']);
        let is_path = bare.starts_with("file://") || (bare.starts_with('/') && bare.len() > 1);
        if is_path { "…".to_owned() } else { word.to_owned() }
    };
    message.split(' ').map(hide).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_unique() {
        let mut numbers: Vec<_> = TABLE.iter().map(|row| row.1).collect();
        numbers.dedup();
        assert_eq!(numbers.len(), TABLE.len());
        assert!(numbers.is_sorted());
    }

    #[test]
    fn paths_stay_inside() {
        assert_eq!(
            without_paths("read text: \"/srv/lkr/blobs/x\" is gone, file:///srv/y too; 3 / 4"),
            "read text: … is gone, … too; 3 / 4"
        );
    }

    #[test]
    fn a_store_away_is_a_failure_for_readers_and_a_retry_for_writers() {
        let away = || lkr::Result::<()>::Err(lkr::Error::new(lkr::ErrorKind::Unavailable, "search", "away"));
        assert_eq!(away().reading().unwrap_err().code, Code::Internal);
        assert_eq!(away().writing().unwrap_err().code, Code::Overloaded);
    }

    #[test]
    fn a_full_disk_is_internal() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let error = lkr::Error::new(lkr::ErrorKind::Unavailable, "submit document", full);
        assert_eq!(ApiError::from(error).code, Code::Internal);
    }
}
