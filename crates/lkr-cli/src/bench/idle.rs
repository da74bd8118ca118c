//! The CPU time of this process, and waiting until it is idle, so that background work is counted for the step that
//! caused it.

use std::{
    fs,
    time::{Duration, Instant},
};

/// The time for which the process must be idle.
const WINDOW: Duration = Duration::from_millis(100);

/// The most CPU time that an idle process uses in that time.
const IDLE: Duration = Duration::from_millis(20);

/// The unit of CPU times in /proc: Linux reports a hundred ticks a second.
const TICK: Duration = Duration::from_millis(10);

/// The number of idle observations after which background work is taken to be done.
const IDLE_OBSERVATIONS: usize = 20;

/// Waits until background work, such as that on clusters and posting lists, is done, and returns since when. On a busy machine, a
/// process with work left can look idle for a moment, so it must do so several times.
pub(super) async fn wait_until_background_work_is_done() -> Instant {
    wait_until_seen_idle(IDLE_OBSERVATIONS).await
}

/// Waits until the process is idle, and returns since when. Returns at once if the system does not report CPU times.
pub(super) async fn wait_until_idle() -> Instant {
    wait_until_seen_idle(1).await
}

/// Waits for so many idle observations, and returns when the last one ended that was not idle.
async fn wait_until_seen_idle(observations: usize) -> Instant {
    let (mut since, mut left) = (Instant::now(), observations);
    while left > 0 {
        let Some(before) = cpu_time() else { return since };
        tokio::time::sleep(WINDOW).await;
        if cpu_time().is_none_or(|after| after.saturating_sub(before) <= IDLE) {
            left -= 1;
        } else {
            since = Instant::now();
        }
    }
    since
}

/// The CPU time of this process: the fields utime and stime of its stat file, which are 11 and 12 fields after its
/// name. `None` if the system does not report it.
pub(super) fn cpu_time() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let mut ticks = fields.split_whitespace().skip(11).map(|field| field.parse::<u32>().ok());
    Some(TICK * (ticks.next()?? + ticks.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_grows_with_work() {
        let Some(before) = cpu_time() else { return };
        let mut sum = 0_u64;
        while cpu_time().unwrap() < before + 5 * TICK {
            sum = (0..100_000_u64).fold(sum, |sum, n| std::hint::black_box(sum ^ n));
        }
        assert!(cpu_time().unwrap() >= before + 5 * TICK);
    }
}
