//! Times as numbers and as text.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use time::{OffsetDateTime, UtcOffset, macros::format_description};

/// Now, in milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, millis)
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
