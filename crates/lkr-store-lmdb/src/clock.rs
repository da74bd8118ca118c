//! The time, in the units that are stored.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Microseconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, micros)
}

/// The microsecond that is `delay` from `now`; the last one where there is none.
pub(crate) fn after(now: u64, delay: Duration) -> u64 {
    now.saturating_add(micros(delay))
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
