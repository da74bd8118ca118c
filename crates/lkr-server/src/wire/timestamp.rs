use time::{OffsetDateTime, UtcOffset, macros::format_description};

/// A time as RFC 3339 in UTC, to the microsecond.
pub(crate) fn timestamp(at: OffsetDateTime) -> String {
    let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");
    // Formatting into a string fails for no valid time.
    at.to_offset(UtcOffset::UTC).format(&format).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    #[test]
    fn timestamp_with_an_offset_is_converted_to_utc() {
        assert_eq!(super::timestamp(datetime!(2026-01-02 03:04:05.6 +2)), "2026-01-02T01:04:05.600000Z");
    }
}
