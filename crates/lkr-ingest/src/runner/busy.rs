//! Counting tasks in progress.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts a task in progress until it is dropped.
pub(super) struct BusyGuard<'a>(&'a AtomicUsize);

impl<'a> BusyGuard<'a> {
    pub(super) fn enter(busy: &'a AtomicUsize) -> Self {
        busy.fetch_add(1, Ordering::Relaxed);
        Self(busy)
    }
}

impl Drop for BusyGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
