//! The error table: the public code and HTTP status of each kind of failure.

mod conversions;

use std::{error::Error as StdError, fmt::Display, time::Duration};

use actix_web::http::StatusCode;
use lkr::ports::state::RecordsLost;

pub(crate) use conversions::KbResultExt;

/// A public error code. The table below has its number, name and HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorCode {
    /// The request is invalid.
    Invalid,
    /// The current state does not allow the operation.
    Conflict,
    /// The object does not exist.
    NotFound,
    /// The credential is missing or invalid.
    Unauthenticated,
    /// The account lacks the permission.
    Forbidden,
    /// Registration is disabled.
    RegisterDisabled,
    /// The account must change its password first.
    PasswordChangeRequired,
    /// There were too many failed attempts.
    RateLimited,
    /// The service has too much work, or a dependency is unavailable.
    Overloaded,
    /// The operation failed.
    Internal,
}

/// A row of the table: the code, its public number, its name, its usual HTTP status, and when it is answered.
type ErrorCodeRow = (ErrorCode, u32, &'static str, StatusCode, &'static str);

const TABLE: [ErrorCodeRow; 10] = [
    (
        ErrorCode::Invalid,
        1001,
        "invalid_request",
        StatusCode::BAD_REQUEST,
        "The request is malformed, or a value in it is not allowed. The message names the value.",
    ),
    (
        ErrorCode::Conflict,
        1003,
        "conflict",
        StatusCode::CONFLICT,
        "The current state does not allow the operation: a name is taken, a task has ended, another change came first.",
    ),
    (
        ErrorCode::NotFound,
        1004,
        "not_found",
        StatusCode::NOT_FOUND,
        "The object does not exist, or the caller may not read it.",
    ),
    (
        ErrorCode::Unauthenticated,
        1005,
        "unauthenticated",
        StatusCode::UNAUTHORIZED,
        "The credential is missing, malformed, unknown, expired or revoked.",
    ),
    (
        ErrorCode::Forbidden,
        1006,
        "forbidden",
        StatusCode::FORBIDDEN,
        "The account lacks the right, its API key is restricted, or a session in a cookie came without its CSRF token.",
    ),
    (
        ErrorCode::RegisterDisabled,
        1007,
        "register_disabled",
        StatusCode::FORBIDDEN,
        "The configuration does not let people register.",
    ),
    (
        ErrorCode::PasswordChangeRequired,
        1008,
        "password_change_required",
        StatusCode::FORBIDDEN,
        "The account must change its password before anything else.",
    ),
    (
        ErrorCode::RateLimited,
        1009,
        "rate_limited",
        StatusCode::TOO_MANY_REQUESTS,
        "There were too many failed logins. Retry-After says how many seconds to wait.",
    ),
    (
        ErrorCode::Overloaded,
        1010,
        "overloaded",
        StatusCode::SERVICE_UNAVAILABLE,
        "The service has too much work or is stopping, or a store is unavailable. Retry-After says how many seconds to wait.",
    ),
    (
        ErrorCode::Internal,
        2000,
        "internal",
        StatusCode::INTERNAL_SERVER_ERROR,
        "The operation failed. The log has the reason with the id of the request.",
    ),
];

/// The codes of failed tasks.
impl From<lkr::FailureReason> for ErrorCode {
    fn from(reason: lkr::FailureReason) -> Self {
        match reason {
            lkr::FailureReason::Invalid => Self::Invalid,
            lkr::FailureReason::Cancelled => Self::Conflict,
            lkr::FailureReason::Internal => Self::Internal,
        }
    }
}

impl ErrorCode {
    fn row(self) -> ErrorCodeRow {
        let internal = (Self::Internal, 2000, "internal", StatusCode::INTERNAL_SERVER_ERROR, "");
        TABLE.into_iter().find(|(code, ..)| *code == self).unwrap_or(internal)
    }

    /// All codes, by number.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.0)
    }

    /// The number in responses.
    #[must_use]
    pub fn number(self) -> u32 {
        self.row().1
    }

    /// The name in the documentation.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().2
    }

    /// The usual HTTP status.
    #[must_use]
    pub fn status(self) -> StatusCode {
        self.row().3
    }

    /// When the code is answered, as the documentation says it.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        self.row().4
    }
}

/// What an error is about, for protocols whose errors say so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ErrorSubject {
    /// The credential, which is missing or malformed.
    CredentialForm,
    /// The space that the request names.
    Space,
    /// A part of the body or of the query, by its name or path.
    Parameter(String),
}

/// An error response.
#[derive(Debug)]
pub(crate) struct ApiError {
    pub(crate) code: ErrorCode,
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    pub(crate) subject: Option<ErrorSubject>,
    /// The methods of the path, for a wrong method.
    pub(crate) allow: Option<String>,
    /// Seconds to wait before the next attempt.
    pub(crate) retry_after: Option<u64>,
    /// The size of the file, for a range outside of it.
    pub(crate) size: Option<u64>,
}

