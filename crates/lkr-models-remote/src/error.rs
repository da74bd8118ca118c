use std::{fmt::Display, time::Duration};

use lkr_models::{Error, ErrorKind};
use lkr_outgoing::StatusCode;

use crate::{RemoteOptions, said::Said};

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

/// What a refusal means: by its status, and by what is said of it.
pub(crate) fn refused(
    status: StatusCode,
    retry_after: Option<Duration>,
    said: &Said,
    asked: &RemoteOptions,
) -> Error {
    let elsewhere = status.is_redirection();
    let key = !elsewhere && (matches!(status.as_u16(), 401 | 403) || said.wrong_key());
    let (kind, what) = match status.as_u16() {
        _ if elsewhere => (ErrorKind::Config, "it leads elsewhere, which is not followed".to_owned()),
        _ if key && asked.api_key.is_none() => (ErrorKind::Config, "it wants a key".to_owned()),
        _ if key => (ErrorKind::Config, "it refuses the key".to_owned()),
        402 => (ErrorKind::Config, "its quota is used up".to_owned()),
        _ if said.no_quota() => (ErrorKind::Config, "its quota is used up".to_owned()),
        429 => return throttled(retry_after),
        503 if retry_after.is_some() => return throttled(retry_after),
        _ if said.too_much() => (ErrorKind::TooLarge, "the request is longer than it takes".to_owned()),
        413 => (ErrorKind::TooLarge, "it takes less at a time".to_owned()),
        400..=499 if said.no_model() => (ErrorKind::Config, format!("it has no model {:?}", asked.model)),
        404 | 405 => (ErrorKind::Config, "it has no such model or path".to_owned()),
        408 | 425 | 500..=599 => (ErrorKind::Unavailable, "it fails".to_owned()),
        400 | 422 => (ErrorKind::Input, "it refuses the request".to_owned()),
        _ => (ErrorKind::Config, "it refuses the request".to_owned()),
    };
    // Who refuses a key is too likely to repeat it.
    let shown = if elsewhere || key { String::new() } else { said.shown(asked.api_key.as_ref()) };
    let shown = if shown.is_empty() { shown } else { format!("; it says: {shown}") };
    Error::new(kind, OPERATION, format!("{what} (status {}){shown}", status.as_u16()))
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
