//! Times as numbers and as text.

use std::time::Duration;

use lkr_state::StateStore;
use time::{OffsetDateTime, UtcOffset, macros::format_description};

/// Now by the clock of the store, in milliseconds since 1970.
pub(crate) fn now_ms(state: &dyn StateStore) -> u64 {
    in_ms(state.now())
}

/// A time in milliseconds since 1970.
pub(crate) fn in_ms(at: OffsetDateTime) -> u64 {
    (at.unix_timestamp_nanos() / 1_000_000).try_into().unwrap_or_default()
}

/// A duration in whole milliseconds.
pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// A time as RFC 3339 in UTC, to the microsecond.
pub(crate) fn rfc3339(at: OffsetDateTime) -> String {
    let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");
    // Formatting into a string fails for no valid time.
    at.to_offset(UtcOffset::UTC).format(&format).unwrap_or_default()
}
