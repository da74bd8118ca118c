//! When requests are sent: closed loop and open loop.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

/// A clock.
pub(super) trait Clock: Sync {
    /// The time since the clock was started.
    fn now(&self) -> Duration;

    /// Returns at `time`, or at once if that has passed.
    fn sleep_until(&self, time: Duration);
}

/// The clock of the system.
#[derive(Debug)]
pub(super) struct SystemClock(Instant);

impl SystemClock {
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep_until(&self, time: Duration) {
        thread::sleep(time.saturating_sub(self.now()));
    }
}

/// The times at which the clients of a run send their requests.
///
/// In a closed loop, a client sends its next request once the last one was answered. A server that stalls gets fewer requests
/// then, and the stall counts once. In an open loop, requests are due at fixed times whatever the server does. Latencies count from
/// the time at which a request was due, so a stall counts for each request that was due during it (no coordinated omission).
#[derive(Debug)]
pub(super) struct Pace<'a, C> {
    clock: &'a C,
    begin: Duration,
    /// No request is due from then on.
    end: Duration,
    /// No request is sent from then on.
    deadline: Duration,
    /// Requests a second; `None` in a closed loop.
    rate: Option<f64>,
    next: AtomicU64,
    unsent: AtomicU64,
}

impl<'a, C: Clock> Pace<'a, C> {
    /// A run that begins now, and whose requests are due within `length`. Those that no client was free to send are sent for `grace`
    /// longer.
    pub(super) fn start(clock: &'a C, rate: Option<f64>, length: Duration, grace: Duration) -> Self {
        let begin = clock.now();
        let end = begin + length;
        let (next, unsent) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { clock, begin, end, deadline: end + grace, rate, next, unsent }
    }

    /// Waits until the next request is due, and returns the time that its latency counts from; `None` after the last one.
    pub(super) fn next(&self) -> Option<Duration> {
        let Some(rate) = self.rate else {
            let now = self.clock.now();
            return (now < self.end).then_some(now);
        };
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let due = self.begin + Duration::from_secs_f64(number as f64 / rate);
            if due >= self.end {
                return None;
            }
            self.clock.sleep_until(due);
            if self.clock.now() < self.deadline {
                return Some(due);
            }
            self.unsent.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits for the end of the run. In an open loop, the last request may be answered before.
    pub(super) fn finish(&self) {
        self.clock.sleep_until(self.end);
    }

    /// The time since `since`.
    pub(super) fn elapsed(&self, since: Duration) -> Duration {
        self.clock.now().saturating_sub(since)
    }

    /// The time since the run began.
    pub(super) fn length(&self) -> Duration {
        self.elapsed(self.begin)
    }

    /// The requests that were due and never sent.
    pub(super) fn unsent(&self) -> u64 {
        self.unsent.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A clock that only sleepers and [`FakeClock::pass`] move.
    #[derive(Default)]
    struct FakeClock(Mutex<Duration>);

    impl FakeClock {
        fn pass(&self, millis: u64) {
            *self.0.lock().unwrap() += Duration::from_millis(millis);
        }
    }

    impl Clock for FakeClock {
        fn now(&self) -> Duration {
            *self.0.lock().unwrap()
        }

        fn sleep_until(&self, time: Duration) {
            let mut now = self.0.lock().unwrap();
            *now = time.max(*now);
        }
    }

    /// The latencies in milliseconds of one client, whose n-th request takes `took(n)` ms, and the requests that were not sent.
    fn latencies(rate: Option<f64>, grace: u64, took: impl Fn(usize) -> u64) -> (Vec<u128>, u64) {
        let clock = FakeClock::default();
        clock.pass(12_345);
        let second = Duration::from_secs(1);
        let pace = Pace::start(&clock, rate, second, Duration::from_millis(grace));
        let mut latencies = Vec::new();
        while let Some(since) = pace.next() {
            clock.pass(took(latencies.len()));
            latencies.push(pace.elapsed(since).as_millis());
        }
        (latencies, pace.unsent())
    }

    #[test]
    fn stall_counts_once_in_a_closed_loop() {
        let (latencies, unsent) = latencies(None, 0, |n| if n == 2 { 450 } else { 100 });
        assert_eq!((latencies, unsent), (vec![100, 100, 450, 100, 100, 100, 100], 0));
    }

    #[test]
    fn stall_counts_for_each_request_that_is_due_during_it_in_an_open_loop() {
        let stalled = |n| if n == 2 { 450 } else { 10 };
        let (latencies, unsent) = latencies(Some(10.0), 500, stalled);
        // Due at 200 ms, answered at 650 ms; those due at 300 to 600 ms follow it.
        assert_eq!((latencies, unsent), (vec![10, 10, 450, 360, 270, 180, 90, 10, 10, 10], 0));
    }

    #[test]
    fn requests_that_are_due_and_not_sent_before_the_deadline_are_counted() {
        let (answered, unsent) = latencies(Some(10.0), 0, |_| 600);
        assert_eq!((answered, unsent), (vec![600, 1_100], 8));
        let (answered, unsent) = latencies(Some(10.0), 10_000, |_| 600);
        assert_eq!((answered.len(), answered[9], unsent), (10, 5_100, 0));
    }

    #[test]
    fn clients_share_the_times_of_an_open_loop() {
        let clock = FakeClock::default();
        let pace = Pace::start(&clock, Some(4.0), Duration::from_secs(1), Duration::ZERO);
        let due: Vec<Duration> = std::iter::from_fn(|| pace.next()).collect();
        assert_eq!(due, [0, 250, 500, 750].map(Duration::from_millis));
    }
}
