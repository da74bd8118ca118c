//! The clock of the server, as this process estimates it.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use time::OffsetDateTime;

/// How long the time is reckoned from one reading of the server's clock.
const LONGEST_WITHOUT_READING: Duration = Duration::from_secs(60);

/// What the server's clock showed when it was last read.
#[derive(Debug)]
pub(crate) struct ServerClock {
    last: Mutex<Option<(Instant, u64)>>,
}

impl ServerClock {
    pub(crate) const fn new() -> Self {
        Self { last: Mutex::new(None) }
    }

    /// Notes what the clock showed, in milliseconds since 1970.
    pub(crate) fn set(&self, millis: u64) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), millis));
    }

    /// The present time; that of this machine if the server's was not read yet.
    pub(crate) fn now(&self) -> OffsetDateTime {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let server = last.and_then(|(at, millis)| {
            let read = OffsetDateTime::from_unix_timestamp_nanos(i128::from(millis) * 1_000_000).ok()?;
            read.checked_add(at.elapsed().try_into().ok()?)
        });
        server.unwrap_or_else(OffsetDateTime::now_utc)
    }

    /// The time after `wait` from now in milliseconds since 1970; `None` if the clock was not read lately: the clocks of two
    /// machines drift apart.
    pub(crate) fn after(&self, wait: Duration) -> Option<u64> {
        let (at, millis) = (*self.last.lock().unwrap_or_else(PoisonError::into_inner))?;
        let elapsed = at.elapsed();
        (elapsed <= LONGEST_WITHOUT_READING)
            .then(|| millis.saturating_add(whole_millis(elapsed.saturating_add(wait))))
    }
}

/// The time after `wait` from now. Waits that are too long for the clock end in a year.
pub(crate) fn after(wait: Duration) -> tokio::time::Instant {
    let now = tokio::time::Instant::now();
    now.checked_add(wait).unwrap_or(now + Duration::from_secs(86_400 * 365))
}

/// The duration in milliseconds, rounded up.
pub(crate) fn whole_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// Durations beyond this many microseconds never end: some 35 years, which Lua's numbers still add exactly.
const LONGEST: u128 = 1 << 50;

/// The duration in units of `nanos` nanoseconds, rounded up, as an argument of a script; `-` if it never ends.
pub(crate) fn argument(duration: Duration, nanos: u128) -> String {
    if duration.as_micros() > LONGEST {
        return "-".to_owned();
    }
    duration.as_nanos().div_ceil(nanos).to_string()
}

/// Nanoseconds of a millisecond.
pub(crate) const MILLI: u128 = 1_000_000;
/// Nanoseconds of a microsecond.
pub(crate) const MICRO: u128 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_rounded_up_and_long_ones_never_end() {
        assert_eq!(argument(Duration::ZERO, MILLI), "0");
        assert_eq!(argument(Duration::from_nanos(1), MILLI), "1");
        assert_eq!(argument(Duration::from_nanos(2_001), MICRO), "3");
        assert_eq!(argument(Duration::MAX, MICRO), "-");
        assert_eq!(argument(Duration::from_secs(u64::from(u32::MAX)), MILLI), "-");
    }
}
