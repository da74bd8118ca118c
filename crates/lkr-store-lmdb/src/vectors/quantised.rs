//! Directions with one byte a dimension. They take a quarter of the room of vectors in single precision, and their error is
//! known, so that a scan finds every point that may be among the nearest.

use super::kernel;

/// The largest code. The codes of a vector are its values as multiples of a step of its own, its largest value by this.
const MAX_CODE: i16 = 127;
/// The bytes of an encoded row before its codes.
const HEADER_BYTES: usize = 12;

/// More than the rounding of a product of codes and scales to single precision.
const ROUNDING: f32 = 8.0 * f32::EPSILON;

/// The direction of a vector is `scale · codes`, to within `error`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Quantised {
    scale: f32,
    error: f32,
    /// Numbers with a sign.
    codes: Vec<u8>,
}

impl Quantised {
    /// The direction of a vector; zeros if it has none, `None` if it is no vector of numbers.
    pub(crate) fn of(values: &[f32]) -> Option<Self> {
        if values.iter().all(|value| *value == 0.0) {
            return Some(Self { scale: 0.0, error: 0.0, codes: vec![0; values.len()] });
        }
        let Rounded { codes, scale, error } = Rounded::of(values, MAX_CODE)?;
        Some(Self {
            scale,
            error: error * (1.0 + f32::EPSILON),
            codes: codes.into_iter().map(|code| (code as i8).cast_unsigned()).collect(),
        })
    }

    /// What is known of a vector that cannot be read: it may be anywhere.
    pub(crate) fn anywhere(dims: usize) -> Self {
        Self { scale: 0.0, error: f32::INFINITY, codes: vec![0; dims] }
    }

    pub(crate) fn row(&self, id: u32) -> QuantisedRow<'_> {
        QuantisedRow { id, scale: self.scale, error: self.error, codes: &self.codes }
    }
}

/// The quantised vector of a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct QuantisedRow<'b> {
    pub(crate) id: u32,
    pub(crate) scale: f32,
    pub(crate) error: f32,
    /// Numbers with a sign.
    pub(crate) codes: &'b [u8],
}

impl<'b> QuantisedRow<'b> {
    /// The length of an encoded row.
    pub(crate) const fn bytes(dims: usize) -> usize {
        HEADER_BYTES + dims
    }

    /// Appends the encoded row: id, scale, error, codes.
    pub(crate) fn encode(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.id.to_le_bytes());
        to.extend_from_slice(&self.scale.to_le_bytes());
        to.extend_from_slice(&self.error.to_le_bytes());
        to.extend_from_slice(self.codes);
    }

    /// The rows in `bytes`; `None` if these are not whole rows.
    pub(crate) fn all(bytes: &'b [u8], dims: usize) -> Option<impl Iterator<Item = Self> + Clone> {
        let rows = bytes.chunks_exact(Self::bytes(dims));
        rows.remainder().is_empty().then(|| rows.filter_map(Self::decode))
    }

    fn decode(bytes: &'b [u8]) -> Option<Self> {
        let (id, bytes) = bytes.split_first_chunk()?;
        let (scale, bytes) = bytes.split_first_chunk()?;
        let (error, codes) = bytes.split_first_chunk()?;
        let [scale, error] = [scale, error].map(|value| f32::from_le_bytes(*value));
        Some(Self { id: u32::from_le_bytes(*id), scale, error, codes })
    }

    /// Prefetches the codes of the row that is `rows` behind this one, if rows lie one after another.
    pub(crate) fn prefetch_later(&self, rows: usize) {
        kernel::prefetch(self.codes, rows * Self::bytes(self.codes.len()));
    }

    /// Whether it has a direction; a vector of length zero has none, and of one that cannot be read it is not known.
    pub(crate) fn has_direction(&self) -> bool {
        self.scale > 0.0
    }

    /// The direction.
    pub(crate) fn values(&self) -> impl Iterator<Item = f32> {
        self.codes.iter().map(|code| f32::from(code.cast_signed()) * self.scale)
    }
}

/// How many standard deviations of a product's error the likely bounds leave room for: one of sixteen thousand products is outside
/// of them.
const LIKELY_DEVIATIONS: f32 = 4.0;

