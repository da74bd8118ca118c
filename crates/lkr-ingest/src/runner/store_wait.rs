use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// How long a failure tells that workers wait. Each tries again sooner, but an attempt may embed a document before it needs the store.
const FRESH: Duration = Duration::from_secs(30);

/// Why workers wait for a store, if they do.
#[derive(Debug, Default)]
pub(crate) struct StoreWait(Mutex<Option<(Instant, String)>>);

impl StoreWait {
    /// Takes note of a failure after which a worker waits.
    pub(super) fn begin(&self, reason: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), reason));
    }

    /// Takes note of an attempt that did not fail by a store.
    pub(super) fn end(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The reason of the last failure, if no attempt succeeded since.
    pub(crate) fn reason(&self) -> Option<String> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().filter(|(since, _)| since.elapsed() < FRESH).map(|(_, reason)| reason.clone())
    }
}
