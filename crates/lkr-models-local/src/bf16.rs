//! Products of numbers that are rounded to bfloat16, with sums in float 32.
//!
//! Both factors are rounded ([`rounded`]), so that a product of two is exact in float 32. Each number of the result is one sum
//! from the first pair of terms to the last, of each pair the second term first, with one rounding for each term. That is how
//! the instruction of AVX-512 adds a pair, and fused or separate additions of exact products have the same sums. So every
//! instruction set has the same results, but for what is less than the smallest normal number (about 10⁻³⁸): that instruction
//! makes such sums and products zero. The result of a row does not depend on others. See docs/studies.md#matrix-products.

#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod pairs;

use lkr_models::Result;
use pulp::Arch;

use crate::kernels::vectorized;
use crate::panels::Panels;
use crate::product::{self, FloatRows, Rows, RowsMut, archs, check_fit};
use crate::scratch::sized;
#[cfg(target_arch = "x86_64")]
use avx512::Avx512;
#[cfg(target_arch = "x86_64")]
use pairs::{PairRows, PairWeights};

/// What multiplies the rounded numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum InstructionSet {
    /// Instructions for pairs of bfloat16.
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    /// Those for float 32, which every processor has; the rounded numbers are stored as such.
    Floats(Arch),
}

impl InstructionSet {
    /// What the processor has, the best one first.
    pub(crate) fn available() -> impl Iterator<Item = Self> {
        let floats = archs().map(Self::Floats);
        #[cfg(target_arch = "x86_64")]
        return Avx512::new().map(Self::Avx512).into_iter().chain(floats);
        #[cfg(not(target_arch = "x86_64"))]
        return floats;
    }

    pub(crate) fn best() -> Self {
        Self::available().next().unwrap_or(Self::Floats(Arch::Scalar))
    }
}

/// The weights of a linear layer, rounded.
#[derive(Debug)]
pub(crate) enum RoundedWeights {
    #[cfg(target_arch = "x86_64")]
    Pairs(PairWeights),
    Floats(Arch, Panels),
}

/// Buffers for rounded rows.
#[derive(Debug, Default)]
pub(crate) struct RoundedRows {
    #[cfg(target_arch = "x86_64")]
    pairs: PairRows,
    floats: Vec<f32>,
    tiles: FloatRows,
}

impl RoundedWeights {
    /// The weights with these columns, each with `depth` numbers.
    pub(crate) fn of_columns<'a>(
        instruction_set: InstructionSet,
        depth: usize,
        columns: impl ExactSizeIterator<Item = &'a [f32]>,
    ) -> Self {
        match instruction_set {
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512(kernel) => Self::Pairs(PairWeights::of_columns(kernel, depth, columns)),
            InstructionSet::Floats(arch) => {
                let columns: Vec<Vec<f32>> = columns
                    .map(|column| {
                        let mut rounded = vec![0.0; column.len()];
                        round_swapped(column, &mut rounded);
                        rounded
                    })
                    .collect();
                let columns = columns.iter().map(Vec::as_slice);
                Self::Floats(arch, Panels::of_columns(arch, depth, columns))
            }
        }
    }

    /// Writes `rows · weights` to `out`. `buffer` is for the rounded rows.
    ///
    /// Fails if a slice is too short for its rows.
    pub(crate) fn product(
        &self,
        rows: Rows<'_>,
        out: &mut RowsMut<'_>,
        buffer: &mut RoundedRows,
    ) -> Result<()> {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Pairs(weights) => {
                check_fit(rows, weights.depth(), out, weights.columns())?;
                weights.product(rows, out, &mut buffer.pairs);
                Ok(())
            }
            Self::Floats(arch, panels) => {
                check_fit(rows, panels.depth(), out, panels.columns())?;
                let rows = round_rows(*arch, rows, panels.depth(), &mut buffer.floats);
                product::product(*arch, rows, panels, out, &mut buffer.tiles)
            }
        }
    }
}

/// The first `depth` numbers of the rows, rounded and with the terms of each pair swapped: the products of float 32 add from
/// the first term to the last.
fn round_rows<'a>(arch: Arch, rows: Rows<'_>, depth: usize, buffer: &'a mut Vec<f32>) -> Rows<'a> {
    let numbers = sized(buffer, rows.count * depth);
    vectorized(
        arch,
        #[inline(always)]
        || {
            let places = numbers.chunks_exact_mut(depth.max(1));
            for (row, place) in rows.numbers.chunks(rows.stride.max(1)).zip(places) {
                round_swapped(row, place);
            }
        },
    );
    Rows { numbers, count: rows.count, stride: depth }
}

