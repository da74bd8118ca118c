use std::{borrow::Cow, fmt::Display, time::Duration};

use lkr_models::{Error, ErrorKind};
use lkr_outgoing::StatusCode;

use crate::{RemoteOptions, provider_error::ProviderError};

const OPERATION: &str = "call provider";
const REDIRECT: &str = "the provider redirects; redirects are not followed";
const KEY_REQUIRED: &str = "the provider requires a key";
const KEY_REJECTED: &str = "the provider rejected the key";
const THROTTLED: &str = "the provider limits the rate of requests";
const QUOTA_EXCEEDED: &str = "the provider's quota is used up";
const REFUSED: &str = "the provider refused the request";

/// The settings are unusable; `reason` says why.
pub(crate) fn config(reason: impl Display) -> Error {
    Error::new(ErrorKind::Config, OPERATION, reason.to_string())
}

/// The provider's response cannot be used; `reason` says why.
pub(crate) fn invalid_response(reason: impl Display) -> Error {
    Error::new(ErrorKind::Internal, OPERATION, format!("unusable response: {reason}"))
}

/// The request cannot be written as JSON.
pub(crate) fn unserializable(error: serde_json::Error) -> Error {
    Error::new(ErrorKind::Internal, "serialize request", error)
}

/// The response is not JSON, or not of the expected structure.
pub(crate) fn unexpected_json() -> Error {
    invalid_response("the body is not the expected JSON")
}

/// The provider limits the rate of requests.
pub(crate) fn throttled(retry_after: Option<Duration>) -> Error {
    Error::new(ErrorKind::Throttled { retry_after }, OPERATION, THROTTLED)
}

/// The error for a refusal, by its status and its body.
pub(crate) fn refused(
    status: StatusCode,
    retry_after: Option<Duration>,
    reported: &ProviderError,
    options: &RemoteOptions,
) -> Error {
    let is_key_error = is_key_error(status, reported);
    let (kind, reason) = classify(status, retry_after, reported, options);
    if matches!(kind, ErrorKind::Throttled { .. }) {
        return throttled(retry_after);
    }
    // An error about the key is too likely to repeat the key.
    let excerpt = if status.is_redirection() || is_key_error {
        String::new()
    } else {
        reported.excerpt(options.api_key.as_ref())
    };
    let message = if excerpt.is_empty() { excerpt } else { format!("; provider message: {excerpt}") };
    Error::new(kind, OPERATION, format!("{reason} (status {}){message}", status.as_u16()))
}

fn is_key_error(status: StatusCode, reported: &ProviderError) -> bool {
    !status.is_redirection() && (matches!(status.as_u16(), 401 | 403) || reported.is_wrong_key())
}

fn classify(
    status: StatusCode,
    retry_after: Option<Duration>,
    reported: &ProviderError,
    options: &RemoteOptions,
) -> (ErrorKind, Cow<'static, str>) {
    let (kind, reason) = match status.as_u16() {
        _ if status.is_redirection() => (ErrorKind::Config, REDIRECT),
        _ if is_key_error(status, reported) && options.api_key.is_none() => (ErrorKind::Config, KEY_REQUIRED),
        _ if is_key_error(status, reported) => (ErrorKind::Config, KEY_REJECTED),
        402 => (ErrorKind::Config, QUOTA_EXCEEDED),
        _ if reported.is_quota_exceeded() => (ErrorKind::Config, QUOTA_EXCEEDED),
        429 => (ErrorKind::Throttled { retry_after }, THROTTLED),
        503 if retry_after.is_some() => (ErrorKind::Throttled { retry_after }, THROTTLED),
        _ if reported.is_too_large() => (ErrorKind::TooLarge, "the request is longer than the model accepts"),
        413 => (ErrorKind::TooLarge, "the request is larger than the provider accepts"),
        400..=499 if reported.is_unknown_model() => {
            return (ErrorKind::Config, format!("the provider has no model {:?}", options.model).into());
        }
        404 | 405 => (ErrorKind::Config, "the provider has no such model or path"),
        408 | 425 | 500..=599 => (ErrorKind::Unavailable, "the provider failed"),
        400 | 422 => (ErrorKind::Input, REFUSED),
        _ => (ErrorKind::Config, REFUSED),
    };
    (kind, reason.into())
}

/// The error for a request that got no response.
pub(crate) fn no_response(error: lkr_outgoing::Error) -> Error {
    let kind = match error.kind() {
        _ if error.is_retryable() => ErrorKind::Unavailable,
        lkr_outgoing::ErrorKind::Refused | lkr_outgoing::ErrorKind::Invalid => ErrorKind::Config,
        _ => ErrorKind::Internal,
    };
    Error::new(kind, OPERATION, error)
}
