use std::{error::Error, fmt, time::Duration};

/// What the service said instead of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The code of the envelope; `None` where there was none.
    pub(crate) code: Option<u64>,
    /// The message of the envelope.
    pub(crate) message: String,
    /// When it may be tried again.
    pub(crate) retry_after: Option<Duration>,
}

/// The code of a service that has too much to do.
const OVERLOADED: u64 = 1010;

/// How long to wait where an overloaded service does not say.
const DEFAULT_PAUSE: Duration = Duration::from_secs(1);

impl ApiError {
    /// How long to wait before the same request is worth another try; `None` where it is not.
    pub(crate) fn pause(&self) -> Option<Duration> {
        (self.code == Some(OVERLOADED)).then(|| self.retry_after.unwrap_or(DEFAULT_PAUSE))
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => write!(f, "the server refused with {code}: {}", self.message),
            None => write!(f, "no lkr server answers there: HTTP {} without an envelope", self.status),
        }
    }
}

impl Error for ApiError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_overloaded_service_is_tried_again() {
        let refusal = |code, retry_after| ApiError { status: 503, code, message: String::new(), retry_after };
        let seven = Duration::from_secs(7);
        assert_eq!(refusal(Some(1010), Some(seven)).pause(), Some(seven));
        assert_eq!(refusal(Some(1010), None).pause(), Some(DEFAULT_PAUSE));
        assert_eq!(refusal(Some(1001), Some(seven)).pause(), None);
        assert_eq!(refusal(None, Some(seven)).pause(), None);
    }
}
