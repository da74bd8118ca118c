//! The area under the ROC curve of a threshold classifier.

use std::time::Duration;

/// The number of pairs on each side whose median is the present level of response times.
const NEIGHBOURS: usize = 8;

/// The times of two classes, measured in pairs, as seconds above the median of the neighbouring pairs. So a threshold works
/// although other load on the machine changes the level of both classes over time.
pub(super) fn without_drift(times: [&[Duration]; 2]) -> [Vec<f64>; 2] {
    let [first, second] = times;
    let pairs: Vec<[f64; 2]> =
        first.iter().zip(second).map(|(a, b)| [a.as_secs_f64(), b.as_secs_f64()]).collect();
    let level = |at: usize| {
        let before = pairs.iter().take(at).skip(at.saturating_sub(NEIGHBOURS));
        let after = pairs.iter().skip(at + 1).take(NEIGHBOURS);
        let mut near: Vec<f64> = before.chain(after).flatten().copied().collect();
        near.sort_unstable_by(f64::total_cmp);
        near.get(near.len() / 2).copied().unwrap_or_default()
    };
    let above: Vec<[f64; 2]> =
        pairs.iter().enumerate().map(|(at, pair)| pair.map(|time| time - level(at))).collect();
    above.into_iter().map(|[first, second]| (first, second)).unzip::<_, _, Vec<f64>, Vec<f64>>().into()
}

/// How well a threshold separates two samples: the probability that a value of one exceeds a value of the other, with ties
/// counted as half (the Mann-Whitney U statistic by the number of pairs). The direction does not matter, so the result is
/// from 0.5 (not at all) to 1 (completely). 0.5 if a sample is empty.
pub(super) fn auc([first, second]: &[Vec<f64>; 2]) -> f64 {
    let pairs = first.len() as f64 * second.len() as f64;
    if pairs == 0.0 {
        return 0.5;
    }
    let mut values: Vec<(f64, bool)> = first.iter().map(|&value| (value, false)).collect();
    values.extend(second.iter().map(|&value| (value, true)));
    values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let (mut wins, mut smaller) = (0.0, 0.0);
    for ties in values.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
        let of_second = ties.iter().filter(|(_, is_second)| *is_second).count() as f64;
        let of_first = ties.len() as f64 - of_second;
        wins += of_second * (smaller + of_first / 2.0);
        smaller += of_first;
    }
    let share = wins / pairs;
    share.max(1.0 - share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auc_is_the_share_of_ordered_pairs_in_the_better_direction() {
        let of = |first: &[f64], second: &[f64]| auc(&[first.to_vec(), second.to_vec()]);
        assert!((of(&[1.0, 2.0, 3.0], &[4.0, 5.0]) - 1.0).abs() < 1e-12);
        assert!((of(&[4.0, 5.0], &[1.0, 2.0, 3.0]) - 1.0).abs() < 1e-12);
        assert!((of(&[7.0, 7.0], &[7.0, 7.0, 7.0]) - 0.5).abs() < 1e-12);
        // Of the pairs (1,2) (1,3) (2,2) (2,3), three and a half have the greater value second.
        assert!((of(&[1.0, 2.0], &[3.0, 2.0]) - 3.5 / 4.0).abs() < 1e-12);
        assert!((of(&[], &[1.0]) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn leak_is_found_under_a_changing_level_and_equal_classes_stay_equal() {
        let drifting = |leak: u64| -> Vec<Duration> {
            (0..2_000_u64).map(|n| Duration::from_micros(100 + n / 2 + (n * 7_919) % 13 + leak)).collect()
        };
        let of = |first: &[Duration], second: &[Duration]| auc(&without_drift([first, second]));
        assert!(of(&drifting(0), &drifting(50)) > 0.99);
        assert!((of(&drifting(0), &drifting(0)) - 0.5).abs() < 1e-9);
        let plain = |times: Vec<Duration>| times.iter().map(Duration::as_secs_f64).collect::<Vec<_>>();
        assert!(
            auc(&[plain(drifting(0)), plain(drifting(50))]) < 0.7,
            "without this, the drift hides the leak"
        );
    }
}
