use std::{error::Error as StdError, iter::successors};

use object_store::client::HttpError;

use crate::client::NoSuchBucket;

/// The result of opening and checking a store.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kinds of errors when a store is opened or checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The configuration is wrong: an address, a region, a file of certificates.
    Invalid,
    /// The bucket does not exist.
    NotFound,
    /// The store does not accept the access key, or the key lacks a permission.
    Denied,
    /// The store lacks something that lkr needs.
    Unsupported,
    /// The store cannot be reached, or is overloaded.
    Unavailable,
}

lkr_domain::declare_error! {
    /// A failure to open or check a store: its kind, the operation, and the source. No message contains a secret.
    retryable: ErrorKind::Unavailable
}

impl Error {
    pub(crate) fn invalid(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(ErrorKind::Invalid, "configure S3", source)
    }
}

/// The kind of a failed request, and why it failed in one line.
pub(crate) fn explain(error: &object_store::Error) -> (ErrorKind, String) {
    let causes = || successors(Some(error as &dyn StdError), |&error| error.source());
    if causes().any(|cause| cause.is::<NoSuchBucket>()) {
        return (ErrorKind::NotFound, NoSuchBucket.to_string());
    }
    if let Some(http) = causes().find_map(|cause| cause.downcast_ref::<HttpError>()) {
        return (ErrorKind::Unavailable, http.to_string());
    }
    let text = error.to_string();
    let status = status(&text);
    let kind = match status {
        Some(401 | 403) => ErrorKind::Denied,
        Some(404) => ErrorKind::NotFound,
        Some(405 | 501) => ErrorKind::Unsupported,
        Some(408 | 429 | 500..) => ErrorKind::Unavailable,
        Some(_) => ErrorKind::Invalid,
        None if text.contains("redirect") => ErrorKind::Invalid,
        None => ErrorKind::Unsupported,
    };
    let reason = match (element(&text, "Code"), element(&text, "Message"), status) {
        (Some(code), Some(message), _) => format!("{code}: {message}"),
        (Some(code), None, _) => code.to_owned(),
        (None, _, Some(status)) => format!("status {status}"),
        (None, _, None) => text,
    };
    (kind, reason)
}

/// The status of the response that an error tells of. The type that holds it is private to `object_store`.
fn status(text: &str) -> Option<u16> {
    let (_, after) = text.split_once("status code: ")?;
    after.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The content of the first element with this name in a response that an error contains.
fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, after) = text.split_once(&format!("<{name}>"))?;
    Some(after.split_once('<')?.0)
}

#[cfg(test)]
mod tests {
    use object_store::client::HttpErrorKind;

    use super::*;

    fn failed(reason: &str) -> object_store::Error {
        object_store::Error::Generic { store: "S3", source: reason.into() }
    }

    #[test]
    fn failed_requests_are_explained_by_status_and_code() {
        let body = "<Error><Code>SlowDown</Code><Message>Reduce your rate</Message></Error>";
        for (text, kind, reason) in [
            ("status code: 403 Forbidden: ", ErrorKind::Denied, "status 403"),
            ("status code: 501 Not Implemented: ", ErrorKind::Unsupported, "status 501"),
            (
                &format!("status code: 503 Unavailable: {body}"),
                ErrorKind::Unavailable,
                "SlowDown: Reduce your rate",
            ),
            ("status code: 400 Bad: <Code>Skewed</Code>", ErrorKind::Invalid, "Skewed"),
        ] {
            assert_eq!(explain(&failed(text)), (kind, reason.to_owned()), "{text}");
        }
        assert_eq!(explain(&failed("Received redirect without LOCATION")).0, ErrorKind::Invalid);
        assert_eq!(explain(&failed("Received non-partial response")).0, ErrorKind::Unsupported);
    }

    #[test]
    fn request_without_a_response_is_unavailable() {
        let source = HttpError::new(HttpErrorKind::Connect, std::io::Error::other("refused"));
        let error = object_store::Error::Generic { store: "S3", source: Box::new(source) };
        assert_eq!(explain(&error).0, ErrorKind::Unavailable);
    }
}
