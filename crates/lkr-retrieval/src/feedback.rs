//! Pseudo-relevance feedback: the query's vector moved towards the first results, in Rocchio's form (Rocchio 1971).
//! See docs/studies.md#second-round.

use lkr_domain::{Layer, PointId};
use lkr_vectors::{Collection, Include, Point, Result, VectorStore};

use crate::{LegKind, encoded_query::DenseQuery, legs::Legs, rank::Ranked};

/// How many of the best chunks of the first round give feedback. See docs/studies.md#second-round.
const FEEDBACK_CHUNKS: usize = 3;
/// The weight of the mean of their vectors beside the query's own vector. See docs/studies.md#second-round.
const FEEDBACK_WEIGHT: f32 = 0.4;

/// The query's vector for the second round, `norm(q + 0.4 · mean of the vectors of the best chunks)`; `None` if the
/// dense leg of the chunks was not queried or nothing was found.
pub(crate) async fn second_query(
    store: &dyn VectorStore,
    legs: &Legs,
    ranked: &Ranked,
    dense: &DenseQuery,
) -> Result<Option<DenseQuery>> {
    let Some(collection) = queried_chunks(legs) else { return Ok(None) };
    let best = ranked.candidates.iter().take(FEEDBACK_CHUNKS);
    let ids: Vec<PointId> = best.map(|candidate| candidate.id).collect();
    if ids.is_empty() {
        return Ok(None);
    }
    let points = store.get(collection, &ids, Include::All).await?;
    let vectors: Vec<Vec<f32>> =
        points.into_iter().flatten().filter_map(|point: Point| point.dense).collect();
    Ok(rocchio(&dense.vector, &vectors).map(|vector| DenseQuery { vector, ..dense.clone() }))
}

/// The collection that the dense leg of the chunks queried.
fn queried_chunks(legs: &Legs) -> Option<&Collection> {
    let leg = legs.all.iter().find(|leg| leg.layer == Layer::Chunks && leg.kind == LegKind::Dense);
    leg.filter(|leg| leg.queried).map(|leg| &leg.collection)
}

/// `norm(query + 0.4 · mean)`; `None` if there are no vectors or the sum is zero.
fn rocchio(query: &[f32], vectors: &[Vec<f32>]) -> Option<Vec<f32>> {
    let mut vector = query.to_vec();
    let share = FEEDBACK_WEIGHT / vectors.len() as f32;
    for each in vectors {
        vector.iter_mut().zip(each).for_each(|(sum, value)| *sum += share * value);
    }
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    if vectors.is_empty() || length <= f32::EPSILON {
        return None;
    }
    vector.iter_mut().for_each(|value| *value /= length);
    Some(vector)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rocchio_moves_the_query_towards_the_mean() {
        // (1, 0) + 0.4 · (½, ½) = (1.2, 0.2), of length √1.48.
        let moved = rocchio(&[1.0, 0.0], &[vec![1.0, 0.0], vec![0.0, 1.0]]).unwrap();
        let length = 1.48_f32.sqrt();
        assert!((moved[0] - 1.2 / length).abs() < 1e-6 && (moved[1] - 0.2 / length).abs() < 1e-6);
        assert_eq!(rocchio(&[1.0, 0.0], &[]), None);
        assert_eq!(rocchio(&[0.4, 0.0], &[vec![-1.0, 0.0]]), None);
    }

    proptest! {
        #[test]
        fn rocchio_yields_unit_vectors_in_any_order_of_the_feedback(
            vectors in prop::collection::vec(prop::collection::vec(-1.0_f32..1.0, 4), 1..4),
        ) {
            let query = [0.5, 0.5, 0.5, 0.5];
            if let Some(moved) = rocchio(&query, &vectors) {
                let length: f32 = moved.iter().map(|value| value * value).sum();
                prop_assert!((length - 1.0).abs() < 1e-4);
                let reversed: Vec<_> = vectors.iter().rev().cloned().collect();
                let other = rocchio(&query, &reversed).unwrap();
                prop_assert!(moved.iter().zip(&other).all(|(a, b)| (a - b).abs() < 1e-5));
            }
        }
    }
}
