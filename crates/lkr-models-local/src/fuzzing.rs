//! The matrix products of operands that a fuzzer chooses, compared with their definitions on every instruction set that the
//! processor has.

use lkr_models::Result;

use crate::bf16::{self, RoundedRows, RoundedWeights};
use crate::int8::{self, ByteRows, ByteWeights};
use crate::panels::Panels;
use crate::product::{self, FloatRows, Rows, RowsMut, archs};

/// The most rows, terms of a sum, and columns: some more than the blocks, steps and panels of the kernels.
const MOST_ROWS: u8 = 130;
const MOST_TERMS: u8 = 90;
const MOST_COLUMNS: u8 = 70;
/// Sums of products of larger numbers could be more than float 32 can hold.
const LARGEST: f32 = 1e17;
/// The error that is allowed besides the rounding of each term: numbers and products below the smallest normal one may be zero.
const NEXT_TO_NOTHING: f64 = 1e-19;

/// Checks the products of the matrices that `bytes` stand for: their shapes in the first four bytes, then the bits of their
/// numbers, which are repeated as often as needed.
///
/// # Panics
/// If a product is not that of its definition.
pub fn check_products(bytes: &[u8]) {
    let Some(matrices) = Matrices::read(bytes) else { return };
    let (depth, columns) = (matrices.depth, || matrices.columns.chunks(matrices.depth));
    for arch in archs() {
        let panels = Panels::of_columns(arch, depth, columns());
        let found = matrices
            .product(|rows, out| product::product(arch, rows, &panels, out, &mut FloatRows::default()));
        matrices.check(&found, |row, column| (exact(row, column), f64::from(f32::EPSILON)));
    }
    for set in bf16::InstructionSet::available() {
        let weights = RoundedWeights::of_columns(set, depth, columns());
        let found = matrices.product(|rows, out| weights.product(rows, out, &mut RoundedRows::default()));
        let rounded = |numbers: &[f32]| -> Vec<f32> {
            numbers.iter().map(|number| half::bf16::from_f32(*number).to_f32()).collect()
        };
        matrices
            .check(&found, |row, column| (exact(&rounded(row), &rounded(column)), f64::from(f32::EPSILON)));
    }
    let mut portable = None;
    for set in int8::InstructionSet::available() {
        let weights = ByteWeights::of_columns(set, depth, columns());
        let found = matrices.product(|rows, out| weights.product(rows, out, &mut ByteRows::default()));
        // Half a unit of one factor by the largest of the other.
        matrices.check(&found, |row, column| {
            let largest = largest(row) * largest(column);
            (
                Sum { sizes: largest * row.len() as f64, ..exact(row, column) },
                1.0 / 255.0 + 1.0 / 254.0 + 1e-4,
            )
        });
        let bits: Vec<u32> = found.iter().map(|number| number.to_bits()).collect();
        assert_eq!(portable.get_or_insert_with(|| bits.clone()), &bits, "{set:?} has sums of its own");
    }
}

/// A sum of products in double precision, and that of their sizes.
struct Sum {
    sum: f64,
    sizes: f64,
}

fn exact(row: &[f32], column: &[f32]) -> Sum {
    let terms = row.iter().zip(column).map(|(a, b)| f64::from(*a) * f64::from(*b));
    Sum { sum: terms.clone().sum(), sizes: terms.map(f64::abs).sum() }
}

/// The largest number without its sign; at least what may count as zero.
fn largest(numbers: &[f32]) -> f64 {
    numbers.iter().fold(NEXT_TO_NOTHING, |largest, number| largest.max(f64::from(number.abs())))
}

/// The factors of a product.
struct Matrices {
    count: usize,
    depth: usize,
    /// The distance of rows.
    stride: usize,
    rows: Vec<f32>,
    /// One after the other.
    columns: Vec<f32>,
}

impl Matrices {
    fn read(bytes: &[u8]) -> Option<Self> {
        let ([count, depth, columns, gap], bytes) = bytes.split_first_chunk()?;
        let size = |byte: &u8, most: u8| usize::from(byte % most) + 1;
        let (count, depth) = (size(count, MOST_ROWS), size(depth, MOST_TERMS));
        let stride = depth + usize::from(gap % 3);
        let (bits, _) = bytes.as_chunks::<4>();
        let mut numbers = bits.iter().map(|bits| number(*bits)).cycle();
        // An odd number between the two, so that a short input does not make all rows alike.
        let mut take = |count: usize| -> Vec<f32> { numbers.by_ref().take(count).collect() };
        let (rows, columns) = (take(count * stride + 1), take(size(columns, MOST_COLUMNS) * depth));
        (!bits.is_empty()).then_some(Self { count, depth, stride, rows, columns })
    }

    /// The product that `multiply` writes, one row after the other.
    fn product(&self, multiply: impl FnOnce(Rows<'_>, &mut RowsMut<'_>) -> Result<()>) -> Vec<f32> {
        let columns = self.columns.len() / self.depth;
        // A gap between the rows stays as it is.
        let stride = columns + 1;
        let mut numbers = vec![-1.0; self.count * stride];
        let rows = Rows { numbers: &self.rows, count: self.count, stride: self.stride };
        let multiplied = multiply(rows, &mut RowsMut { numbers: &mut numbers, stride });
        assert!(multiplied.is_ok(), "{multiplied:?}");
        let whole = numbers.chunks(stride).filter_map(<[f32]>::split_last);
        whole
            .inspect(|(gap, _)| assert!(**gap == -1.0, "a gap was written"))
            .flat_map(|(_, row)| row)
            .copied()
            .collect()
    }

    /// Checks each number of a product. `expected` tells its sum, and the largest error as a share of the sizes of its terms.
    fn check(&self, found: &[f32], expected: impl Fn(&[f32], &[f32]) -> (Sum, f64)) {
        let mut found = found.iter();
        for row in self.rows.chunks_exact(self.stride).filter_map(|row| row.get(..self.depth)) {
            for (column, found) in self.columns.chunks(self.depth).zip(&mut found) {
                let (Sum { sum, sizes }, share) = expected(row, column);
                let bound = (sizes * share + NEXT_TO_NOTHING) * self.depth as f64;
                assert!(
                    (f64::from(*found) - sum).abs() <= bound,
                    "{found}, not {sum}, of {} terms",
                    self.depth
                );
            }
        }
        assert_eq!(found.next(), None);
    }
}

/// The number with these bits, or one that sums of products can have.
fn number(bits: [u8; 4]) -> f32 {
    let number = f32::from_le_bytes(bits);
    if number.abs() <= LARGEST { number } else { f32::from(i16::from_le_bytes([bits[0], bits[1]])) / 256.0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn products_of_any_bytes_are_those_of_their_definition(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            check_products(&bytes);
        }
    }
}
