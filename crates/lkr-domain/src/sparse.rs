//! Sparse vectors: what the keyword leg stores and asks with.

use serde::{Deserialize, Serialize};

/// A sparse vector: weights by term id.
///
/// Ids are strictly ascending and weights are finite, whichever way the vector was made, deserialisation included.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Parts")]
pub struct SparseVector {
    indices: Vec<u32>,
    values: Vec<f32>,
}

impl SparseVector {
    /// The vector of these pairs of term id and weight, in any order.
    ///
    /// Weights of one id are summed in `f64` in the order of their values, so that the order of the pairs does not
    /// matter. An id whose sum is not finite is left out.
    #[must_use]
    pub fn from_pairs(pairs: impl IntoIterator<Item = (u32, f32)>) -> Self {
        let mut pairs: Vec<(u32, f32)> = pairs.into_iter().collect();
        pairs.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let (indices, values) = pairs
            .chunk_by(|a, b| a.0 == b.0)
            .filter_map(|same| {
                let &(index, _) = same.first()?;
                let sum = same.iter().map(|&(_, value)| f64::from(value)).sum::<f64>() as f32;
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

    /// The weights, in the order of [`indices`](Self::indices) and as many.
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

    /// Whether it has no term.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }
}

impl From<Parts> for SparseVector {
    fn from(Parts { indices, values }: Parts) -> Self {
        let ascending = indices.is_sorted_by(|a, b| a < b);
        if ascending && indices.len() == values.len() && values.iter().all(|value| value.is_finite()) {
            return Self { indices, values };
        }
        Self::from_pairs(indices.into_iter().zip(values))
    }
}

/// The stored form, which anything may have written.
#[derive(Deserialize)]
struct Parts {
    indices: Vec<u32>,
    values: Vec<f32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_and_sums() {
        let vector =
            SparseVector::from_pairs([(7, 1.0), (3, 0.5), (7, 2.0), (1, f32::NAN), (2, f32::INFINITY)]);
        assert_eq!(vector.indices(), [3, 7]);
        assert_eq!(vector.values(), [0.5, 3.0]);
        assert_eq!(vector.iter().collect::<Vec<_>>(), [(3, 0.5), (7, 3.0)]);
    }

    #[test]
    fn does_not_depend_on_the_order() {
        let pairs = [(1, 1e8), (1, 1.0), (1, -1e8), (0, 0.25)];
        let turned: Vec<_> = pairs.into_iter().rev().collect();
        assert_eq!(SparseVector::from_pairs(pairs), SparseVector::from_pairs(turned));
    }

    #[test]
    fn what_is_read_is_made_valid() {
        let read = |json| serde_json::from_str::<SparseVector>(json).unwrap();
        let same = read(r#"{"indices":[1,4],"values":[1.0,2.0]}"#);
        assert_eq!(serde_json::to_string(&same).unwrap(), r#"{"indices":[1,4],"values":[1.0,2.0]}"#);
        assert_eq!(read(r#"{"indices":[4,1,4],"values":[1.0,2.0,3.0]}"#).indices(), [1, 4]);
        assert_eq!(read(r#"{"indices":[4,1,4],"values":[1.0]}"#).indices(), [4]);
    }
}
