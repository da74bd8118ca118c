use serde::Serialize;

/// How often the figures are swapped at random.
const ROUNDS: u32 = 100_000;
/// Where the swaps begin, the same in each run.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
/// What two sums of the same differences, added up in another order, may be apart.
const ROUNDING: f64 = 1e-9;

/// Two systems on the same queries.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Comparison {
    /// How many queries both answered.
    pub queries: usize,
    /// The mean of the first less the mean of the second.
    pub difference: f64,
    /// The standard error of that difference.
    pub standard_error: f64,
    /// How likely a difference as large, either way, would be if the two were alike (randomisation test).
    pub p: f64,
    /// On how many queries the first is better.
    pub better: usize,
    /// On how many queries the first is worse.
    pub worse: usize,
}

impl Comparison {
    /// Compares figures that come in pairs, the first system's first.
    #[must_use]
    pub fn of(pairs: &[(f64, f64)]) -> Self {
        let differences: Vec<f64> = pairs.iter().map(|(a, b)| a - b).collect();
        let difference = mean(&differences);
        Self {
            queries: pairs.len(),
            difference,
            standard_error: standard_error(&differences, difference),
            p: p_value(&differences),
            better: differences.iter().filter(|&&d| d > ROUNDING).count(),
            worse: differences.iter().filter(|&&d| d < -ROUNDING).count(),
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

/// The share of random signs under which the sum of the differences is at least as far from 0, the one that was seen
/// counted in. Differences of 0 have no sign and are left out.
fn p_value(differences: &[f64]) -> f64 {
    let sizes: Vec<f64> = differences.iter().map(|d| d.abs()).filter(|&d| d > ROUNDING).collect();
    let seen = differences.iter().sum::<f64>().abs();
    let mut bits = Bits { state: SEED };
    let as_large = (0..ROUNDS).filter(|_| bits.sum(&sizes).abs() >= seen - ROUNDING).count();
    (1 + as_large) as f64 / (1.0 + f64::from(ROUNDS))
}

/// Random bits: SplitMix64 (Steele, Lea and Flood, 2014).
struct Bits {
    state: u64,
}

impl Bits {
    /// The sum of these sizes, each with a sign of chance.
    fn sum(&mut self, sizes: &[f64]) -> f64 {
        let mut total = 0.0;
        for sizes in sizes.chunks(64) {
            let mut signs = self.next();
            for size in sizes {
                total += if signs & 1 == 0 { *size } else { -size };
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

    fn against_zero(differences: &[f64]) -> Comparison {
        Comparison::of(&differences.iter().map(|&d| (d, 0.0)).collect::<Vec<_>>())
    }

    #[test]
    fn chance_is_counted_right_where_it_can_be_by_hand() {
        // All of n signs alike: 2 of 2^n.
        for n in [3, 6, 10] {
            let p = against_zero(&vec![0.5; n]).p;
            let exact = 2.0 / f64::from(1 << n);
            assert!((p - exact).abs() < 0.005, "{n}: {p} for {exact}");
        }
        // 1, 1, 1 and −1: every sum but 0 is as large, and 0 comes up 6 of 16 times.
        let p = against_zero(&[1.0, 1.0, 1.0, -1.0]).p;
        assert!((p - 10.0 / 16.0).abs() < 0.01, "{p}");
    }

    #[test]
    fn what_is_alike_is_not_told_apart() {
        let alike = Comparison::of(&[(0.4, 0.4), (1.0, 1.0)]);
        assert_eq!((alike.p, alike.difference, alike.better, alike.worse), (1.0, 0.0, 0, 0));
        assert_eq!(Comparison::of(&[]).p, 1.0);
        let turned = against_zero(&[0.3, -0.3, 0.0]);
        assert_eq!((turned.p, turned.better, turned.worse), (1.0, 1, 1));
    }

    #[test]
    fn standard_errors_by_hand() {
        // Differences 1 and 3: variance 2, over n = 2.
        let comparison = Comparison::of(&[(1.0, 0.0), (3.0, 0.0)]);
        assert_eq!((comparison.difference, comparison.standard_error), (2.0, 1.0));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn turning_the_systems_round_turns_the_difference(pairs in prop::collection::vec((0.0..1.0, 0.0..1.0), 0..40)) {
            let turned: Vec<(f64, f64)> = pairs.iter().map(|&(a, b)| (b, a)).collect();
            let (one, other) = (Comparison::of(&pairs), Comparison::of(&turned));
            prop_assert_eq!((one.p, one.better, one.worse), (other.p, other.worse, other.better));
            prop_assert!((one.difference + other.difference).abs() < 1e-12);
            prop_assert!(one.p > 0.0 && one.p <= 1.0);
            prop_assert_eq!(one, Comparison::of(&pairs));
        }
    }
}
