//! How far a model's cosines spread, and what that means to the fusion.

/// The factor of `c₁ − cos` in graded ranks that was found by experiment with all-MiniLM-L6-v2: 61 × .5.
const REFERENCE_SCALE: f32 = 30.5;

/// What [`spread`] is of all-MiniLM-L6-v2 with that factor: the mean of the four English collections that may be tuned
/// on, .37 (scientific abstracts, a handbook) to .52 (five texts about different things).
const REFERENCE_SPREAD: f32 = 0.43;

/// Within this factor of the reference, a spread says more of the texts than of the model.
const LIKE_REFERENCE: f32 = 1.4;

/// However odd a model is, the factor stays within this factor of the reference.
const MOST: f32 = 10.0;

/// Of how many neighbours the nearest and the farthest are compared: as many as a leg of a search tells apart.
const DEPTH: usize = 100;

/// The least number of vectors whose spread says anything.
const LEAST: usize = 32;

/// How many vectors are sample enough.
pub const CALIBRATION_SAMPLE: usize = 2 * DEPTH;

/// How far cosines spread among vectors of length 1: the mean of `c₁ − c₁₀₀`, where each vector asks the others and
/// `c₁` and `c₁₀₀` are the cosines of the nearest and of the hundredth; of the one in the middle where there are fewer
/// than two hundred. At most the first [`CALIBRATION_SAMPLE`] count, so that it does not depend on how many there are.
///
/// It stands for what a search sees, without a query: how far the best hit stands out from the hundredth among texts
/// of one collection. `None` where there are fewer than 32.
#[must_use]
pub fn spread(vectors: &[Vec<f32>]) -> Option<f32> {
    let sample = vectors.get(..CALIBRATION_SAMPLE).unwrap_or(vectors);
    if sample.len() < LEAST {
        return None;
    }
    let depth = DEPTH.min(sample.len() / 2);
    let one = |(at, vector): (usize, &Vec<f32>)| {
        let others = sample.iter().enumerate().filter(|(other, _)| *other != at);
        let mut cosines: Vec<f32> = others.map(|(_, other)| dot(vector, other)).collect();
        cosines.sort_by(|a, b| b.total_cmp(a));
        Some(cosines.first()? - cosines.get(depth - 1)?)
    };
    let sum: f32 = sample.iter().enumerate().filter_map(one).sum();
    Some(sum / sample.len() as f32)
}

/// The factor of `c₁ − cos` in graded ranks for a model of this spread: `30.5 · S_MiniLM / S`, so that the hundredth
/// hit stands as many ranks behind the first with any model. A spread like MiniLM's own leaves the factor at 30.5,
/// because that of one model differs as much from one collection to the next.
#[must_use]
pub fn cosine_scale(spread: f32) -> f32 {
    if !spread.is_finite() || spread <= f32::EPSILON {
        return REFERENCE_SCALE;
    }
    let ratio = REFERENCE_SPREAD / spread;
    if (LIKE_REFERENCE.recip()..=LIKE_REFERENCE).contains(&ratio) {
        return REFERENCE_SCALE;
    }
    REFERENCE_SCALE * ratio.clamp(MOST.recip(), MOST)
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Vectors on a fan of the plane, each so many radians beside the one before.
    fn fan(count: usize, step: f32) -> Vec<Vec<f32>> {
        let angle = |n: usize| n as f32 * step;
        (0..count).map(|n| vec![angle(n).cos(), angle(n).sin()]).collect()
    }

    #[test]
    fn a_spread_by_hand() {
        // 32 vectors, the first 31 of them equal: these see cosine 1 and 1, the last sees 0 and 0.
        let mut vectors = vec![vec![1.0, 0.0]; 31];
        vectors.push(vec![0.0, 1.0]);
        assert_eq!(spread(&vectors), Some(0.0));
        // Two heaps of 16: each sees 15 of its own, and the one in the middle is of the other heap.
        let heaps: Vec<Vec<f32>> = [vec![vec![1.0, 0.0]; 16], vec![vec![0.0, 1.0]; 16]].concat();
        assert_eq!(spread(&heaps), Some(1.0));
        assert_eq!(spread(&heaps[..31]), None);
    }

    #[test]
    fn what_lies_closer_together_spreads_less_and_counts_more() {
        let (narrow, wide) = (spread(&fan(120, 0.002)).unwrap(), spread(&fan(120, 0.02)).unwrap());
        assert!(narrow * 5.0 < wide, "{narrow} {wide}");
        assert!(cosine_scale(narrow) > cosine_scale(wide));
    }

    #[test]
    fn a_model_like_the_reference_keeps_its_factor() {
        for spread in [REFERENCE_SPREAD, REFERENCE_SPREAD * 1.3, REFERENCE_SPREAD / 1.3] {
            assert_eq!(cosine_scale(spread), REFERENCE_SCALE);
        }
        assert!((cosine_scale(REFERENCE_SPREAD / 4.0) - 4.0 * REFERENCE_SCALE).abs() < 1e-3);
        assert!((cosine_scale(REFERENCE_SPREAD * 2.0) - REFERENCE_SCALE / 2.0).abs() < 1e-3);
    }

    proptest! {
        #[test]
        fn every_factor_is_sane(spread in prop::num::f32::ANY) {
            let scale = cosine_scale(spread);
            prop_assert!((REFERENCE_SCALE / MOST..=REFERENCE_SCALE * MOST).contains(&scale), "{}", scale);
        }

        #[test]
        fn more_vectors_than_the_sample_change_nothing(more in 0usize..40) {
            let all = fan(CALIBRATION_SAMPLE + more, 0.01);
            prop_assert_eq!(spread(&all), spread(&all[..CALIBRATION_SAMPLE]));
        }
    }
}
