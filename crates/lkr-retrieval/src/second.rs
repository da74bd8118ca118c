//! The second round: the query's vector moved towards what the first round showed.

use lkr_domain::{Layer, PointId};
use lkr_vectors::{Collection, Include, Point, Result, VectorStore};

use crate::{LegKind, encoded_query::Dense, legs::Legs, rank::Ranked};

/// How many chunks the vector is moved towards: the best of the first round.
const NEAREST: usize = 3;
/// How far it is moved: what the mean of their vectors counts beside the query's own.
const PULL: f32 = 0.4;

/// The query's vector for the second round, `norm(q + .4 · mean of the vectors of the best chunks)`; `None` where
/// no dense leg of the chunks was asked, or nothing was found.
pub(crate) async fn moved(
    store: &dyn VectorStore,
    legs: &Legs,
    ranked: &Ranked,
    dense: &Dense,
) -> Result<Option<Dense>> {
    let Some(collection) = asked_chunks(legs) else { return Ok(None) };
    let ids: Vec<PointId> = ranked.candidates.iter().take(NEAREST).map(|candidate| candidate.id).collect();
    if ids.is_empty() {
        return Ok(None);
    }
    let points = store.get(collection, &ids, Include::All).await?;
    let vectors: Vec<Vec<f32>> =
        points.into_iter().flatten().filter_map(|point: Point| point.dense).collect();
    Ok(pulled(&dense.vector, &vectors).map(|vector| Dense { vector, ..dense.clone() }))
}

/// The collection of chunks that was asked by meaning.
fn asked_chunks(legs: &Legs) -> Option<&Collection> {
    let leg = legs.all.iter().find(|leg| leg.layer == Layer::Chunks && leg.kind == LegKind::Dense);
    leg.filter(|leg| leg.asked).map(|leg| &leg.collection)
}

/// `norm(query + .4 · mean)`; `None` without vectors, and where nothing is left of them.
fn pulled(query: &[f32], vectors: &[Vec<f32>]) -> Option<Vec<f32>> {
    let mut vector = query.to_vec();
    let share = PULL / vectors.len() as f32;
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
    fn a_vector_is_moved_by_hand() {
        // (1, 0) + .4 · (½, ½) = (1.2, .2), of length √1.48.
        let moved = pulled(&[1.0, 0.0], &[vec![1.0, 0.0], vec![0.0, 1.0]]).unwrap();
        let length = 1.48_f32.sqrt();
        assert!((moved[0] - 1.2 / length).abs() < 1e-6 && (moved[1] - 0.2 / length).abs() < 1e-6);
        assert_eq!(pulled(&[1.0, 0.0], &[]), None);
        assert_eq!(pulled(&[0.4, 0.0], &[vec![-1.0, 0.0]]), None);
    }

    proptest! {
        #[test]
        fn moved_vectors_have_length_1_and_their_order_does_not_matter(
            vectors in prop::collection::vec(prop::collection::vec(-1.0_f32..1.0, 4), 1..4),
        ) {
            let query = [0.5, 0.5, 0.5, 0.5];
            if let Some(moved) = pulled(&query, &vectors) {
                let length: f32 = moved.iter().map(|value| value * value).sum();
                prop_assert!((length - 1.0).abs() < 1e-4);
                let turned: Vec<_> = vectors.iter().rev().cloned().collect();
                let other = pulled(&query, &turned).unwrap();
                prop_assert!(moved.iter().zip(&other).all(|(a, b)| (a - b).abs() < 1e-5));
            }
        }
    }
}
