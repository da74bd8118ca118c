//! What goes over the wire. Types here are converted by hand from those of the libraries.

pub(crate) mod audit;
pub(crate) mod auth;
pub(crate) mod batch;
pub(crate) mod document_change;
pub(crate) mod document_input;
pub(crate) mod documents;
pub(crate) mod eval;
pub(crate) mod files;
pub(crate) mod keys;
pub(crate) mod knowledge;
pub(crate) mod ops;
pub(crate) mod range;
pub(crate) mod search;
pub(crate) mod search_input;
pub(crate) mod settings;
pub(crate) mod settings_input;
pub(crate) mod tasks;
pub(crate) mod users;
pub(crate) mod webhooks;

use time::{OffsetDateTime, UtcOffset, macros::format_description};

/// A moment as RFC 3339 in UTC, to the microsecond.
pub(crate) fn moment(at: OffsetDateTime) -> String {
    let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");
    // Formatting into a string fails for no moment that there is.
    at.to_offset(UtcOffset::UTC).format(&format).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    #[test]
    fn moments_are_utc() {
        assert_eq!(super::moment(datetime!(2026-01-02 03:04:05.6 +2)), "2026-01-02T01:04:05.600000Z");
    }
}
