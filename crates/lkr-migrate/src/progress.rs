use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// What a migration is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Counting the source; the total is unknown.
    Inspecting,
    /// Removing what an earlier run copied of a source that has changed since.
    Clearing,
    /// Copying points.
    Points,
    /// Copying texts and originals.
    Blobs,
    /// Copying records.
    Records,
    /// Comparing points.
    VerifyingPoints,
    /// Comparing texts and originals.
    VerifyingBlobs,
    /// Comparing records.
    VerifyingRecords,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inspecting => "counting",
            Self::Clearing => "removing an outdated copy",
            Self::Points => "copying points",
            Self::Blobs => "copying texts and originals",
            Self::Records => "copying records",
            Self::VerifyingPoints => "verifying points",
            Self::VerifyingBlobs => "verifying texts and originals",
            Self::VerifyingRecords => "verifying records",
        })
    }
}

/// How far a phase is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The phase.
    pub phase: Phase,
    /// How many points, files or records are done, those of earlier runs included.
    pub done: u64,
    /// How many there are; `None` if that is unknown.
    pub total: Option<u64>,
    /// The bytes of texts and originals that this run has read; 0 in other phases.
    pub bytes: u64,
    /// How many of `done` earlier runs did.
    pub earlier: u64,
    /// How long this run has been in the phase.
    pub elapsed: Duration,
}

impl Progress {
    /// Items per second of this run.
    #[must_use]
    pub fn rate(&self) -> f64 {
        let done = self.done.saturating_sub(self.earlier);
        done as f64 / self.elapsed.as_secs_f64().max(1e-3)
    }

    /// How long the rest of the phase takes at the rate so far; `None` if that is unknown.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        let left = self.total?.saturating_sub(self.done) as f64;
        let rate = self.rate();
        if left == 0.0 {
            return Some(Duration::ZERO);
        }
        (rate > 0.0).then(|| Duration::try_from_secs_f64(left / rate).ok()).flatten()
    }
}

/// Receives the progress, from any thread and often; it must return at once.
pub type ProgressSink<'a> = &'a (dyn Fn(Progress) + Send + Sync);

/// Counts what is done in a phase and reports it.
pub(crate) struct Meter<'a> {
    sink: ProgressSink<'a>,
    phase: Phase,
    total: Option<u64>,
    earlier: u64,
    done: AtomicU64,
    bytes: AtomicU64,
    begun: Instant,
}

impl<'a> Meter<'a> {
    pub(crate) fn begin(sink: ProgressSink<'a>, phase: Phase, total: Option<u64>, earlier: u64) -> Self {
        let (done, bytes) = (AtomicU64::new(earlier), AtomicU64::new(0));
        let meter = Self { sink, phase, total, earlier, done, bytes, begun: Instant::now() };
        meter.report();
        meter
    }

    pub(crate) fn add(&self, items: u64, bytes: u64) {
        self.done.fetch_add(items, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.report();
    }

    fn report(&self) {
        (self.sink)(Progress {
            phase: self.phase,
            done: self.done.load(Ordering::Relaxed),
            total: self.total,
            bytes: self.bytes.load(Ordering::Relaxed),
            earlier: self.earlier,
            elapsed: self.begun.elapsed(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_and_remaining_time_leave_earlier_runs_out() {
        let progress = Progress {
            phase: Phase::Points,
            done: 600,
            total: Some(1_000),
            bytes: 0,
            earlier: 400,
            elapsed: Duration::from_secs(10),
        };
        assert!((progress.rate() - 20.0).abs() < 1e-9);
        assert_eq!(progress.remaining(), Some(Duration::from_secs(20)));
        assert_eq!(Progress { done: 400, ..progress }.remaining(), None);
        assert_eq!(Progress { total: None, ..progress }.remaining(), None);
        assert_eq!(Progress { done: 1_000, ..progress }.remaining(), Some(Duration::ZERO));
    }
}
