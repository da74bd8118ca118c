//! Calibration: measures how far a model's cosines spread over fixed passages and derives the scale of graded ranks from
//! it.

/// The factor of `c₁ − cos` in graded ranks, tuned on all-MiniLM-L6-v2: 61 × 0.5. See docs/studies.md#cosine-scale.
pub const REFERENCE_SCALE: f32 = 30.5;

/// The [`spread`] of all-MiniLM-L6-v2, for which [`REFERENCE_SCALE`] was tuned, over [`calibration_passages`]. See
/// docs/studies.md#cosine-scale.
const REFERENCE_SPREAD: f32 = 0.41;

/// Within this factor of the reference, a spread says more about the texts than about the model: the one of
/// all-MiniLM-L6-v2 ranges from 0.37 to 0.52 over four English collections. See docs/studies.md#cosine-scale.
const REFERENCE_TOLERANCE: f32 = 1.4;

/// The scale stays within this factor of the reference for every model. See docs/studies.md#cosine-scale.
const MAX_SCALE_RATIO: f32 = 10.0;

/// The rank of the neighbour that the nearest one is compared with: the depth to which a leg of a search is ranked.
const DEPTH: usize = 100;

/// The fewest vectors whose spread is meaningful. See docs/studies.md#cosine-scale.
const MIN_SAMPLE: usize = 32;

/// The passages, one a line.
const PASSAGES: &str = include_str!("calibration/passages.txt");

/// The passages whose vectors calibrate a model, always the same: two hundred of about 40 words, in English, from the
/// documentation of lkr. Stored texts are not used, because a search must not depend on documents that its caller may not
/// read.
pub fn calibration_passages() -> impl Iterator<Item = &'static str> {
    PASSAGES.lines()
}

/// How far cosines spread among vectors of length 1: the mean of `c₁ − c₁₀₀`, where each vector is compared with all
/// others, and `c₁` and `c₁₀₀` are the cosines of its nearest and its hundredth neighbour. With fewer than two hundred
/// vectors, the middle neighbour takes the place of the hundredth.
///
/// The spread estimates, without a query, how far the best hit of a search exceeds the hundredth one. `None` for fewer
/// than 32 vectors.
#[must_use]
pub fn spread(sample: &[Vec<f32>]) -> Option<f32> {
    if sample.len() < MIN_SAMPLE {
        return None;
    }
    let depth = DEPTH.min(sample.len() / 2);
    let difference = |(at, vector): (usize, &Vec<f32>)| {
        let others = sample.iter().enumerate().filter(|(other, _)| *other != at);
        let mut cosines: Vec<f32> = others.map(|(_, other)| dot(vector, other)).collect();
        cosines.sort_by(|a, b| b.total_cmp(a));
        Some(cosines.first()? - cosines.get(depth - 1)?)
    };
    let sum: f32 = sample.iter().enumerate().filter_map(difference).sum();
    Some(sum / sample.len() as f32)
}

/// The factor of `c₁ − cos` in graded ranks for a model with this spread over [`calibration_passages`]:
/// `30.5 · S_MiniLM / S`. So the hundredth hit is as many ranks behind the first with any model. For spreads near MiniLM's
/// own the factor stays 30.5, because one model's spread differs as much between collections.
#[must_use]
pub fn cosine_scale(spread: f32) -> f32 {
    if !spread.is_finite() || spread <= f32::EPSILON {
        return REFERENCE_SCALE;
    }
    let ratio = REFERENCE_SPREAD / spread;
    if (REFERENCE_TOLERANCE.recip()..=REFERENCE_TOLERANCE).contains(&ratio) {
        return REFERENCE_SCALE;
    }
    REFERENCE_SCALE * ratio.clamp(MAX_SCALE_RATIO.recip(), MAX_SCALE_RATIO)
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Vectors in the plane, each rotated by `step` radians against the one before.
    fn fan(count: usize, step: f32) -> Vec<Vec<f32>> {
        let angle = |n: usize| n as f32 * step;
        (0..count).map(|n| vec![angle(n).cos(), angle(n).sin()]).collect()
    }

    #[test]
    fn spread_matches_values_computed_by_hand() {
        // 32 vectors, the first 31 of them equal: they get the cosines 1 and 1, the last one gets 0 and 0.
        let mut vectors = vec![vec![1.0, 0.0]; 31];
        vectors.push(vec![0.0, 1.0]);
        assert_eq!(spread(&vectors), Some(0.0));
        // Two clusters of 16: a vector has 15 neighbours in its own cluster, so its middle neighbour is in the other.
        let clusters: Vec<Vec<f32>> = [vec![vec![1.0, 0.0]; 16], vec![vec![0.0, 1.0]; 16]].concat();
        assert_eq!(spread(&clusters), Some(1.0));
        assert_eq!(spread(&clusters[..31]), None);
    }

    #[test]
    fn smaller_spread_gives_a_larger_scale() {
        let (narrow, wide) = (spread(&fan(120, 0.002)).unwrap(), spread(&fan(120, 0.02)).unwrap());
        assert!(narrow * 5.0 < wide, "{narrow} {wide}");
        assert!(cosine_scale(narrow) > cosine_scale(wide));
    }

    #[test]
    fn spread_near_the_reference_keeps_the_reference_scale() {
        for spread in [REFERENCE_SPREAD, REFERENCE_SPREAD * 1.3, REFERENCE_SPREAD / 1.3] {
            assert_eq!(cosine_scale(spread), REFERENCE_SCALE);
        }
        assert!((cosine_scale(REFERENCE_SPREAD / 4.0) - 4.0 * REFERENCE_SCALE).abs() < 1e-3);
        assert!((cosine_scale(REFERENCE_SPREAD * 2.0) - REFERENCE_SCALE / 2.0).abs() < 1e-3);
    }

    #[test]
    fn calibration_passages_fill_a_sample() {
        let distinct: std::collections::BTreeSet<_> = calibration_passages().collect();
        assert_eq!(distinct.len(), 2 * DEPTH);
        assert!(distinct.iter().all(|passage| passage.len() > 60));
    }

    proptest! {
        #[test]
        fn scale_of_any_spread_is_within_the_bounds(spread in prop::num::f32::ANY) {
            let scale = cosine_scale(spread);
            let bounds = REFERENCE_SCALE / MAX_SCALE_RATIO..=REFERENCE_SCALE * MAX_SCALE_RATIO;
            prop_assert!(bounds.contains(&scale), "{}", scale);
        }
    }
}
