//! Confidence intervals of ratios of times.

/// The quantiles .995 of Student's t distribution with 1, 2, … degrees of freedom, for intervals of 99 %.
const QUANTILES: [f64; 19] = [
    63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012, 2.977, 2.947,
    2.921, 2.898, 2.878, 2.861,
];

/// The most rounds.
pub(super) const MAX_ROUNDS: usize = QUANTILES.len() + 1;

/// A geometric mean of ratios with its confidence interval of 99 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Interval {
    pub(super) low: f64,
    pub(super) middle: f64,
    pub(super) high: f64,
}

/// The ratio of the second times to the first of pairs from 2 to [`MAX_ROUNDS`] rounds. The logarithms of the ratios are taken to be
/// normally distributed: the interval is exp(m ± t · s / √n), with their mean m and standard deviation s.
pub(super) fn ratio_of_rounds(pairs: &[(f64, f64)]) -> Interval {
    let logarithms: Vec<f64> = pairs.iter().map(|(before, after)| (after / before).ln()).collect();
    let n = logarithms.len() as f64;
    let mean = logarithms.iter().sum::<f64>() / n;
    let variance = logarithms.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let quantile = QUANTILES.get(pairs.len().saturating_sub(2)).copied().unwrap_or(f64::INFINITY);
    let half = quantile * (variance / n).sqrt();
    Interval { low: (mean - half).exp(), middle: mean.exp(), high: (mean + half).exp() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_ratios_have_no_width() {
        let found = ratio_of_rounds(&[(2.0, 3.0), (4.0, 6.0), (1.0, 1.5)]);
        for value in [found.low, found.middle, found.high] {
            assert!((value - 1.5).abs() < 1e-12, "{found:?}");
        }
    }

    /// m = 0 and s = ln 1.1 · √(4/3) of four rounds: exp(5.841 · s / 2) = 1.379.
    #[test]
    fn interval_is_that_of_the_formula() {
        let found = ratio_of_rounds(&[(1.0, 1.1), (1.1, 1.0), (1.0, 1.1), (1.1, 1.0)]);
        assert!((found.middle - 1.0).abs() < 1e-12, "{found:?}");
        assert!((found.high - 1.379).abs() < 1e-3, "{found:?}");
        assert!((found.low * found.high - 1.0).abs() < 1e-12, "{found:?}");
    }
}
