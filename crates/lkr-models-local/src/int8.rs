//! Products of 8-bit integers: the weights have a scale for each output, the inputs one for each token.
//!
//! The sums are exact, so every instruction set has the same results, and the result of a token does not depend on others. See
//! docs/studies.md#matrix-products.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx_vnni;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
mod quantize;
mod weights;

use bytemuck::Pod;
use lkr_models::Result;

use crate::product::{Rows, RowsMut, check_fit, with_height};
use crate::tiles::{Tile, blocks, tiles};
pub(crate) use quantize::ByteRows;
use quantize::RowStep;
use weights::BytePanel;
pub(crate) use weights::ByteWeights;

/// How many terms of a sum are side by side, where an instruction adds products of bytes.
const GROUP: usize = 4;
/// The number of such groups between checks of a row's end.
const STEP: usize = 4;
/// The number of terms of a step; sums are filled up to a multiple with zeros.
const STEP_TERMS: usize = GROUP * STEP;
/// The most terms of a sum: 255 · 127 · 2¹⁶ < 2³¹.
pub(crate) const MAX_DEPTH: usize = 1 << 16;
/// The most columns of a panel.
const MAX_WIDTH: usize = 32;
/// The number of results that are written at a time; the width of a panel is a multiple of one of them.
const WIDE: usize = 16;
const NARROW: usize = 8;

/// A group of terms of a row, as bytes.
type Group = [u8; GROUP];
/// The terms of a row between checks of its end, as bytes.
type ByteStep = [Group; STEP];

/// Code for an instruction set. A value exists only where the processor has it.
trait Kernel: Copy {
    /// Terms of a row that are multiplied together.
    type Group: Copy + Default;
    /// The terms of a row between checks of its end.
    type RowStep: RowStep + AsRef<[Self::Group]>;
    /// A group of terms of each column of a panel.
    type Columns: Pod;
    /// The same of a step.
    type PanelStep: Pod + AsRef<[Self::Columns]>;
    /// The same in registers.
    type Loaded: Copy;
    /// The sums of a row with the columns of a panel, in registers.
    type Sums: Copy;

    /// The number of columns of a panel.
    const WIDTH: usize;
    /// The number of terms of a group.
    const GROUP: usize = GROUP;
    /// The most rows of a tile.
    const MAX_HEIGHT: usize;
    /// What is subtracted from each term of a row before it is multiplied.
    const OFFSET: i32 = 0;

    /// Calls `body`, compiled for the instruction set.
    fn run<T>(self, body: impl FnOnce() -> T) -> T;

    /// Sums of no terms.
    fn zero(self) -> Self::Sums;

    /// Loads terms of the columns.
    fn load(self, columns: &Self::Columns) -> Self::Loaded;

    /// Adds the products of a group of terms of a row, less [`OFFSET`](Self::OFFSET), and of the columns.
    fn add(self, sums: Self::Sums, group: Self::Group, columns: Self::Loaded) -> Self::Sums;

    /// The sums by column.
    fn by_column(self, sums: Self::Sums) -> [i32; MAX_WIDTH];
}

/// The best instruction set of the processor.
#[derive(Debug, Clone, Copy)]
pub(crate) enum InstructionSet {
    #[cfg(target_arch = "x86_64")]
    Avx512(avx512::Avx512),
    #[cfg(target_arch = "x86_64")]
    AvxVnni(avx_vnni::AvxVnni),
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::Avx2),
    #[cfg(target_arch = "aarch64")]
    NeonDot(neon::NeonDot),
    #[cfg(target_arch = "aarch64")]
    Neon(neon::Neon),
    Portable(portable::Portable),
}

/// Calls `$body` with the kernel of an instruction set as `$kernel`.
macro_rules! with_kernel {
    ($set:expr, $kernel:ident => $body:expr) => {
        match $set {
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512($kernel) => $body,
            #[cfg(target_arch = "x86_64")]
            InstructionSet::AvxVnni($kernel) => $body,
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2($kernel) => $body,
            #[cfg(target_arch = "aarch64")]
            InstructionSet::NeonDot($kernel) => $body,
            #[cfg(target_arch = "aarch64")]
            InstructionSet::Neon($kernel) => $body,
            InstructionSet::Portable($kernel) => $body,
        }
    };
}

impl InstructionSet {
    /// The instruction sets that the processor has, the best one first.
    pub(crate) fn available() -> impl Iterator<Item = Self> {
        let portable = std::iter::once(Self::Portable(portable::Portable));
        #[cfg(target_arch = "x86_64")]
        return avx512::Avx512::new()
            .map(Self::Avx512)
            .into_iter()
            .chain(avx_vnni::AvxVnni::new().map(Self::AvxVnni))
            .chain(avx2::Avx2::new().map(Self::Avx2))
            .chain(portable);
        #[cfg(target_arch = "aarch64")]
        return neon::NeonDot::new()
            .map(Self::NeonDot)
            .into_iter()
            .chain(std::iter::once(Self::Neon(neon::Neon)))
            .chain(portable);
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        return portable;
    }

