//! The area under the ROC curve of a threshold classifier.

use std::time::Duration;

/// How well a threshold separates two samples: the probability that a value of one exceeds a value of the other, with ties
/// counted as half (the Mann-Whitney U statistic by the number of pairs). The direction does not matter, so the result is
/// from 0.5 (not at all) to 1 (completely). 0.5 if a sample is empty.
pub(super) fn auc(first: &[Duration], second: &[Duration]) -> f64 {
    let pairs = first.len() as f64 * second.len() as f64;
    if pairs == 0.0 {
        return 0.5;
    }
    let mut values: Vec<(Duration, bool)> = first.iter().map(|&time| (time, false)).collect();
    values.extend(second.iter().map(|&time| (time, true)));
    values.sort_unstable();
    let (mut wins, mut smaller) = (0.0, 0.0);
    for ties in values.chunk_by(|a, b| a.0 == b.0) {
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

    fn times(values: &[u64]) -> Vec<Duration> {
        values.iter().map(|&value| Duration::from_micros(value)).collect()
    }

    #[test]
    fn auc_is_the_share_of_ordered_pairs_in_the_better_direction() {
        let of = |first: &[u64], second: &[u64]| auc(&times(first), &times(second));
        assert!((of(&[1, 2, 3], &[4, 5]) - 1.0).abs() < 1e-12);
        assert!((of(&[4, 5], &[1, 2, 3]) - 1.0).abs() < 1e-12);
        assert!((of(&[7, 7], &[7, 7, 7]) - 0.5).abs() < 1e-12);
        // Of the pairs (1,2) (1,3) (2,2) (2,3), three and a half have the greater value second.
        assert!((of(&[1, 2], &[3, 2]) - 3.5 / 4.0).abs() < 1e-12);
        assert!((of(&[], &[1]) - 0.5).abs() < 1e-12);
    }
}
