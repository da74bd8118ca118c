//! How many long texts are worked on at once.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What a long text takes of the memory for those that are under work, until its document is done.
pub(crate) type Share = Option<OwnedSemaphorePermit>;

/// Long texts under work have at most so many bytes together, or there is one of them: what is made of a text takes
/// many times its length. Short ones are as many as there are workers.
#[derive(Debug)]
pub(crate) struct LongTexts {
    bytes: Arc<Semaphore>,
    limit: u32,
}

/// Up to this length in bytes a text is short.
const SHORT: u64 = 1024 * 1024;

impl LongTexts {
    pub(crate) fn new(limit: usize) -> Self {
        let limit = u32::try_from(limit.min(Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        Self { bytes: Arc::new(Semaphore::new(limit as usize)), limit }
    }

    /// Waits until a text of `length` bytes may be worked on.
    pub(crate) async fn share(&self, length: u64) -> Share {
        if length <= SHORT {
            return None;
        }
        let bytes = u32::try_from(length).unwrap_or(u32::MAX).min(self.limit);
        // The semaphore is never closed.
        Arc::clone(&self.bytes).acquire_many_owned(bytes).await.ok()
    }
}
