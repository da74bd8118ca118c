use std::{fmt::Display, time::Duration};

use lkr_models::{Error, ErrorKind};
use lkr_outgoing::StatusCode;

const OPERATION: &str = "ask the provider";

/// The settings are not usable; `what` says why.
pub(crate) fn config(what: impl Display) -> Error {
    Error::new(ErrorKind::Config, OPERATION, what.to_string())
}

/// What the provider answered is not what was asked for.
pub(crate) fn wrong_answer(what: impl Display) -> Error {
    Error::new(ErrorKind::Internal, OPERATION, format!("its answer is wrong: {what}"))
}

/// The provider asks to be left alone.
pub(crate) fn throttled(retry_after: Option<Duration>) -> Error {
    Error::new(ErrorKind::Throttled { retry_after }, OPERATION, "it asks to be asked less")
}

/// What a status that is no success means. Its text is not repeated.
pub(crate) fn refused(status: StatusCode, retry_after: Option<Duration>) -> Error {
    let kind = match status.as_u16() {
        429 => return throttled(retry_after),
        503 if retry_after.is_some() => return throttled(retry_after),
        413 => ErrorKind::TooLarge,
        408 | 425 | 500..=599 => ErrorKind::Unavailable,
        400 | 422 => ErrorKind::Input,
        _ => ErrorKind::Config,
    };
    let said = match status.as_u16() {
        401 | 403 => "it refuses the key",
        404 | 405 => "it has no such model or path",
        300..=399 => "it leads elsewhere, which is not followed",
        _ => "it refuses the request",
    };
    Error::new(kind, OPERATION, format!("{said} (status {})", status.as_u16()))
}

/// What kept a request from being answered.
pub(crate) fn unanswered(error: lkr_outgoing::Error) -> Error {
    let kind = match error.kind() {
        _ if error.is_retryable() => ErrorKind::Unavailable,
        lkr_outgoing::ErrorKind::Refused | lkr_outgoing::ErrorKind::Invalid => ErrorKind::Config,
        _ => ErrorKind::Internal,
    };
    Error::new(kind, OPERATION, error)
}
