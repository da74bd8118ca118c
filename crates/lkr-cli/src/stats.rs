//! Statistics of samples.

use std::time::Duration;

use serde::Serialize;

/// The latencies of a sample, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Latency {
    /// The mean.
    pub(crate) mean_ms: f64,
    /// The median.
    pub(crate) p50_ms: f64,
    /// The 99th percentile.
    pub(crate) p99_ms: f64,
}

impl Latency {
    /// The latencies of `sample`, which may be in any order; zeros if it is empty.
    pub(crate) fn of(mut sample: Vec<Duration>) -> Self {
        sample.sort_unstable();
        Self {
            mean_ms: mean(sample.iter().map(|&each| millis(each))),
            p50_ms: millis(quantile(&sample, 0.50)),
            p99_ms: millis(quantile(&sample, 0.99)),
        }
    }
}

/// The mean, or 0 of no values.
pub(crate) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0_u64), |(sum, count), value| (sum + value, count + 1));
    if count == 0 { 0.0 } else { sum / count as f64 }
}

/// The nearest-rank quantile: the smallest value that at least the share `q` of the sorted sample does not exceed.
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
