//! Counts requests in flight.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// The number of requests in flight. A request counts until the last byte of its response is sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct InFlight(Arc<AtomicUsize>);

impl InFlight {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// Counts a request until the guard is dropped.
    pub(super) fn enter(&self) -> InFlightGuard {
        self.0.fetch_add(1, Ordering::SeqCst);
        InFlightGuard(self.clone())
    }
}

/// Counts a request as long as it lives.
pub(super) struct InFlightGuard(InFlight);

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}