/// Writes as many rounded numbers as `out` has. Those of each pair change places.
#[inline(always)]
fn round_swapped(numbers: &[f32], out: &mut [f32]) {
    let ((pairs, last), (places, last_place)) = (numbers.as_chunks(), out.as_chunks_mut());
    for (place, &[first, second]) in places.iter_mut().zip(pairs) {
        *place = [rounded(second), rounded(first)];
    }
    let behind = numbers.get(places.len() * 2..).unwrap_or(last);
    last_place.iter_mut().zip(behind).for_each(|(place, &number)| *place = rounded(number));
}

/// The nearest number with the 8 leading bits of a bfloat16; of two, the even one. Numbers that are less than the smallest
/// normal one become zero, as the instructions of AVX-512 have it; NaN stays NaN.
#[inline(always)]
fn rounded(number: f32) -> f32 {
    const KEPT: u32 = 0xffff_0000;
    const SIGN: u32 = 0x8000_0000;
    const QUIET: u32 = 0x0040_0000;
    let bits = number.to_bits();
    let nearest = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) & KEPT;
    let kept = if number.is_nan() { (bits | QUIET) & KEPT } else { nearest };
    f32::from_bits(if number.abs() < f32::MIN_POSITIVE { bits & SIGN } else { kept })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn product(set: InstructionSet, rows: &[Vec<f32>], columns: &[Vec<f32>]) -> Vec<Vec<f32>> {
        let depth = columns[0].len();
        let weights = RoundedWeights::of_columns(set, depth, columns.iter().map(Vec::as_slice));
        let numbers = rows.concat();
        // A gap between the rows of the result stays as it is.
        let stride = columns.len() + 1;
        let mut out = vec![-1.0; rows.len() * stride];
        let rows = Rows { numbers: &numbers, count: rows.len(), stride: depth };
        let place = &mut RowsMut { numbers: &mut out, stride };
        weights.product(rows, place, &mut RoundedRows::default()).unwrap();
        let whole = out.chunks(stride).map(|row| row.split_last().unwrap());
        whole.inspect(|(gap, _)| assert_eq!(**gap, -1.0)).map(|(_, row)| row.to_vec()).collect()
    }

    /// The sum by its definition, and in double precision with the sum of sizes.
    fn expected(row: &[f32], column: &[f32]) -> (f32, f64, f64) {
        // What is less than the smallest normal number is zero.
        let nearest = |x: f32| if x.is_subnormal() { 0.0 } else { half::bf16::from_f32(x).to_f32() };
        let rounded = |numbers: &[f32]| numbers.iter().map(|&x| nearest(x)).collect();
        let (row, column): (Vec<f32>, Vec<f32>) = (rounded(row), rounded(column));
        let mut sum = 0.0_f32;
        for (a, b) in row.chunks(2).zip(column.chunks(2)) {
            a.iter().zip(b).rev().for_each(|(&a, &b)| sum = a.mul_add(b, sum));
        }
        let terms = row.iter().zip(&column).map(|(&a, &b)| f64::from(a) * f64::from(b));
        (sum, terms.clone().sum(), terms.map(f64::abs).sum())
    }

    fn operands() -> impl Strategy<Value = (Vec<Vec<f32>>, Vec<Vec<f32>>)> {
        let matrix = |rows, depth| prop::collection::vec(prop::collection::vec(-4.0_f32..4.0, depth), rows);
        (1_usize..70).prop_flat_map(move |depth| (matrix(1..60_usize, depth), matrix(1..80_usize, depth)))
    }

    proptest! {
        #[test]
        fn every_instruction_set_has_the_sums_of_the_definition((rows, columns) in operands()) {
            for set in InstructionSet::available() {
                for (row, found) in rows.iter().zip(product(set, &rows, &columns)) {
                    for (column, found) in columns.iter().zip(found) {
                        prop_assert_eq!(found, expected(row, column).0, "{:?}", set);
                    }
                }
            }
        }

        #[test]
        fn row_has_the_same_product_beside_any_others((rows, columns) in operands()) {
            for set in InstructionSet::available() {
                let together = product(set, &rows, &columns);
                for (row, expected) in rows.iter().zip(&together) {
                    prop_assert_eq!(&product(set, std::slice::from_ref(row), &columns)[0], expected);
                }
            }
        }

        #[test]
        fn numbers_are_rounded_to_the_nearest(bits in any::<u32>()) {
            let number = f32::from_bits(bits);
            let nearest = half::bf16::from_f32(number).to_f32();
            let expected = if number.abs() < f32::MIN_POSITIVE { 0.0_f32.copysign(number) } else { nearest };
            prop_assert_eq!(rounded(number).to_bits(), expected.to_bits());
        }
    }

    /// Each half of a bfloat16's last place, and the numbers beside it.
    #[test]
    fn instruction_rounds_as_the_definition() {
        #[cfg(target_arch = "x86_64")]
        if let Some(kernel) = Avx512::new() {
            for high in 0..=u32::from(u16::MAX) {
                let numbers = [0, 1, 0x7fff, 0x8000, 0x8001, 0xffff, 0x4000, 0xc000];
                let numbers = numbers.map(|low| f32::from_bits(high << 16 | low));
                let halves = numbers.map(|number| rounded(number).to_bits() >> 16);
                let (pairs, _) = halves.as_chunks::<2>();
                let found = kernel.run(
                    #[inline(always)]
                    || kernel.round(&numbers),
                );
                for (found, [first, second]) in found.into_iter().zip(pairs) {
                    assert_eq!(found, second << 16 | first, "{numbers:?}");
                }
            }
        }
    }

    /// Around the heights of tiles, the blocks of rows, the widths of panels and the steps of a sum.
    #[test]
    fn odd_shapes_and_extreme_numbers_have_the_product_of_the_definition() {
        const EXTREMES: [f32; 9] = [1e18, -1e18, 1.0, -1.0, 0.0, -0.0, 1e-45, -1e-40, f32::MIN_POSITIVE];
        let shapes = [0, 1, 11, 12, 13, 48, 49, 95, 96, 97, 109].into_iter().flat_map(|rows| {
            [1, 2, 7, 8, 9, 33].map(|depth| [1, 15, 16, 17, 31, 32, 33].map(|columns| (rows, depth, columns)))
        });
        for (rows, depth, columns) in shapes.flatten() {
            let matrix = |rows: usize| -> Vec<Vec<f32>> {
                let number = |row: usize, term: usize| EXTREMES[(row * 7 + term * 5) % EXTREMES.len()];
                (0..rows).map(|row| (0..depth).map(|term| number(row, term)).collect()).collect()
            };
            let (rows, columns) = (matrix(rows), matrix(columns));
            for set in InstructionSet::available() {
                let found = product(set, &rows, &columns);
                assert_eq!(found.len(), rows.len());
                for (row, found) in rows.iter().zip(found) {
                    for (column, found) in columns.iter().zip(found) {
                        let (_, exact, size) = expected(row, column);
                        let bound = size * f64::from(f32::EPSILON) * depth as f64 + 1e-36;
                        assert!((f64::from(found) - exact).abs() <= bound, "{set:?}: {found}, not {exact}");
                    }
                }
            }
        }
    }

    #[test]
    fn numbers_that_are_not_finite_stay_so() {
        for set in InstructionSet::available() {
            let of = |x: f32, y: f32| product(set, &[vec![x; 5]], &[vec![y; 5]])[0][0];
            assert!(of(f32::INFINITY, 1.0).is_infinite() && of(f32::MAX, 1.0).is_infinite());
            assert!(of(1.0, f32::NAN).is_nan() && of(f32::INFINITY, 0.0).is_nan());
        }
    }

    /// What an earlier product left in the buffer is not read, not even multiplied by zeros.
    #[test]
    fn buffer_may_have_served_another_product() {
        for set in InstructionSet::available() {
            let mut buffer = RoundedRows::default();
            for (rows, depth, filling) in [(30, 40, f32::NAN), (7, 33, 2.0), (13, 1, 3.0)] {
                let numbers = vec![filling; rows * depth];
                let column = vec![1.0; depth];
                let weights = RoundedWeights::of_columns(set, depth, [column.as_slice()].into_iter());
                let mut out = vec![0.0; rows];
                let input = Rows { numbers: &numbers, count: rows, stride: depth };
                weights.product(input, &mut RowsMut { numbers: &mut out, stride: 1 }, &mut buffer).unwrap();
                let sum = filling * depth as f32;
                assert!(
                    out.iter().all(|x| x.to_bits() == sum.to_bits() || x.is_nan() && sum.is_nan()),
                    "{set:?}"
                );
            }
        }
    }

    #[test]
    fn short_slice_is_an_error() {
        let column = [1.0; 4];
        for set in InstructionSet::available() {
            let weights = RoundedWeights::of_columns(set, 4, [column.as_slice(); 3].into_iter());
            let check = |rows: usize, out: usize| {
                let (rows, mut out) = (vec![1.0; rows], vec![0.0; out]);
                let rows = Rows { numbers: &rows, count: 2, stride: 4 };
                let out = &mut RowsMut { numbers: &mut out, stride: 3 };
                weights.product(rows, out, &mut RoundedRows::default()).is_ok()
            };
            assert_eq!([check(8, 6), check(7, 6), check(8, 5)], [true, false, false]);
        }
    }
}
