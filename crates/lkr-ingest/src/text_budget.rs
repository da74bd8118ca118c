//! How many long texts are processed at once.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The part of the budget that a long text occupies until its document is done; `None` for a short text.
pub(crate) type TextPermit = Option<OwnedSemaphorePermit>;

/// Bounds the total bytes of the long texts that are processed at once, because layering a text takes many times its size
/// in memory. A text longer than the whole budget is processed alone. Short texts are bounded by the number of workers.
#[derive(Debug)]
pub(crate) struct TextBudget {
    bytes: Arc<Semaphore>,
    limit: u32,
}

/// The longest text in bytes that needs no permit.
pub(crate) const SHORT_BYTES: u64 = 1024 * 1024;

impl TextBudget {
    pub(crate) fn new(limit: usize) -> Self {
        let limit = u32::try_from(limit.min(Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        Self { bytes: Arc::new(Semaphore::new(limit as usize)), limit }
    }

    /// Waits until the budget has room for a text of `length` bytes.
    pub(crate) async fn acquire(&self, length: u64) -> TextPermit {
        if length <= SHORT_BYTES {
            return None;
        }
        let bytes = u32::try_from(length).unwrap_or(u32::MAX).min(self.limit);
        // Never fails: the semaphore is never closed.
        Arc::clone(&self.bytes).acquire_many_owned(bytes).await.ok()
    }
}
