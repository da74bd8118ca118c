//! The stored form of sparse vectors: the terms, four bytes each, then their weights. A text has hundreds of terms and few
//! different weights, so these are a table in front of the terms, and one byte for each term says which. Vectors of too many
//! different weights have four bytes for each, as all had in format 3; the number of bytes tells which.
//! See docs/studies.md#weights-of-terms.

use lkr_domain::SparseVector;

use crate::codec::FieldReader;

/// The bytes of a term and its weight without a table. A vector without one takes a multiple of that, and one with one never.
const PAIR: usize = 8;
/// The bytes of a term and the position of its weight in the table.
const INDEXED: usize = 5;

/// A sparse vector as it is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredTerms<'t> {
    /// In ascending order.
    terms: &'t [[u8; 4]],
    weights: Weights<'t>,
}

#[derive(Debug, Clone, Copy)]
enum Weights<'t> {
    /// One for each term.
    Each(&'t [[u8; 4]]),
    /// For each term, a position in the table.
    Indexed { table: &'t [[u8; 4]], positions: &'t [u8] },
}

impl<'t> StoredTerms<'t> {
    /// What [`encode`] wrote; `None` if it is something else.
    pub(crate) fn decode(bytes: &'t [u8]) -> Option<Self> {
        let mut fields = FieldReader(bytes);
        if bytes.len().is_multiple_of(PAIR) {
            let terms = fields.take(bytes.len() / 2)?.as_chunks().0;
            return Some(Self { terms, weights: Weights::Each(fields.0.as_chunks().0) });
        }
        let weights = usize::from(fields.u8()?);
        let table = fields.take(4 * weights)?.as_chunks().0;
        // A last byte may fill up.
        let count = fields.0.len() / INDEXED;
        let terms = fields.take(4 * count)?.as_chunks().0;
        Some(Self { terms, weights: Weights::Indexed { table, positions: fields.take(count)? } })
    }

    /// The weight of a term, if the vector has it.
    pub(crate) fn weight(&self, term: u32) -> Option<f32> {
        let at = self.terms.binary_search_by_key(&term, |bytes| u32::from_le_bytes(*bytes)).ok()?;
        self.weights.get(at)
    }

    /// The number of terms.
    pub(crate) const fn len(&self) -> usize {
        self.terms.len()
    }

    /// The terms with their weights.
    pub(crate) fn iter(self) -> impl Iterator<Item = (u32, f32)> {
        let terms = self.terms.iter().copied().map(u32::from_le_bytes);
        terms.enumerate().filter_map(move |(at, term)| Some((term, self.weights.get(at)?)))
    }

    pub(crate) fn to_vector(self) -> SparseVector {
        SparseVector::from_pairs(self.iter())
    }
}

impl Weights<'_> {
    /// The weight of the term at this position.
    fn get(&self, at: usize) -> Option<f32> {
        let bytes = match self {
            Self::Each(weights) => weights.get(at),
            Self::Indexed { table, positions } => table.get(usize::from(*positions.get(at)?)),
        };
        bytes.copied().map(f32::from_le_bytes)
    }
}

/// The shorter one of both forms.
pub(crate) fn encode(sparse: &SparseVector) -> Vec<u8> {
    encode_indexed(sparse).unwrap_or_else(|| encode_pairs(sparse))
}

/// The form with a table; `None` if it is no shorter, or if the weights are too many for it.
fn encode_indexed(sparse: &SparseVector) -> Option<Vec<u8>> {
    let mut table: Vec<u32> = sparse.values().iter().map(|weight| weight.to_bits()).collect();
    table.sort_unstable();
    table.dedup();
    let mut bytes = vec![u8::try_from(table.len()).ok()?];
    table.iter().chain(sparse.indices()).for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
    for weight in sparse.values() {
        bytes.push(table.binary_search(&weight.to_bits()).ok()? as u8);
    }
    if bytes.len().is_multiple_of(PAIR) {
        bytes.push(0);
    }
    (bytes.len() < PAIR * sparse.len()).then_some(bytes)
}

/// The form without a table.
pub(super) fn encode_pairs(sparse: &SparseVector) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(PAIR * sparse.len());
    sparse.indices().iter().for_each(|term| bytes.extend_from_slice(&term.to_le_bytes()));
    sparse.values().iter().for_each(|weight| bytes.extend_from_slice(&weight.to_le_bytes()));
    bytes
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Sparse vectors of few different weights, and of many.
    pub(in crate::vectors) fn vectors() -> impl Strategy<Value = SparseVector> {
        let weights = prop_oneof![Just(1_u32), Just(6), Just(254), Just(255), Just(256), Just(1_000)];
        let terms = prop::collection::btree_set(any::<u32>(), 0..400);
        (terms, weights, any::<u32>()).prop_map(|(terms, weights, seed)| {
            let weight = |at: usize| ((at as u32).wrapping_mul(seed | 1) % weights) as f32 / 7.0 - 3.0;
            SparseVector::from_pairs(terms.into_iter().enumerate().map(|(at, term)| (term, weight(at))))
        })
    }

    proptest! {
        #[test]
        fn both_forms_read_back(sparse in vectors()) {
            for bytes in [encode(&sparse), encode_pairs(&sparse)] {
                prop_assert!(bytes.len() <= PAIR * sparse.len());
                let stored = StoredTerms::decode(&bytes).unwrap();
                prop_assert_eq!(stored.len(), sparse.len());
                prop_assert_eq!(&stored.to_vector(), &sparse);
                for (term, weight) in sparse.iter() {
                    prop_assert_eq!(stored.weight(term), Some(weight));
                    let next = term.wrapping_add(1);
                    prop_assert_eq!(stored.weight(next).is_some(), sparse.indices().contains(&next));
                }
            }
        }

        #[test]
        fn decode_of_arbitrary_bytes_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..100), term: u32) {
            StoredTerms::decode(&bytes).map(|terms| (terms.weight(term), terms.to_vector()));
        }
    }

    #[test]
    fn few_weights_take_a_byte_a_term() {
        let of = |terms: u32, weights: u32| {
            SparseVector::from_pairs((0..terms).map(|term| (term, 1.0 + (term % weights) as f32)))
        };
        assert_eq!(encode(&of(201, 6)).len(), 1 + 4 * 6 + 5 * 201);
        assert_eq!(encode(&of(1_000, 255)).len(), 1 + 4 * 255 + 5 * 1_000);
        assert_eq!(encode(&of(1_000, 256)).len(), 8 * 1_000);
        assert_eq!(encode(&of(3, 3)).len(), 8 * 3);
        assert!(encode(&SparseVector::default()).is_empty());
        // A byte fills up, so that it is no multiple of eight.
        assert_eq!(encode(&of(7, 1)).len(), 1 + 4 + 5 * 7 + 1);
    }
}
