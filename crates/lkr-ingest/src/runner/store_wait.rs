use std::{
    error::Error as StdError,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use lkr_state::disk_is_full;

/// How long a failure tells that workers wait. Each tries again sooner, but an attempt may embed a document before it needs the store.
const FRESH: Duration = Duration::from_secs(30);

/// Why workers wait for a store, if they do. Everybody may be shown the reason, so it names no document.
#[derive(Debug, Default)]
pub(crate) struct StoreWait(Mutex<Option<(Instant, &'static str)>>);

impl StoreWait {
    /// Takes note of a failure after which a worker waits.
    pub(super) fn begin(&self, failure: &(dyn StdError + 'static)) {
        let reason = if disk_is_full(failure) {
            "there is no room on the disk"
        } else {
            "a store is unavailable; the log has the reason"
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), reason));
    }

    /// Takes note of an attempt that did not fail by a store.
    pub(super) fn end(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The reason of the last failure, if no attempt succeeded since.
    pub(crate) fn reason(&self) -> Option<&'static str> {
        let last = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.filter(|(since, _)| since.elapsed() < FRESH).map(|(_, reason)| reason)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::{Error, ErrorKind};

    #[test]
    fn reason_names_no_document_and_ends_with_a_success() {
        let wait = StoreWait::default();
        assert_eq!(wait.reason(), None);
        let away = "PUT https://host/bucket/texts/0123-4567 failed";
        wait.begin(&Error::new(ErrorKind::StoreUnavailable, "store text", away));
        assert_eq!(wait.reason(), Some("a store is unavailable; the log has the reason"));
        let full = io::Error::from(io::ErrorKind::StorageFull);
        wait.begin(&Error::new(ErrorKind::StoreUnavailable, "store text", full));
        assert_eq!(wait.reason(), Some("there is no room on the disk"));
        wait.end();
        assert_eq!(wait.reason(), None);
    }
}
