use serde::Serialize;

/// The number of random permutations. See the crate documentation, "Significance".
const ROUNDS: u32 = 100_000;
/// The seed of the random permutations, fixed so that equal input has equal output.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
/// The most by which two sums of the same differences may differ because of the order of addition.
const ROUNDING_ERROR: f64 = 1e-9;

/// A comparison of two systems on the same queries.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Comparison {
    /// The number of queries that both systems answered.
    pub queries: usize,
    /// The mean of the first system minus the mean of the second.
    pub difference: f64,
    /// The standard error of that difference.
    pub standard_error: f64,
    /// The two-sided p-value of the difference, by a randomisation test (Fisher 1935; Smucker et al. 2007).
    pub p: f64,
    /// The number of queries on which the first system is better.
    pub better: usize,
    /// The number of queries on which the first system is worse.
    pub worse: usize,
}

impl Comparison {
    /// Compares paired measures; the first of each pair is the first system's.
    #[must_use]
    pub fn of(pairs: &[(f64, f64)]) -> Self {
        let differences: Vec<f64> = pairs.iter().map(|(a, b)| a - b).collect();
        let difference = mean(&differences);
        Self {
            queries: pairs.len(),
            difference,
            standard_error: standard_error(&differences, difference),
            p: p_value(&differences),
            better: differences.iter().filter(|&&d| d > ROUNDING_ERROR).count(),
            worse: differences.iter().filter(|&&d| d < -ROUNDING_ERROR).count(),
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

fn standard_error(values: &[f64], mean: f64) -> f64 {
    let n = values.len() as f64;
    if n < 2.0 {
        return 0.0;
    }
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (n - 1.0) / n).sqrt()
}

/// The share of random signs under which the sum of the differences is at least as far from 0 as the observed sum,
/// which is counted too. Differences of 0 have no sign and are left out.
fn p_value(differences: &[f64]) -> f64 {
    let magnitudes: Vec<f64> = differences.iter().map(|d| d.abs()).filter(|&d| d > ROUNDING_ERROR).collect();
    let observed = differences.iter().sum::<f64>().abs();
    let mut random = SplitMix64 { state: SEED };
    let at_least_as_large =
        (0..ROUNDS).filter(|_| random.signed_sum(&magnitudes).abs() >= observed - ROUNDING_ERROR).count();
    (1 + at_least_as_large) as f64 / (1.0 + f64::from(ROUNDS))
}

/// The random number generator SplitMix64 (Steele, Lea and Flood 2014).
struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// The sum of these magnitudes, each with a random sign.
    fn signed_sum(&mut self, magnitudes: &[f64]) -> f64 {
        let mut total = 0.0;
        for chunk in magnitudes.chunks(64) {
            let mut signs = self.next();
            for magnitude in chunk {
                total += if signs & 1 == 0 { *magnitude } else { -magnitude };
                signs >>= 1;
            }
        }
        total
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn compare_with_zero(differences: &[f64]) -> Comparison {
        Comparison::of(&differences.iter().map(|&d| (d, 0.0)).collect::<Vec<_>>())
    }

    #[test]
    fn p_value_matches_exact_probabilities() {
        // All n signs are equal in 2 of 2^n cases.
        for n in [3, 6, 10] {
            let p = compare_with_zero(&vec![0.5; n]).p;
            let exact = 2.0 / f64::from(1 << n);
            assert!((p - exact).abs() < 0.005, "{n}: {p} for {exact}");
        }
        // 1, 1, 1 and −1: every sum but 0 is at least as large, and 0 occurs in 6 of 16 cases.
        let p = compare_with_zero(&[1.0, 1.0, 1.0, -1.0]).p;
        assert!((p - 10.0 / 16.0).abs() < 0.01, "{p}");
    }

    #[test]
    fn equal_systems_have_p_value_one() {
        let equal = Comparison::of(&[(0.4, 0.4), (1.0, 1.0)]);
        assert_eq!((equal.p, equal.difference, equal.better, equal.worse), (1.0, 0.0, 0, 0));
        assert_eq!(Comparison::of(&[]).p, 1.0);
        let balanced = compare_with_zero(&[0.3, -0.3, 0.0]);
        assert_eq!((balanced.p, balanced.better, balanced.worse), (1.0, 1, 1));
    }

    #[test]
    fn standard_error_matches_hand_calculation() {
        // Differences 1 and 3: variance 2, over n = 2.
        let comparison = Comparison::of(&[(1.0, 0.0), (3.0, 0.0)]);
        assert_eq!((comparison.difference, comparison.standard_error), (2.0, 1.0));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn swapping_the_systems_negates_the_difference(pairs in prop::collection::vec((0.0..1.0, 0.0..1.0), 0..40)) {
            let swapped: Vec<(f64, f64)> = pairs.iter().map(|&(a, b)| (b, a)).collect();
            let (one, other) = (Comparison::of(&pairs), Comparison::of(&swapped));
            prop_assert_eq!((one.p, one.better, one.worse), (other.p, other.worse, other.better));
            prop_assert!((one.difference + other.difference).abs() < 1e-12);
            prop_assert!(one.p > 0.0 && one.p <= 1.0);
            prop_assert_eq!(one, Comparison::of(&pairs));
        }
    }
}
