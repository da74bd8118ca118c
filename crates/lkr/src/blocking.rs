//! Running blocking work.

use crate::{Error, ErrorKind, Result};

/// Runs blocking work on the blocking pool. `operation` names it in the error if it panics.
pub(crate) async fn blocking<T: Send + 'static>(
    operation: &'static str,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let joined = tokio::task::spawn_blocking(work).await;
    joined.map_err(|error| Error::new(ErrorKind::Internal, operation, error))?
}