    pub(crate) fn best() -> Self {
        Self::available().next().unwrap_or(Self::Portable(portable::Portable))
    }

    /// The number of columns of a panel.
    fn width(self) -> usize {
        fn width<K: Kernel>(_: K) -> usize {
            K::WIDTH
        }
        with_kernel!(self, kernel => width(kernel))
    }

    /// The number of terms of a column that are side by side.
    fn group(self) -> usize {
        fn group<K: Kernel>(_: K) -> usize {
            K::GROUP
        }
        with_kernel!(self, kernel => group(kernel))
    }
}

impl ByteWeights {
    /// Writes `rows · weights` to `out`. `bytes` is a buffer for the rows as bytes.
    ///
    /// Fails if a slice is too short for its rows.
    pub(crate) fn product(&self, rows: Rows<'_>, out: &mut RowsMut<'_>, bytes: &mut ByteRows) -> Result<()> {
        check_fit(rows, self.depth(), out, self.columns())?;
        with_kernel!(self.instruction_set(), kernel => kernel.run(
            #[inline(always)]
            || multiply(kernel, rows, bytes, self, out),
        ));
        Ok(())
    }
}

/// How many units 1 is; 0 if it is more than the type can say, so that numbers which are next to nothing become zero.
#[inline(always)]
fn units_of_one(unit: f32) -> f32 {
    let units = 1.0 / unit;
    if units.is_finite() { units } else { 0.0 }
}

#[inline(always)]
fn multiply<K: Kernel>(
    kernel: K,
    rows: Rows<'_>,
    bytes: &mut ByteRows,
    weights: &ByteWeights,
    out: &mut RowsMut<'_>,
) {
    bytes.quantize::<K::RowStep>(rows, weights.depth(), K::MAX_HEIGHT);
    for block in blocks(rows.count) {
        for panel in weights.panels() {
            for tile in tiles(block.clone(), K::MAX_HEIGHT) {
                let numbers =
                    out.numbers.get_mut(tile.first * out.stride + panel.first_column..).unwrap_or_default();
                let mut place = RowsMut { numbers, stride: out.stride };
                with_height!(tile.height.min(K::MAX_HEIGHT), HEIGHT =>
                    multiply_tile::<K, HEIGHT>(kernel, (bytes, tile), &panel, &mut place));
            }
        }
    }
}

/// Multiplies the `HEIGHT` rows of a tile by a panel.
#[inline(always)]
fn multiply_tile<K: Kernel, const HEIGHT: usize>(
    kernel: K,
    (rows, tile): (&ByteRows, Tile),
    panel: &BytePanel<'_>,
    out: &mut RowsMut<'_>,
) {
    let mut sums = [kernel.zero(); HEIGHT];
    // The cast succeeds: bytes have no alignment, and a panel is whole.
    let panel_steps: &[K::PanelStep] = bytemuck::try_cast_slice(panel.bytes).unwrap_or_default();
    for (index, (columns, rows)) in
        panel_steps.iter().zip(rows.steps_of::<K::RowStep, HEIGHT>(tile.first)).enumerate()
    {
        tile.prefetch(index, columns, panel.bytes.len());
        for (at, columns) in columns.as_ref().iter().enumerate() {
            let columns = kernel.load(columns);
            for (sums, row) in sums.iter_mut().zip(rows) {
                *sums = kernel.add(*sums, row.as_ref().get(at).copied().unwrap_or_default(), columns);
            }
        }
    }
    let places = out.numbers.chunks_mut(out.stride.max(1));
    for ((sums, place), index) in sums.into_iter().zip(places).zip(tile.first..) {
        let (scale, zero) = rows.scale_and_zero(index);
        let zero = zero - K::OFFSET;
        let sums = kernel.by_column(sums);
        let place = place.get_mut(..panel.columns).unwrap_or_default();
        if K::WIDTH.is_multiple_of(WIDE) {
            write::<WIDE>(&sums, (scale, zero), panel, place);
        } else {
            write::<NARROW>(&sums, (scale, zero), panel, place);
        }
    }
}

