//! The CPU time of this process, and waiting until it has nothing left to do, so that what goes on in the background
//! is counted where it belongs.

use std::{
    fs,
    time::{Duration, Instant},
};

/// How long there must be nothing to do.
const WINDOW: Duration = Duration::from_millis(100);

/// The CPU time that nothing to do may take.
const IDLE: Duration = Duration::from_millis(20);

/// The unit of the CPU times in /proc, which Linux fixes for programs at a hundred a second.
const TICK: Duration = Duration::from_millis(10);

/// Waits until the process is idle, and answers since when. At once where the system does not tell how much CPU time
/// it has used.
pub(super) async fn wait_until_idle() -> Instant {
    loop {
        let since = Instant::now();
        let Some(before) = cpu_time() else { return since };
        tokio::time::sleep(WINDOW).await;
        if cpu_time().is_none_or(|after| after.saturating_sub(before) <= IDLE) {
            return since;
        }
    }
}

/// The CPU time of this process: the fields utime and stime of its stat file, which follow its name by 11 and 12.
/// Nothing where the system does not tell.
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
