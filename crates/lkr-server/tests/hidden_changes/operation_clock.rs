//! Times and ids that depend only on the number of the operation.

use std::sync::atomic::{AtomicU64, Ordering};

use lkr::Clock;
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

/// The time of operation 0, in seconds since 1970: before the timestamps of all files.
const BEGIN: i64 = 1_700_000_000;

/// Whether an operation is sent to both services or only to the busy one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// To both.
    Both,
    /// To the busy one, as the n-th after an operation of both.
    Busy(u64),
}

/// A clock that stands still during an operation and numbers the ids of each.
///
/// So the operations that only the busy service gets change neither the times nor the ids of the others.
#[derive(Debug, Default)]
pub(crate) struct OperationClock {
    /// Milliseconds since [`BEGIN`].
    time_ms: AtomicU64,
    /// The ids that the operation has taken.
    ids: AtomicU64,
}

impl OperationClock {
    /// Sets the clock to the `number`-th operation of both services, or to one after it.
    pub(crate) fn set(&self, number: usize, place: Place) {
        let after = match place {
            Place::Both => 0,
            Place::Busy(n) => 1 + n,
        };
        self.time_ms.store(number as u64 * 1000 + after, Ordering::SeqCst);
        self.ids.store(0, Ordering::SeqCst);
    }
}

impl Clock for OperationClock {
    fn now(&self) -> OffsetDateTime {
        let since = Duration::milliseconds(self.time_ms.load(Ordering::SeqCst) as i64);
        OffsetDateTime::from_unix_timestamp(BEGIN).unwrap() + since
    }

    fn new_uuid(&self) -> Uuid {
        let millis = BEGIN as u64 * 1000 + self.time_ms.load(Ordering::SeqCst);
        let mut rest = [0; 10];
        rest[2..].copy_from_slice(&self.ids.fetch_add(1, Ordering::SeqCst).to_be_bytes());
        uuid::Builder::from_unix_timestamp_millis(millis, &rest).into_uuid()
    }
}