/// A query of quantised vectors: its direction is `scale · codes`, to within `error`. It has more bits than they have, so that its
/// error is small beside theirs.
#[derive(Debug)]
pub(crate) struct QuantisedQuery {
    codes: Vec<i16>,
    scale: f32,
    /// The rounding of products to single precision included.
    error: f32,
    /// The share of the error that is not exceeded in all likelihood.
    likely: f32,
}

impl QuantisedQuery {
    /// `None` if the vector has no direction.
    pub(crate) fn new(vector: &[f32]) -> Option<Self> {
        let Rounded { codes, scale, error } = Rounded::of(vector, kernel::max_query_code(vector.len()))?;
        Some(Self { likely: likely_share(codes.len()), codes, scale, error: error + ROUNDING })
    }

    /// A quantised vector as a query; `None` if it has no direction.
    pub(crate) fn of_row(row: &QuantisedRow) -> Option<Self> {
        let codes = || row.codes.iter().map(|code| i16::from(code.cast_signed())).collect();
        row.has_direction().then(|| Self {
            codes: codes(),
            scale: row.scale,
            error: row.error + ROUNDING,
            likely: likely_share(row.codes.len()),
        })
    }

    /// The cosine with a vector, to within the error of both.
    pub(crate) fn cosine(&self, row: &QuantisedRow) -> f32 {
        kernel::dot_codes(&self.codes, row.codes) as f32 * (self.scale * row.scale)
    }

    /// The least and the most that the cosine with a vector can be.
    pub(crate) fn bounds(&self, row: &QuantisedRow) -> [f32; 2] {
        let (cosine, error) = (self.cosine(row), self.largest_error(row));
        [cosine - error, cosine + error]
    }

    /// The least and the most that the cosine with a vector is in all likelihood. What rounding takes from a vector has no direction
    /// in common with the other, so its product has a mean of 0 and a standard deviation of its length by the square root of the number
    /// of dimensions.
    pub(crate) fn likely_bounds(&self, row: &QuantisedRow) -> [f32; 2] {
        let (cosine, error) = (self.cosine(row), self.largest_error(row) * self.likely);
        [cosine - error, cosine + error]
    }

    fn largest_error(&self, row: &QuantisedRow) -> f32 {
        // For directions u = u' + d and v = v' + e, u · v − u' · v' = d · v' + u · e, and v' is at most 1 + |e| long.
        row.error + self.error * (1.0 + row.error)
    }
}

/// The share of the largest error that is not exceeded in all likelihood.
fn likely_share(dims: usize) -> f32 {
    (LIKELY_DEVIATIONS / (dims as f32).sqrt()).min(1.0)
}

/// A direction as multiples of a step of its own: `scale · codes`, to within `error`.
struct Rounded {
    codes: Vec<i16>,
    scale: f32,
    error: f32,
}

impl Rounded {
    /// The largest value gets the code `most`. `None` if the vector has no direction, or is no vector of numbers.
    fn of(values: &[f32], most: i16) -> Option<Self> {
        let largest = values.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        let norm = length(values.iter().map(|value| f64::from(*value)));
        let step = f64::from(largest) / f64::from(most);
        if !norm.is_normal() || !step.is_normal() {
            return None;
        }
        let codes: Vec<i16> = values.iter().map(|value| (f64::from(*value) / step).round() as i16).collect();
        let lost = values.iter().zip(&codes).map(|(value, code)| f64::from(*value) - step * f64::from(*code));
        let error = (length(lost) / norm) as f32;
        Some(Self { codes, scale: (step / norm) as f32, error })
    }
}

