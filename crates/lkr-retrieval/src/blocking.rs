//! Work that takes CPU time.

use lkr_vectors::may_block;
use tokio::task::spawn_blocking;

use crate::Result;

/// Runs work that takes CPU time on a thread that may block.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    if may_block() {
        return Ok(work());
    }
    Ok(spawn_blocking(work).await?)
}
