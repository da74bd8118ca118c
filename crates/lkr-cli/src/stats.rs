//! Numbers of a sample.

use std::time::Duration;

use serde::Serialize;

/// What a sample of durations looks like, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Latency {
    /// The mean.
    pub(crate) mean_ms: f64,
    /// The median.
    pub(crate) p50_ms: f64,
    /// What 99 of 100 are not above.
    pub(crate) p99_ms: f64,
}

impl Latency {
    /// Of `sample`, in any order; zeros of an empty one.
    pub(crate) fn of(mut sample: Vec<Duration>) -> Self {
        sample.sort_unstable();
        Self {
            mean_ms: mean(sample.iter().map(|&each| millis(each))),
            p50_ms: millis(quantile(&sample, 0.50)),
            p99_ms: millis(quantile(&sample, 0.99)),
        }
    }
}

/// The mean; 0 of nothing.
pub(crate) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0_u64), |(sum, count), value| (sum + value, count + 1));
    if count == 0 { 0.0 } else { sum / count as f64 }
}

/// The smallest value of a sorted sample that at least the share `q` of it is not above (the nearest rank).
fn quantile(sorted: &[Duration], q: f64) -> Duration {
    let rank = (q * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted.get(rank - 1).copied().unwrap_or_default()
}

/// A duration in milliseconds.
pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_nearest_ranks() {
        let sample = (1..=200).rev().map(Duration::from_millis).collect();
        let latency = Latency::of(sample);
        assert_eq!((latency.mean_ms, latency.p50_ms, latency.p99_ms), (100.5, 100.0, 198.0));
        let one = Latency::of(vec![Duration::from_millis(7)]);
        assert_eq!((one.mean_ms, one.p50_ms, one.p99_ms), (7.0, 7.0, 7.0));
        assert_eq!(Latency::of(Vec::new()), Latency::default());
    }
}
