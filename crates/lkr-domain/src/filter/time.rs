use std::fmt;

use ::time::{
    Date, OffsetDateTime, UtcOffset, format_description::well_known::Rfc3339, macros::format_description,
};

const NANOS: i128 = 1_000_000_000;

/// The largest offset of RFC 3339.
const MAX_OFFSET_MINUTES: i32 = 23 * 60 + 59;

/// A point in time, to the nanosecond.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(
    /// Nanoseconds since 1970-01-01T00:00:00Z.
    i128,
);

impl Instant {
    /// Reads a date or a time of RFC 3339, with nothing around it. A date is its midnight in UTC. Fractions of a second
    /// are read to the ninth digit.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        // Most stored values are excluded by one byte.
        if text.len() < 10 || text.as_bytes().get(4) != Some(&b'-') || !text.is_ascii() {
            return None;
        }
        if text.len() == 10 {
            let date = Date::parse(text, format_description!("[year]-[month]-[day]")).ok()?;
            return is_dated(text).then(|| Self::from(date.midnight().assume_utc()));
        }
        // The parser accepts any character between date and time.
        let is_separated = matches!(text.as_bytes().get(10), Some(b'T' | b't'));
        is_separated.then(|| OffsetDateTime::parse(text, &Rfc3339).ok().map(Self::from)).flatten()
    }

    /// Twelve bytes that sort like the instants.
    #[must_use]
    pub const fn to_ordered_bytes(self) -> [u8; 12] {
        // The seconds of the years 0 to 9999 fit by far.
        let seconds = self.0.div_euclid(NANOS) as i64 as u64 ^ (1 << 63);
        let [a, b, c, d, e, f, g, h] = seconds.to_be_bytes();
        let [i, j, k, l] = (self.0.rem_euclid(NANOS) as u32).to_be_bytes();
        [a, b, c, d, e, f, g, h, i, j, k, l]
    }

    /// The instant without the digits after the sixth, to which answers show times.
    #[must_use]
    pub const fn to_micros(self) -> Self {
        Self(self.0.div_euclid(1_000) * 1_000)
    }
}

/// Whether a date has the form `YYYY-MM-DD`.
fn is_dated(text: &str) -> bool {
    text.bytes().enumerate().all(|(at, b)| if matches!(at, 4 | 7) { b == b'-' } else { b.is_ascii_digit() })
}

impl From<OffsetDateTime> for Instant {
    fn from(at: OffsetDateTime) -> Self {
        Self(at.unix_timestamp_nanos())
    }
}

impl fmt::Display for Instant {
    /// The RFC 3339 form: in UTC, unless the year has four digits in another offset only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let printed = [0, -MAX_OFFSET_MINUTES, MAX_OFFSET_MINUTES].into_iter().find_map(|minutes| {
            let local = self.0 + i128::from(minutes) * 60 * NANOS;
            let offset = UtcOffset::from_whole_seconds(minutes * 60).ok()?;
            let at = OffsetDateTime::from_unix_timestamp_nanos(local).ok()?.replace_offset(offset);
            at.format(&Rfc3339).ok()
        });
        f.write_str(&printed.ok_or(fmt::Error)?)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parse_accepts_dates_and_times_of_rfc_3339() {
        for (text, printed) in [
            ("2026-01-31", "2026-01-31T00:00:00Z"),
            ("2026-01-31T00:00:00Z", "2026-01-31T00:00:00Z"),
            ("2026-01-31t02:00:00.5+02:00", "2026-01-31T00:00:00.5Z"),
            ("2026-01-30T22:30:00.123456789-01:30", "2026-01-31T00:00:00.123456789Z"),
            ("0000-01-01", "0000-01-01T00:00:00Z"),
            ("9999-12-31T23:59:59-23:59", "9999-12-31T23:59:59-23:59"),
            ("0000-01-01T00:00:00+23:59", "0000-01-01T00:00:00+23:59"),
            ("1969-12-31T23:59:59.999999999z", "1969-12-31T23:59:59.999999999Z"),
        ] {
            assert_eq!(Instant::parse(text).map(|at| at.to_string()).as_deref(), Some(printed), "{text}");
        }
        for text in [
            "",
            "2026",
            "2026-01",
            "2026-1-31",
            "2026-02-30",
            "2026-13-01",
            "+026-01-01",
            "2026-01-31T",
            "2026-01-31T00:00Z",
            "2026-01-31T00:00:00",
            "2026-01-31 00:00:00Z",
            "2026-01-31T24:00:00Z",
            " 2026-01-31",
            "2026-01-31 ",
            "2026-01-31T00:00:00ZZ",
            "20260131",
            "2026-01-３1",
            "2026-01-31T00:00:00.Z",
        ] {
            assert_eq!(Instant::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn order_of_bytes_is_that_of_instants(
            a in -62_167_219_200i64..253_402_300_799,
            b in -62_167_219_200i64..253_402_300_799,
            nanos in 0u32..1_000_000_000,
            others in 0u32..1_000_000_000,
        ) {
            let make = |seconds: i64, nanos: u32| Instant(i128::from(seconds) * NANOS + i128::from(nanos));
            for (x, y) in [(make(a, nanos), make(b, others)), (make(a, nanos), make(a, others))] {
                prop_assert_eq!(x.to_ordered_bytes().cmp(&y.to_ordered_bytes()), x.cmp(&y));
                prop_assert_eq!(Instant::parse(&x.to_string()), Some(x));
                prop_assert!(x.to_micros() <= x && x.0 - x.to_micros().0 < 1_000);
            }
        }

        #[test]
        fn parse_of_arbitrary_text_does_not_panic(text in "[0-9TZtz:. +-]{0,30}|.{0,30}") {
            let _ = Instant::parse(&text);
        }
    }
}
