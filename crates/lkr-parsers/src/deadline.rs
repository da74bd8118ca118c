use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A clock that deadlines are measured with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Time passes as on a clock on the wall.
    Wall,
    /// Time passes only while this process uses a processor. Sleeping and waiting for a busy machine take no time.
    Processor,
}

impl Clock {
    /// The time on this clock, since a fixed moment.
    #[must_use]
    pub fn now(self) -> Duration {
        let id = match self {
            Self::Wall => ClockId::Monotonic,
            Self::Processor => ClockId::ProcessCPUTime,
        };
        Duration::try_from(clock_gettime(id)).unwrap_or_default()
    }
}

/// A moment at which a parser should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    clock: Clock,
    at: Duration,
}

impl Deadline {
    /// After this time on a clock.
    #[must_use]
    pub fn after(clock: Clock, time: Duration) -> Self {
        Self { clock, at: clock.now().saturating_add(time) }
    }

    /// The clock that it is measured with.
    #[must_use]
    pub const fn clock(self) -> Clock {
        self.clock
    }

    /// The time that is left; zero if it has passed.
    #[must_use]
    pub fn time_left(self) -> Duration {
        self.at.saturating_sub(self.clock.now())
    }

    /// Whether it has passed.
    #[must_use]
    pub fn has_passed(self) -> bool {
        self.time_left().is_zero()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadline_of_processor_time_ignores_sleep_and_counts_work() {
        let moment = Duration::from_millis(20);
        let (wall, processor) = (
            Deadline::after(Clock::Wall, moment),
            Deadline::after(Clock::Processor, Duration::from_secs(3600)),
        );
        std::thread::sleep(moment);
        assert!(wall.has_passed() && !processor.has_passed());
        let processor = Deadline::after(Clock::Processor, moment);
        while !processor.has_passed() {
            std::hint::black_box(processor.time_left());
        }
        assert!(processor.time_left().is_zero());
        assert!(Deadline::after(Clock::Wall, Duration::ZERO).has_passed());
    }
}
