use std::{error::Error, fmt, time::Duration};

/// An error response of the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The code of the envelope; `None` if the response had no envelope.
    pub(crate) code: Option<u64>,
    /// The message of the envelope.
    pub(crate) message: String,
    /// The pause of the header `Retry-After`.
    pub(crate) retry_after: Option<Duration>,
}

/// The public code of an overloaded service.
const OVERLOADED: u64 = 1010;

/// The pause before a retry if an overloaded service names none.
const DEFAULT_PAUSE: Duration = Duration::from_secs(1);

impl ApiError {
    /// The pause before a retry; `None` if a retry is pointless.
    pub(crate) fn pause(&self) -> Option<Duration> {
        (self.code == Some(OVERLOADED)).then(|| self.retry_after.unwrap_or(DEFAULT_PAUSE))
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => write!(f, "the server responded with error {code}: {}", self.message),
            None => write!(f, "no lkr server answers there (HTTP {})", self.status),
        }
    }
}

impl Error for ApiError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_overloaded_response_has_a_pause() {
        let refusal = |code, retry_after| ApiError { status: 503, code, message: String::new(), retry_after };
        let seven = Duration::from_secs(7);
        assert_eq!(refusal(Some(1010), Some(seven)).pause(), Some(seven));
        assert_eq!(refusal(Some(1010), None).pause(), Some(DEFAULT_PAUSE));
        assert_eq!(refusal(Some(1001), Some(seven)).pause(), None);
        assert_eq!(refusal(None, Some(seven)).pause(), None);
    }
}
