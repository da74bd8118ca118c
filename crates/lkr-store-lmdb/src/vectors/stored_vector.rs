//! The stored form of dense vectors: the inverse of the length, then the values in half precision, two bytes each. Vectors
//! that half precision represents badly have four bytes a value, as all had in format 3; the number of bytes tells which.
//! See docs/studies.md#half-precision.

use half::{f16, slice::HalfFloatSliceExt, vec::HalfFloatVecExt};

use super::kernel;
use crate::codec::{FieldReader, verify_checksum, with_checksum};

/// How far a vector in half precision may be from the original, as a share of its length: what rounding costs if no value is
/// below 2⁻¹⁴, from where on values have fewer digits. The cosine of both is then above 1 − 1.2e-7.
const MAX_ROUNDING: f64 = 1.0 / 2048.0;

/// A dense vector as it is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredVector<'t> {
    /// So that a cosine costs one dot product and one multiplication.
    inverse_length: f32,
    values: Values<'t>,
}

/// Little-endian values at any alignment.
#[derive(Debug, Clone, Copy)]
enum Values<'t> {
    Half(&'t [[u8; 2]]),
    Single(&'t [[u8; 4]]),
}

impl<'t> StoredVector<'t> {
    /// What [`encode`] wrote; `None` if it is no vector of `dims` dimensions.
    pub(crate) fn decode(bytes: &'t [u8], dims: usize) -> Option<Self> {
        let mut fields = FieldReader(bytes);
        let inverse_length = f32::from_le_bytes(fields.array()?);
        let values = match (fields.0.as_chunks(), fields.0.as_chunks()) {
            ((halves, []), _) if halves.len() == dims => Values::Half(halves),
            (_, (singles, [])) if singles.len() == dims => Values::Single(singles),
            _ => return None,
        };
        Some(Self { inverse_length, values })
    }

    /// The vector of a row whose checksum is not verified.
    pub(crate) fn of_row(checksummed: &'t [u8], dims: usize) -> Option<Self> {
        let (_, bytes) = checksummed.split_first_chunk::<4>()?;
        Self::decode(bytes, dims)
    }

    /// The cosine with a query of length 1, in single precision; of another one, a multiple of it.
    pub(crate) fn scaled_cosine(self, query: &[f32]) -> f32 {
        let dot = match self.values {
            Values::Half(halves) => kernel::dot_halves(query, halves),
            Values::Single(singles) => kernel::dot(query, singles),
        };
        dot * self.inverse_length
    }

    /// `Σ query · vector` and `Σ vector · vector` in double precision.
    pub(crate) fn exact_products(self, query: &[f32]) -> (f64, f64) {
        match self.values {
            Values::Half(halves) => kernel::exact_products_of_halves(query, halves),
            Values::Single(singles) => kernel::exact_products(query, singles),
        }
    }

    pub(crate) fn to_vec(self) -> Vec<f32> {
        match self.values {
            Values::Half(halves) => {
                let halves: Vec<f16> = halves.iter().copied().map(f16::from_le_bytes).collect();
                halves.to_f32_vec()
            }
            Values::Single(singles) => singles.iter().copied().map(f32::from_le_bytes).collect(),
        }
    }
}

/// A row of a vector without its checksum.
pub(crate) fn encode(vector: &[f32]) -> Vec<u8> {
    match rounded(vector) {
        Some(halves) => {
            let values = halves.iter().flat_map(|value| value.to_le_bytes());
            inverse_length(&halves.to_f32_vec()).to_le_bytes().into_iter().chain(values).collect()
        }
        None => encode_singles(vector),
    }
}

/// A row with four bytes a value.
fn encode_singles(vector: &[f32]) -> Vec<u8> {
    let values = vector.iter().flat_map(|value| value.to_le_bytes());
    inverse_length(vector).to_le_bytes().into_iter().chain(values).collect()
}

/// Whether two rows have the same vector: `stored` may be of format 3, whose vectors were not rounded, and `new` is not.
pub(crate) fn is_same_row(stored: &[u8], new: &[u8], dims: usize) -> bool {
    stored == new || is_single_row_of(stored, new, dims)
}

fn is_single_row_of(stored: &[u8], new: &[u8], dims: usize) -> bool {
    let vector = verify_checksum(stored).and_then(|bytes| StoredVector::decode(bytes, dims));
    match vector {
        Some(vector @ StoredVector { values: Values::Single(_), .. }) => {
            with_checksum(&encode(&vector.to_vec())) == new
        }
        _ => false,
    }
}

/// The values in half precision; `None` if the vector is then too far from the original.
fn rounded(vector: &[f32]) -> Option<Vec<f16>> {
    let halves = Vec::<f16>::from_f32_slice(vector);
    let squares = vector.iter().zip(halves.to_f32_vec()).fold((0.0, 0.0), |(lost, all), (value, half)| {
        let value = f64::from(*value);
        (lost + (value - f64::from(half)).powi(2), all + value.powi(2))
    });
    let (lost, all): (f64, f64) = squares;
    // A value that is too large becomes infinite, so that the vector is infinitely far.
    (lost <= all * MAX_ROUNDING.powi(2)).then_some(halves)
}

/// The inverse of a vector's length; 0 for a zero vector, whose cosine with any other is 0.
fn inverse_length(vector: &[f32]) -> f32 {
    let square = vector.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>();
    if square > 0.0 { square.sqrt().recip() as f32 } else { 0.0 }
}

/// A row of format 3.
#[cfg(test)]
pub(crate) fn row_of_format_3(vector: &[f32]) -> Vec<u8> {
    with_checksum(&encode_singles(vector))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn length(vector: impl IntoIterator<Item = f64>) -> f64 {
        vector.into_iter().map(|value| value.powi(2)).sum::<f64>().sqrt()
    }

    /// How far `b` is from `a`, as a share of the length of `a`.
    fn distance(a: &[f32], b: &[f32]) -> f64 {
        let lost = length(a.iter().zip(b).map(|(a, b)| f64::from(*a) - f64::from(*b)));
        let all = length(a.iter().copied().map(f64::from));
        if lost == 0.0 { 0.0 } else { lost / all }
    }

    /// Values of very different sizes, too large and too small ones for half precision among them.
    fn vectors() -> impl Strategy<Value = Vec<f32>> {
        let value = prop_oneof![Just(0.0_f32), -1.0_f32..1.0, -1e-3_f32..1e-3];
        let scale = prop_oneof![Just(1.0_f32), Just(1e-4), Just(1e-6), Just(1e-30), Just(7e4), Just(1e20)];
        (prop::collection::vec(value, 0..80), scale)
            .prop_map(|(values, scale)| values.into_iter().map(|value| value * scale).collect())
    }

    proptest! {
        #[test]
        fn vector_reads_back_within_the_rounding_of_half_precision(vector in vectors(), query in vectors()) {
            let bytes = encode(&vector);
            let stored = StoredVector::decode(&bytes, vector.len()).unwrap();
            let read = stored.to_vec();
            prop_assert!(distance(&vector, &read) <= MAX_ROUNDING);
            prop_assert_eq!(encode(&read), &bytes[..], "what was rounded is not rounded again");
            if bytes.len() != 4 + 2 * vector.len() {
                prop_assert_eq!(&read, &vector);
            }
            // Products are those of the stored values.
            let singles = encode_singles(&read);
            let expected = StoredVector::decode(&singles, vector.len()).unwrap();
            prop_assert_eq!(stored.inverse_length, expected.inverse_length);
            prop_assert_eq!(stored.exact_products(&query), expected.exact_products(&query));
        }

        #[test]
        fn vector_of_usual_values_takes_two_bytes_a_value(vector in prop::collection::vec(-1.0_f32..1.0, 1..400)) {
            prop_assert_eq!(encode(&vector).len(), 4 + 2 * vector.len());
        }

        #[test]
        fn row_of_format_3_is_the_same_as_the_row_of_its_vector(vector in vectors(), at: usize, flip in 1_u8..) {
            let (mut old, new) = (row_of_format_3(&vector), with_checksum(&encode(&vector)));
            prop_assert!(is_same_row(&old, &new, vector.len()) && is_same_row(&new, &new, vector.len()));
            let at = at % old.len();
            old[at] ^= flip;
            prop_assert!(!is_same_row(&old, &new, vector.len()), "damaged");
        }

        #[test]
        fn decode_of_arbitrary_bytes_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..40), dims in 0_usize..9) {
            StoredVector::of_row(&bytes, dims).map(|vector| vector.to_vec().len());
        }
    }

    #[test]
    fn vectors_that_half_precision_cannot_hold_keep_single_precision() {
        for vector in [[65_520.0, 1.0], [1e-7, 3e-8], [f32::MAX, 0.0], [f32::MIN_POSITIVE, 0.0]] {
            let bytes = encode(&vector);
            assert_eq!(bytes.len(), 12, "{vector:?}");
            assert_eq!(StoredVector::decode(&bytes, 2).unwrap().to_vec(), vector);
        }
        // Small values beside large ones do not matter, and neither does a vector without a direction.
        for vector in [[65_504.0, 1e-7], [1.0, f32::MIN_POSITIVE], [0.0, -0.0], [2e-4, 0.0]] {
            assert_eq!(encode(&vector).len(), 8, "{vector:?}");
        }
    }

    #[test]
    fn row_of_another_number_of_values_is_no_vector() {
        let row = encode(&[0.5; 6]);
        assert!(StoredVector::decode(&row, 6).is_some());
        for dims in [0, 3, 5, 7, 12] {
            let is_single = dims == 3;
            assert_eq!(StoredVector::decode(&row, dims).is_some(), is_single, "{dims}");
        }
        assert!(StoredVector::decode(&row[..row.len() - 1], 6).is_none());
        assert!(StoredVector::decode(&row[..3], 6).is_none());
    }
}
