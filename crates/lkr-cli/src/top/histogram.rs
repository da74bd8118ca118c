//! Histograms between two moments.

use super::exposition::{Sample, Samples};

/// The observations of a histogram between two moments, summed over its labels.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Histogram {
    /// Upper bounds and the numbers of observations up to them, ascending.
    buckets: Vec<(f64, f64)>,
    pub(super) sum: f64,
    pub(super) count: f64,
}

impl Histogram {
    /// The observations of the series that `keep` accepts.
    pub(super) fn between(
        before: &Samples,
        now: &Samples,
        name: &str,
        keep: impl Fn(&Sample) -> bool + Copy,
    ) -> Self {
        let increase = |part: &str| {
            let name = format!("{name}_{part}");
            since(before.sum(&name, keep), now.sum(&name, keep))
        };
        let name_of_buckets = format!("{name}_bucket");
        let mut bounds: Vec<f64> = now.of(&name_of_buckets).filter_map(upper_bound).collect();
        bounds.sort_by(f64::total_cmp);
        bounds.dedup();
        let up_to = |samples: &Samples, bound: f64| {
            samples.sum(&name_of_buckets, |sample| keep(sample) && upper_bound(sample) == Some(bound))
        };
        let buckets = bounds.into_iter().map(|bound| (bound, since(up_to(before, bound), up_to(now, bound))));
        Self { buckets: buckets.collect(), sum: increase("sum"), count: increase("count") }
    }

    /// The quantile `q` in seconds, interpolated within its bucket; `None` without observations. Beyond the last bound it
    /// is that bound.
    pub(super) fn quantile(&self, q: f64) -> Option<f64> {
        let (rank, mut lower, mut below) = (q * self.count, 0.0, 0.0);
        if self.count <= 0.0 {
            return None;
        }
        for &(bound, up_to) in &self.buckets {
            if up_to >= rank {
                let inside = up_to - below;
                let share = if inside > 0.0 { (rank - below) / inside } else { 1.0 };
                return Some(if bound.is_finite() { lower + share * (bound - lower) } else { lower });
            }
            (below, lower) = (up_to, if bound.is_finite() { bound } else { lower });
        }
        Some(lower)
    }

    /// The mean in seconds; `None` without observations.
    pub(super) fn mean(&self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum / self.count)
    }
}

/// The increase of a counter. One that fell began again with a new process.
pub(super) fn since(before: f64, now: f64) -> f64 {
    if now < before { now } else { now - before }
}

fn upper_bound(sample: &Sample) -> Option<f64> {
    sample.label("le").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(counts: [u32; 3]) -> Samples {
        let [a, b, all] = counts;
        let text = format!(
            "h_bucket{{r=\"x\",le=\"0.1\"}} {a}\nh_bucket{{r=\"x\",le=\"1\"}} {b}\nh_bucket{{r=\"x\",le=\"+Inf\"}} {all}\n\
             h_sum{{r=\"x\"}} {all}\nh_count{{r=\"x\"}} {all}\nh_bucket{{r=\"y\",le=\"0.1\"}} 5\nh_count{{r=\"y\"}} 5\n"
        );
        Samples::parse(&text).unwrap()
    }

    #[test]
    fn quantiles_are_interpolated_over_the_increase() {
        let (before, now) = (samples([10, 10, 10]), samples([60, 100, 110]));
        let histogram = Histogram::between(&before, &now, "h", |sample| sample.label("r") == "x");
        assert_eq!(histogram.count, 100.0);
        // 50 of 100 are at most 0.1, so the median is the bound; 90 are at most 1.
        assert!((histogram.quantile(0.5).unwrap() - 0.1).abs() < 1e-9);
        assert!((histogram.quantile(0.7).unwrap() - 0.55).abs() < 1e-9);
        assert!((histogram.quantile(0.99).unwrap() - 1.0).abs() < 1e-9);
        assert!((histogram.mean().unwrap() - 1.0).abs() < 1e-9);
        let nothing = Histogram::between(&now, &now, "h", |_| true);
        assert_eq!((nothing.quantile(0.5), nothing.mean()), (None, None));
    }

    #[test]
    fn counters_of_a_new_process_begin_at_zero() {
        assert_eq!((since(10.0, 13.0), since(10.0, 4.0)), (3.0, 4.0));
    }
}
