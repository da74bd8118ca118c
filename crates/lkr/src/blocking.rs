//! Work that blocks.

use crate::{Error, ErrorKind, Result};

/// Does work on the pool for what blocks, as a part of `operation`.
pub(crate) async fn blocking<T: Send + 'static>(
    operation: &'static str,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Error::new(ErrorKind::Internal, operation, error))?
}
