//! The errors of other crates as error responses. A full disk is an internal error, as the contract says: a retry does not help.

use std::error::Error as StdError;

use lkr::ports::state::disk_is_full;

use super::{ApiError, ErrorCode};

/// Converts the error of a call to the knowledge base.
pub(crate) trait KbResultExt<T> {
    /// For a call that only reads: an unavailable store is an internal error.
    fn for_read(self) -> Result<T, ApiError>;

    /// For a call that writes, or needs a store that may be unavailable: the client may retry.
    fn for_write(self) -> Result<T, ApiError>;
}

impl<T> KbResultExt<T> for lkr::Result<T> {
    fn for_read(self) -> Result<T, ApiError> {
        self.map_err(|error| match error.kind() {
            lkr::ErrorKind::Unavailable => ApiError::internal(&error),
            _ => ApiError::from(error),
        })
    }

    fn for_write(self) -> Result<T, ApiError> {
        self.map_err(ApiError::from)
    }
}

impl From<lkr::Error> for ApiError {
    fn from(error: lkr::Error) -> Self {
        use lkr::ErrorKind;
        match error.kind() {
            ErrorKind::Invalid if exceeds_size(&error) => Self::too_large(error.reason()),
            ErrorKind::Invalid => Self::invalid(error.reason()),
            ErrorKind::NotFound => Self::not_found(error.reason()),
            ErrorKind::Conflict => Self::new(ErrorCode::Conflict, error.reason()),
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
            ErrorKind::Unauthenticated => Self::new(ErrorCode::Unauthenticated, error.to_string()),
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

impl From<lkr_spaces::Error> for ApiError {
    fn from(error: lkr_spaces::Error) -> Self {
        use lkr_spaces::ErrorKind;
        match error.kind() {
            ErrorKind::Invalid => Self::invalid(error.to_string()),
            ErrorKind::NotFound => Self::not_found(error.reason()),
            ErrorKind::Taken | ErrorKind::Conflict => Self::conflict(error.reason()),
            ErrorKind::Unavailable if disk_is_full(&error) => Self::internal(&error),
            ErrorKind::Contention | ErrorKind::Unavailable => Self::overloaded(&error),
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

/// Whether the cause of a failure is a limit in bytes.
fn exceeds_size(error: &(dyn StdError + 'static)) -> bool {
    std::iter::successors(Some(error), |&error| error.source())
        .any(|error| error.downcast_ref::<lkr::LimitExceeded>().is_some_and(|exceeded| exceeded.is_size()))
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn unavailable_store_is_internal_for_reads_and_overloaded_for_writes() {
        let unavailable = || {
            lkr::Result::<()>::Err(lkr::Error::new(
                lkr::ErrorKind::Unavailable,
                "search",
                "connection refused",
            ))
        };
        assert_eq!(unavailable().for_read().unwrap_err().code, ErrorCode::Internal);
        assert_eq!(unavailable().for_write().unwrap_err().code, ErrorCode::Overloaded);
    }

    #[test]
    fn lost_records_are_overloaded_for_reads_too() {
        let lost = lkr::ports::state::Error::records_lost("get");
        let error = lkr::Error::new(lkr::ErrorKind::Unavailable, "search", lost);
        assert_eq!(lkr::Result::<()>::Err(error).for_read().unwrap_err().code, ErrorCode::Overloaded);
    }

    #[test]
    fn full_disk_is_an_internal_error() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let error = lkr::Error::new(lkr::ErrorKind::Unavailable, "submit document", full);
        assert_eq!(ApiError::from(error).code, ErrorCode::Internal);
    }
}
