//! Time in the units that are stored.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Microseconds since 1970-01-01 UTC.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, micros)
}

/// `now` plus `delay`; the largest value if that overflows.
pub(crate) fn after(now: u64, delay: Duration) -> u64 {
    now.saturating_add(micros(delay))
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