impl ApiError {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            status: code.status(),
            message: message.into(),
            subject: None,
            allow: None,
            retry_after: None,
            size: None,
        }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Invalid, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::NotFound, message)
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Forbidden, message)
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Conflict, message)
    }

    fn rate_limited(message: impl Into<String>, retry_after: Duration) -> Self {
        let seconds = retry_after.as_secs() + u64::from(retry_after.subsec_nanos() > 0);
        Self { retry_after: Some(seconds.max(1)), ..Self::new(ErrorCode::RateLimited, message) }
    }

    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    pub(crate) fn about(self, subject: ErrorSubject) -> Self {
        Self { subject: Some(subject), ..self }
    }

    /// A part of the request that is wrong, by its name or path, and what is wrong with it.
    pub(crate) fn invalid_parameter(name: &str, problem: impl Display) -> Self {
        let subject = ErrorSubject::Parameter(name.to_owned());
        Self::invalid(format!("{name}: {problem}")).about(subject)
    }

    pub(crate) fn too_large(message: impl Into<String>) -> Self {
        Self::invalid(message).with_status(StatusCode::PAYLOAD_TOO_LARGE)
    }

    pub(crate) fn range_not_satisfiable(size: u64) -> Self {
        let message = format!("the range is outside of the file, which has {size} bytes");
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

    /// A failure of the service. Only the log gets its full message. Lost records are no failure of the request, which can be
    /// sent again when they are restored.
    pub(crate) fn internal(failure: &(dyn StdError + 'static)) -> Self {
        if RecordsLost::caused(failure) {
            return Self::overloaded(failure);
        }
        tracing::error!(error = %failure, "request failed with an internal error");
        Self::new(ErrorCode::Internal, without_paths(&failure.to_string()))
    }

    fn overloaded(failure: &dyn StdError) -> Self {
        tracing::warn!(error = %failure, "request refused: overloaded or a dependency is unavailable");
        Self::new(ErrorCode::Overloaded, without_paths(&failure.to_string()))
    }
}

/// The message without the server's paths, which clients must not see. A name with spaces belongs to its path up to the last word with
/// a slash, unless a sign ends the path before.
pub(crate) fn without_paths(message: &str) -> String {
    let words: Vec<&str> = message.split_inclusive(char::is_whitespace).collect();
    let (mut shown, mut rest) = (String::new(), words.as_slice());
    while let [word, ..] = rest {
        let Some(at) = path_start(word) else {
            shown.push_str(word);
            rest = rest.get(1..).unwrap_or_default();
            continue;
        };
        let is_end = |word: &&str| word.ends_with('\n') || word.trim_end().ends_with(PATH_ENDS);
        let ends = rest.iter().position(is_end);
        let may_continue = rest.get(..ends.map_or(rest.len(), |end| end + 1)).unwrap_or_default();
        let last = may_continue.iter().rposition(|word| word.contains('/')).unwrap_or_default();
        shown.push_str(word.get(..at).unwrap_or_default());
        shown.push('…');
        if let Some(last) = rest.get(last) {
            shown.push_str(last.get(last.trim_end().len()..).unwrap_or_default());
        }
        rest = rest.get(last + 1..).unwrap_or_default();
    }
    shown
}

/// What a path with spaces does not go on behind.
const PATH_ENDS: [char; 8] = ['"', '\'', '`', ':', ';', ',', ')', ']'];

/// Where a word has a path; the quotes and brackets around it are hidden with it.
fn path_start(word: &str) -> Option<usize> {
    let value = word.find('=').map_or(0, |sign| sign + 1);
    let bare = word.get(value..)?.trim_end().trim_start_matches(['"', '\'', '(', '`', '[']);
    (bare.starts_with("file://") || (bare.starts_with('/') && bare.len() > 1)).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_code_numbers_are_unique_and_sorted() {
        let mut numbers: Vec<_> = TABLE.iter().map(|row| row.1).collect();
        numbers.dedup();
        assert_eq!(numbers.len(), TABLE.len());
        assert!(numbers.is_sorted());
    }

    #[test]
    fn paths_are_removed_from_messages() {
        assert_eq!(
            without_paths("read text: \"/srv/lkr/blobs/x\" is gone, file:///srv/y too; 3 / 4"),
            "read text: … is gone, … too; 3 / 4"
        );
        for (message, expected) in [
            ("at location /srv/my own docs/kb/x not found", "at location … not found"),
            ("\"/srv/my docs/kb\": read 3/4 pages", "… read 3/4 pages"),
            ("open path=/srv/kb\n/srv/other failed", "open path=…\n… failed"),
            ("/", "/"),
            ("", ""),
            ("/srv", "…"),
        ] {
            assert_eq!(without_paths(message), expected);
        }
    }
}
