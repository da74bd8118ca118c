//! Running blocking work.

use tokio::runtime::Handle;

use crate::{Error, ErrorKind, Result};

/// The runtime of the caller.
///
/// # Errors
/// `Internal` outside of a runtime, where tokio itself would panic.
pub(crate) fn current_runtime(operation: &'static str) -> Result<Handle> {
    Handle::try_current().map_err(|error| Error::new(ErrorKind::Internal, operation, error))
}

/// Runs blocking work on the blocking pool. `operation` names it in the error if it panics.
#[cfg(any(feature = "lmdb", feature = "files"))]
pub(crate) async fn blocking<T: Send + 'static>(
    operation: &'static str,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let joined = current_runtime(operation)?.spawn_blocking(work).await;
    joined.map_err(|error| Error::new(ErrorKind::Internal, operation, error))?
}