fn length(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|value| value * value).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use std::iter;

    use proptest::prelude::*;

    use super::*;

    const DIMS: usize = 40;

    #[test]
    fn cosine_is_within_its_likely_bounds_in_all_likelihood() {
        // A linear congruential generator (Knuth's MMIX constants).
        let mut state = 7_u64;
        let mut vector = || -> Vec<f32> {
            let value = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 40) as f32 / (1 << 23) as f32 - 1.0
            };
            iter::repeat_with(value).take(384).collect()
        };
        let queries: Vec<Vec<f32>> = (0..100).map(|_| vector()).collect();
        let rows: Vec<Vec<f32>> = (0..400).map(|_| vector()).collect();
        let norm = |vector: &[f32]| length(vector.iter().map(|value| f64::from(*value)));
        let mut outside = 0;
        for values in &rows {
            let quantised = Quantised::of(values).unwrap();
            for vector in &queries {
                let query = QuantisedQuery::new(vector).unwrap();
                let exact =
                    vector.iter().zip(values).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>()
                        / (norm(vector) * norm(values));
                let [at_least, at_most] = query.likely_bounds(&quantised.row(0)).map(f64::from);
                outside += u32::from(!(at_least..=at_most).contains(&exact));
                let [least, most] = query.bounds(&quantised.row(0)).map(f64::from);
                assert!(least < at_least && at_most < most && (at_most - at_least) * 4.0 < most - least);
            }
        }
        assert!(outside < 20, "{outside} of {} products", rows.len() * queries.len());
    }

    #[test]
    fn likely_bounds_of_few_dimensions_are_certain() {
        let (query, row) = (QuantisedQuery::new(&[0.3, -0.7]).unwrap(), Quantised::of(&[0.9, 0.2]).unwrap());
        assert_eq!(query.likely_bounds(&row.row(0)), query.bounds(&row.row(0)));
    }

    proptest! {
        #[test]
        fn direction_is_within_its_error(vector in prop::collection::vec(-1.0_f32..1.0, DIMS)) {
            if let Some(quantised) = Quantised::of(&vector) {
                let norm = length(vector.iter().map(|value| f64::from(*value)));
                let row = quantised.row(0);
                let off = vector.iter().zip(row.codes)
                    .map(|(value, code)| f64::from(*value) / norm - f64::from(row.scale) * f64::from(code.cast_signed()));
                prop_assert!(length(off) <= f64::from(row.error) + 1e-6);
                prop_assert!(row.error < 0.03, "{}", row.error);
            }
        }

        #[test]
        fn cosine_is_within_its_bounds(
            vector in prop::collection::vec(-1.0_f32..1.0, DIMS), query in prop::collection::vec(-1.0_f32..1.0, DIMS),
        ) {
            let norm = |vector: &[f32]| length(vector.iter().map(|value| f64::from(*value)));
            let exact = vector.iter().zip(&query).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
            let exact = exact / (norm(&vector) * norm(&query));
            if let (Some(quantised), Some(query)) = (Quantised::of(&vector), QuantisedQuery::new(&query)) {
                let [at_least, at_most] = query.bounds(&quantised.row(0)).map(f64::from);
                prop_assert!(at_least <= exact && exact <= at_most, "{} for {}..{}", exact, at_least, at_most);
                prop_assert!(at_most - at_least < 0.06);
                let [at_least, at_most] = query.bounds(&Quantised::anywhere(DIMS).row(0));
                prop_assert_eq!((at_least, at_most), (f32::NEG_INFINITY, f32::INFINITY));
            }
        }

        #[test]
        fn rows_are_decoded_as_they_were_encoded(
            vectors in prop::collection::vec(prop::collection::vec(-1.0_f32..1.0, DIMS), 0..9), cut in 1_usize..40,
        ) {
            let quantised: Vec<Quantised> = vectors.iter().filter_map(|vector| Quantised::of(vector)).collect();
            let mut bytes = Vec::new();
            quantised.iter().zip(7..).for_each(|(quantised, id)| quantised.row(id).encode(&mut bytes));
            let rows: Vec<QuantisedRow> = QuantisedRow::all(&bytes, DIMS).unwrap().collect();
            let expected: Vec<QuantisedRow> =
                quantised.iter().zip(7..).map(|(quantised, id)| quantised.row(id)).collect();
            prop_assert_eq!(rows, expected);
            let part = bytes.get(..bytes.len().saturating_sub(cut)).unwrap();
            prop_assert_eq!(QuantisedRow::all(part, DIMS).is_some(), part.is_empty());
        }
    }
}