/// Writes the numbers of a row whose sums with the columns of a panel these are, `LANES` at a time.
#[inline(always)]
fn write<const LANES: usize>(
    sums: &[i32; MAX_WIDTH],
    (scale, zero): (f32, i32),
    panel: &BytePanel<'_>,
    mut out: &mut [f32],
) {
    let columns = sums.as_chunks::<LANES>().0.iter();
    let columns = columns.zip(panel.scales.as_chunks::<LANES>().0).zip(panel.sums.as_chunks::<LANES>().0);
    for ((sums, scales), column_sums) in columns {
        let mut numbers = [0.0; LANES];
        let terms = sums.iter().zip(scales).zip(column_sums);
        for (number, ((&sum, &column_scale), &column_sum)) in numbers.iter_mut().zip(terms) {
            *number = (sum - zero * column_sum) as f32 * (scale * column_scale);
        }
        let (own, after) = out.split_at_mut(LANES.min(out.len()));
        // An array of a fixed size, because copying a slice calls a function.
        match own.as_chunks_mut() {
            ([whole], _) => *whole = numbers,
            (_, part) => part.iter_mut().zip(numbers).for_each(|(place, number)| *place = number),
        }
        out = after;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn product(set: InstructionSet, rows: &[Vec<f32>], columns: &[Vec<f32>]) -> Vec<Vec<f32>> {
        let depth = rows[0].len();
        let weights = ByteWeights::of_columns(set, depth, columns.iter().map(Vec::as_slice));
        let numbers = rows.concat();
        // A gap between the rows of the result stays as it is.
        let stride = columns.len() + 1;
        let mut out = vec![-1.0; rows.len() * stride];
        let rows = Rows { numbers: &numbers, count: rows.len(), stride: depth };
        let place = &mut RowsMut { numbers: &mut out, stride };
        weights.product(rows, place, &mut ByteRows::default()).unwrap();
        let whole = out.chunks(stride).map(|row| row.split_last().unwrap());
        whole.inspect(|(gap, _)| assert_eq!(**gap, -1.0)).map(|(_, row)| row.to_vec()).collect()
    }

    /// The largest number of a slice without its sign.
    fn largest(numbers: &[f32]) -> f32 {
        numbers.iter().fold(0.0, |largest, x| x.abs().max(largest))
    }

    fn operands() -> impl Strategy<Value = (Vec<Vec<f32>>, Vec<Vec<f32>>)> {
        let matrix = |rows, depth| {
            let row = (-3_i32..3).prop_flat_map(move |power| {
                let size = 10_f32.powi(power);
                prop::collection::vec(-size..size, depth)
            });
            prop::collection::vec(row, rows)
        };
        (1_usize..90).prop_flat_map(move |depth| (matrix(1..60_usize, depth), matrix(1..80_usize, depth)))
    }

    proptest! {
        #[test]
        fn instruction_sets_have_the_same_results((rows, columns) in operands()) {
            let portable = product(InstructionSet::Portable(portable::Portable), &rows, &columns);
            for set in InstructionSet::available() {
                prop_assert_eq!(&product(set, &rows, &columns), &portable, "{:?}", set);
            }
        }

        #[test]
        fn error_is_that_of_the_rounding((rows, columns) in operands()) {
            let found = product(InstructionSet::best(), &rows, &columns);
            for (row, found) in rows.iter().zip(&found) {
                for (column, &found) in columns.iter().zip(found) {
                    let exact: f64 = row.iter().zip(column).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
                    // Half a unit of one factor by the largest of the other, for each term. Zero is rounded too.
                    let (a, b) = (largest(row), largest(column));
                    let of_a_term = (2.0 * a / 255.0) * b + a * (b / 254.0);
                    let bound = f64::from(of_a_term) * row.len() as f64 + 1e-6;
                    prop_assert!((f64::from(found) - exact).abs() <= bound, "{found}, not {exact}");
                }
            }
        }

        #[test]
        fn row_has_the_same_result_beside_any_others((rows, columns) in operands()) {
            let together = product(InstructionSet::best(), &rows, &columns);
            for (row, expected) in rows.iter().zip(&together) {
                prop_assert_eq!(&product(InstructionSet::best(), std::slice::from_ref(row), &columns)[0], expected);
            }
        }
    }

    /// Around the heights of tiles, the blocks of rows, the widths of panels and the steps of a sum.
    #[test]
    fn odd_shapes_and_extreme_numbers_have_the_same_results_on_every_instruction_set() {
        const EXTREMES: [f32; 9] = [1e18, -1e18, 1.0, -1.0, 0.0, -0.0, 1e-45, -1e-40, f32::MIN_POSITIVE];
        let shapes = [1, 2, 11, 12, 13, 95, 96, 97, 109].map(|rows| {
            [1, 3, 15, 16, 17, 65].map(|depth| [1, 7, 8, 15, 17, 33].map(|columns| (rows, depth, columns)))
        });
        for (at, &(rows, depth, columns)) in shapes.iter().flatten().flatten().enumerate() {
            // Every other shape has extreme numbers; the others saturate, with the largest sums that there are.
            let number = |row: usize, term: usize| match at % 2 {
                0 => EXTREMES[(row * 7 + term * 5 + at) % EXTREMES.len()],
                _ => {
                    if (row / 3).is_multiple_of(2) {
                        2.0
                    } else {
                        -2.0
                    }
                }
            };
            let matrix = |rows: usize| -> Vec<Vec<f32>> {
                (0..rows).map(|row| (0..depth).map(|term| number(row, term)).collect()).collect()
            };
            let (rows, columns) = (matrix(rows), matrix(columns));
            let portable = product(InstructionSet::Portable(portable::Portable), &rows, &columns);
            for set in InstructionSet::available() {
                assert_eq!(product(set, &rows, &columns), portable, "{set:?}, {depth} terms");
            }
            for (row, found) in rows.iter().zip(&portable) {
                for (column, &found) in columns.iter().zip(found) {
                    let terms = row.iter().zip(column).map(|(&a, &b)| f64::from(a) * f64::from(b));
                    let (a, b) = (f64::from(largest(row)), f64::from(largest(column)));
                    // What is next to nothing beside the smallest normal number becomes zero.
                    let of_a_term = if a.min(b) < 1e-35 { a * b } else { a * b / 63.0 };
                    let bound = of_a_term * depth as f64;
                    let exact: f64 = terms.sum();
                    assert!((f64::from(found) - exact).abs() <= bound + 1e-30, "{found}, not {exact}");
                }
            }
        }
    }

    #[test]
    fn no_rows_have_an_empty_product() {
        for set in InstructionSet::available() {
            let weights = ByteWeights::of_columns(set, 2, [[1.0, 2.0].as_slice()].into_iter());
            let rows = Rows { numbers: &[], count: 0, stride: 2 };
            let mut out = [-1.0];
            let place = &mut RowsMut { numbers: &mut out, stride: 1 };
            weights.product(rows, place, &mut ByteRows::default()).unwrap();
            assert_eq!(out, [-1.0]);
        }
    }

    /// What an earlier product left in the buffer, in tiles of other heights, is not read.
    #[test]
    fn buffer_of_bytes_may_have_served_another_product() {
        let mut bytes = ByteRows::default();
        for set in InstructionSet::available() {
            for (rows, depth) in [(30, 40), (7, 33), (13, 1)] {
                let numbers: Vec<f32> = (0..rows * depth).map(|at| (at % 17) as f32 - 5.0).collect();
                let column: Vec<f32> = (0..depth).map(|at| at as f32).collect();
                let weights = ByteWeights::of_columns(set, depth, [column.as_slice()].into_iter());
                let of = |bytes: &mut ByteRows| {
                    let mut out = vec![0.0; rows];
                    let rows = Rows { numbers: &numbers, count: rows, stride: depth };
                    weights.product(rows, &mut RowsMut { numbers: &mut out, stride: 1 }, bytes).unwrap();
                    out
                };
                assert_eq!(of(&mut bytes), of(&mut ByteRows::default()), "{set:?}");
            }
        }
    }

    #[test]
    fn zeros_and_numbers_that_are_not_finite() {
        for set in InstructionSet::available() {
            let of = |x: f32, y: f32| product(set, &[vec![x; 5]], &[vec![y; 5]])[0][0];
            assert_eq!([of(0.0, 1.0), of(1.0, 0.0)], [0.0; 2]);
            assert!((of(2.0, -3.0) + 30.0).abs() < 1e-4);
            assert!(!of(f32::INFINITY, 1.0).is_finite() && !of(1.0, f32::NAN).is_finite());
        }
    }

    #[test]
    fn longest_sums_do_not_overflow() {
        for set in InstructionSet::available() {
            let long = [vec![1.0; MAX_DEPTH]];
            let expected = MAX_DEPTH as f32;
            let found = product(set, &long, &long)[0][0];
            assert!((found / expected - 1.0).abs() < 1e-5, "{set:?}: {found}, not {expected}");
        }
    }

    #[test]
    fn short_slice_is_an_error() {
        let column = [1.0; 4];
        let weights = ByteWeights::of_columns(InstructionSet::best(), 4, [column.as_slice(); 3].into_iter());
        let check = |rows: usize, out: usize| {
            let (rows, mut out) = (vec![1.0; rows], vec![0.0; out]);
            let rows = Rows { numbers: &rows, count: 2, stride: 4 };
            let out = &mut RowsMut { numbers: &mut out, stride: 3 };
            weights.product(rows, out, &mut ByteRows::default()).is_ok()
        };
        assert_eq!([check(8, 6), check(7, 6), check(8, 5)], [true, false, false]);
    }
}
