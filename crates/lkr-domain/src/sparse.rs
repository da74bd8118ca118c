//! Sparse vectors, which keyword search stores and queries with.

use serde::{Deserialize, Serialize};

/// A sparse vector: weights by term id.
///
/// Ids are always strictly ascending and weights are finite, after deserialisation too.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "UncheckedSparseVector")]
pub struct SparseVector {
    indices: Vec<u32>,
    values: Vec<f32>,
}

impl SparseVector {
    /// Creates a vector from pairs of term id and weight, in any order.
    ///
    /// The weights of an id are summed in `f64`, sorted by value, so the order of the pairs does not affect the result.
    /// Ids with a sum that is not finite are dropped.
    #[must_use]
    pub fn from_pairs(pairs: impl IntoIterator<Item = (u32, f32)>) -> Self {
        let mut pairs: Vec<(u32, f32)> = pairs.into_iter().collect();
        pairs.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let (indices, values) = pairs
            .chunk_by(|a, b| a.0 == b.0)
            .filter_map(|pairs_of_id| {
                let &(index, _) = pairs_of_id.first()?;
                let sum = pairs_of_id.iter().map(|&(_, value)| f64::from(value)).sum::<f64>() as f32;
                sum.is_finite().then_some((index, sum))
            })
            .unzip();
        Self { indices, values }
    }

    /// The term ids, strictly ascending.
    #[must_use]
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// The weights, one for each of [`indices`](Self::indices).
    #[must_use]
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Pairs of term id and weight, by ascending id.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u32, f32)> + '_ {
        self.indices.iter().copied().zip(self.values.iter().copied())
    }

    /// The number of terms.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.indices.len()
    }

    /// Whether the vector has no terms.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }
}

impl From<UncheckedSparseVector> for SparseVector {
    fn from(UncheckedSparseVector { indices, values }: UncheckedSparseVector) -> Self {
        let ascending = indices.is_sorted_by(|a, b| a < b);
        if ascending && indices.len() == values.len() && values.iter().all(|value| value.is_finite()) {
            return Self { indices, values };
        }
        Self::from_pairs(indices.into_iter().zip(values))
    }
}

/// The stored form, not yet validated.
#[derive(Deserialize)]
struct UncheckedSparseVector {
    indices: Vec<u32>,
    values: Vec<f32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_pairs_sorts_ids_sums_weights_and_drops_what_is_not_finite() {
        let vector =
            SparseVector::from_pairs([(7, 1.0), (3, 0.5), (7, 2.0), (1, f32::NAN), (2, f32::INFINITY)]);
        assert_eq!(vector.indices(), [3, 7]);
        assert_eq!(vector.values(), [0.5, 3.0]);
        assert_eq!(vector.iter().collect::<Vec<_>>(), [(3, 0.5), (7, 3.0)]);
    }

    #[test]
    fn from_pairs_in_any_order_gives_the_same_vector() {
        let pairs = [(1, 1e8), (1, 1.0), (1, -1e8), (0, 0.25)];
        let reversed: Vec<_> = pairs.into_iter().rev().collect();
        assert_eq!(SparseVector::from_pairs(pairs), SparseVector::from_pairs(reversed));
    }

    #[test]
    fn deserialized_vector_is_made_valid() {
        let read = |json| serde_json::from_str::<SparseVector>(json).unwrap();
        let valid = read(r#"{"indices":[1,4],"values":[1.0,2.0]}"#);
        assert_eq!(serde_json::to_string(&valid).unwrap(), r#"{"indices":[1,4],"values":[1.0,2.0]}"#);
        assert_eq!(read(r#"{"indices":[4,1,4],"values":[1.0,2.0,3.0]}"#).indices(), [1, 4]);
        assert_eq!(read(r#"{"indices":[4,1,4],"values":[1.0]}"#).indices(), [4]);
    }
}
