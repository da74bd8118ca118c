//! The product of two matrices, on the calling thread.
//!
//! A library's product arranges both operands on each call, which takes longer than the product itself if the left one has few
//! rows, as a query has. Here the right operand is arranged once ([`Panels`]). See docs/studies.md#matrix-products.
//!
//! Each number of the result is one sum from the first to the last term, with fused additions where the processor has them. So
//! it depends neither on the other rows nor on the width of the vectors.

use lkr_models::Result;
use pulp::{Arch, Simd, WithSimd};

use crate::error;
use crate::panels::{PANEL_VECTORS, Panels};
use crate::tiles::{RowSteps, Tile, Tiles, blocks, tiles};

/// The most rows of a tile. With two vectors a row, its sums occupy 24 of 32 registers.
const MAX_TILE_ROWS: usize = 12;
/// The same for processors with 16 registers.
const MAX_TILE_ROWS_OF_16_REGISTERS: usize = 6;
/// The number of terms between checks of a row's end.
const STEP: usize = 4;

/// The rows of a product, as a kernel reads them.
pub(crate) type FloatRows = Tiles<[f32; STEP]>;

/// Rows of numbers at equal distances in a slice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub(crate) numbers: &'a [f32],
    pub(crate) count: usize,
    pub(crate) stride: usize,
}

/// Where the rows of a product are written.
#[derive(Debug)]
pub(crate) struct RowsMut<'a> {
    pub(crate) numbers: &'a mut [f32],
    pub(crate) stride: usize,
}

/// Checks that the rows have `depth` numbers within their slice, and the place of the product `columns` for each row.
pub(crate) fn check_fit(rows: Rows<'_>, depth: usize, out: &RowsMut<'_>, columns: usize) -> Result<()> {
    let fit = |len: usize, stride: usize, columns: usize| {
        let needed = rows.count.saturating_sub(1).checked_mul(stride).and_then(|at| at.checked_add(columns));
        rows.count == 0 || (columns <= stride && needed.is_some_and(|needed| needed <= len))
    };
    if fit(rows.numbers.len(), rows.stride, depth) && fit(out.numbers.len(), out.stride, columns) {
        return Ok(());
    }
    Err(error::internal(format_args!("no product of {} rows of {depth} and {columns} columns", rows.count)))
}

/// Evaluates `$body` with the constant `$HEIGHT`, the rows of a tile, so that its sums stay in registers.
macro_rules! with_height {
    ($height:expr, $HEIGHT:ident => $body:expr) => {
        with_height!($height, $HEIGHT => $body, 1 2 3 4 5 6 7 8 9 10 11; 12)
    };
    ($height:expr, $HEIGHT:ident => $body:expr, $($rows:literal)*; $most:literal) => {
        match $height {
            $($rows => {
                const $HEIGHT: usize = $rows;
                $body
            })*
            _ => {
                const $HEIGHT: usize = $most;
                $body
            }
        }
    };
}
pub(crate) use with_height;

/// Writes `rows · panels` to `out`. `buffer` is for the rows.
///
/// Fails if a slice is too short for its rows.
pub(crate) fn product(
    arch: Arch,
    rows: Rows<'_>,
    panels: &Panels,
    out: &mut RowsMut<'_>,
    buffer: &mut FloatRows,
) -> Result<()> {
    check_fit(rows, panels.depth(), out, panels.columns())?;
    arch.dispatch(Product { rows, panels, out, buffer });
    Ok(())
}

/// The instruction sets of the processor that products are compiled for, the best one first.
pub(crate) fn archs() -> impl Iterator<Item = Arch> {
    let archs = std::iter::once(Arch::new());
    #[cfg(target_arch = "x86_64")]
    let archs = archs.chain(pulp::x86::V3::try_new().map(Arch::V3));
    archs.chain(std::iter::once(Arch::Scalar))
}

#[derive(Debug)]
struct Product<'a, 'b> {
    rows: Rows<'a>,
    panels: &'a Panels,
    out: &'a mut RowsMut<'b>,
    buffer: &'a mut FloatRows,
}

impl WithSimd for Product<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { rows, panels, out, buffer } = self;
        let max_height = if S::REGISTER_COUNT > 16 { MAX_TILE_ROWS } else { MAX_TILE_ROWS_OF_16_REGISTERS };
        buffer.fill(rows, (panels.depth(), panels.depth().div_ceil(STEP)), max_height, copy);
        for block in blocks(rows.count) {
            for (panel, column) in panels.iter().zip((0..).step_by(panels.width())) {
                let columns = panels.width().min(panels.columns() - column);
                for tile in tiles(block.clone(), max_height) {
                    let numbers = out.numbers.get_mut(tile.first * out.stride + column..).unwrap_or_default();
                    let mut place = RowsMut { numbers, stride: out.stride };
                    with_height!(tile.height, HEIGHT =>
                        multiply::<S, HEIGHT>(simd, (buffer, tile), panel, columns, &mut place));
                }
            }
        }
    }
}

/// Writes the numbers of a row. What is behind the last one in its step is unspecified.
#[inline(always)]
fn copy(numbers: &[f32], mut steps: RowSteps<'_, [f32; STEP]>) {
    let (whole, last) = numbers.as_chunks();
    whole.iter().zip(steps.by_ref()).for_each(|(numbers, step)| *step = *numbers);
    if let Some(step) = steps.next() {
        step.iter_mut().zip(last).for_each(|(place, &number)| *place = number);
    }
}

/// Multiplies the `HEIGHT` rows of a tile by a panel and writes as many columns.
#[inline(always)]
fn multiply<S: Simd, const HEIGHT: usize>(
    simd: S,
    (rows, tile): (&FloatRows, Tile),
    panel: &[f32],
    columns: usize,
    out: &mut RowsMut<'_>,
) {
    let bytes = size_of_val(panel);
    let (panel, _) = S::as_simd_f32s(panel);
    let (panel, _) = panel.as_chunks::<PANEL_VECTORS>();
    let (steps, last) = panel.as_chunks::<STEP>();
    let mut sums = [[simd.splat_f32s(0.0); PANEL_VECTORS]; HEIGHT];
    let (whole, behind) = rows.steps_of(tile.first).split_at_checked(steps.len()).unwrap_or_default();
    for (index, (columns, rows)) in steps.iter().zip(whole).enumerate() {
        tile.prefetch(index, columns, bytes);
        add_products(simd, &mut sums, rows, columns);
    }
    if let Some(rows) = behind.first() {
        add_products(simd, &mut sums, rows, last);
    }
    for (sums, out) in sums.into_iter().zip(out.numbers.chunks_mut(out.stride.max(1))) {
        store(simd, sums, out, columns);
    }
}

/// Adds the products of a step's terms of each row, of which there are as many as `columns` has.
#[inline(always)]
fn add_products<S: Simd, const HEIGHT: usize>(
    simd: S,
    sums: &mut [[S::f32s; PANEL_VECTORS]; HEIGHT],
    rows: &[[f32; STEP]; HEIGHT],
    columns: &[[S::f32s; PANEL_VECTORS]],
) {
    for (at, columns) in columns.iter().enumerate() {
        for (sums, row) in sums.iter_mut().zip(rows) {
            let number = simd.splat_f32s(row.get(at).copied().unwrap_or_default());
            for (sum, &columns) in sums.iter_mut().zip(columns) {
                *sum = simd.mul_add_e_f32s(number, columns, *sum);
            }
        }
    }
}

/// Writes the first `columns` of the sums.
#[inline(always)]
fn store<S: Simd>(simd: S, sums: [S::f32s; PANEL_VECTORS], out: &mut [f32], columns: usize) {
    let mut rest = out.get_mut(..columns).unwrap_or_default();
    for sum in sums {
        let (own, after) = rest.split_at_mut(S::F32_LANES.min(rest.len()));
        match S::as_mut_simd_f32s(own) {
            ([whole], _) => *whole = sum,
            (_, part) => simd.partial_store_f32s(part, sum),
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The product by its definition, in double precision.
    fn expected(rows: &[Vec<f32>], columns: &[Vec<f32>]) -> Vec<Vec<f64>> {
        let dot = |row: &[f32], column: &[f32]| {
            row.iter().zip(column).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
        };
        rows.iter().map(|row| columns.iter().map(|column| dot(row, column)).collect()).collect()
    }

    fn product_of(arch: Arch, rows: &[Vec<f32>], panels: &Panels, gap: usize) -> Vec<Vec<f32>> {
        let gapped = |row: &Vec<f32>| [row.as_slice(), &vec![7.0; gap]].concat();
        let numbers: Vec<f32> = rows.iter().flat_map(gapped).collect();
        let (columns, stride) = (panels.columns(), panels.columns() + gap);
        let mut out = vec![-1.0; rows.len() * stride];
        let rows = Rows { numbers: &numbers, count: rows.len(), stride: panels.depth() + gap };
        let out_rows = &mut RowsMut { numbers: &mut out, stride };
        product(arch, rows, panels, out_rows, &mut FloatRows::default()).unwrap();
        let mut products = Vec::new();
        for row in out.chunks(stride.max(1)) {
            assert!(row[columns..].iter().all(|&untouched| untouched == -1.0));
            products.push(row[..columns].to_vec());
        }
        products
    }

    fn matrix(
        rows: impl Into<prop::collection::SizeRange>,
        columns: usize,
    ) -> impl Strategy<Value = Vec<Vec<f32>>> {
        prop::collection::vec(prop::collection::vec(-4.0_f32..4.0, columns), rows)
    }

    fn operands() -> impl Strategy<Value = (Vec<Vec<f32>>, Vec<Vec<f32>>)> {
        (1_usize..70).prop_flat_map(|depth| (matrix(1..120, depth), matrix(1..80, depth)))
    }

    proptest! {
        #[test]
        fn product_is_that_of_the_definition((rows, columns) in operands(), gap in 0_usize..3) {
            for arch in archs() {
                let depth = rows[0].len();
                let panels = Panels::of_columns(arch, depth, columns.iter().map(Vec::as_slice));
                let found = product_of(arch, &rows, &panels, gap);
                for (found, expected) in found.iter().flatten().zip(expected(&rows, &columns).iter().flatten()) {
                    prop_assert!((f64::from(*found) - expected).abs() < 1e-3, "{found} {expected}");
                }
                // The same matrix by its rows.
                let transposed: Vec<Vec<f32>> =
                    (0..depth).map(|at| columns.iter().map(|column| column[at]).collect()).collect();
                let mut by_rows = Panels::default();
                by_rows.set_rows(arch, columns.len(), transposed.iter().map(Vec::as_slice));
                prop_assert_eq!(product_of(arch, &rows, &by_rows, gap), found);
            }
        }

        #[test]
        fn row_has_the_same_product_beside_any_others((rows, columns) in operands()) {
            let arch = Arch::new();
            let panels = Panels::of_columns(arch, rows[0].len(), columns.iter().map(Vec::as_slice));
            let together = product_of(arch, &rows, &panels, 0);
            for (row, expected) in rows.iter().zip(&together) {
                prop_assert_eq!(&product_of(arch, std::slice::from_ref(row), &panels, 0)[0], expected);
            }
        }
    }

    /// Around the heights of tiles, the blocks of rows, the widths of panels and the steps of a sum.
    #[test]
    fn odd_shapes_and_extreme_numbers_have_the_product_of_the_definition() {
        const EXTREMES: [f32; 9] = [1e18, -1e18, 1.0, -1.0, 0.0, -0.0, 1e-45, -1e-40, f32::MIN_POSITIVE];
        for (rows, depth, columns) in [0, 1, 2, 6, 7, 13, 47, 48, 49, 97].into_iter().flat_map(|rows| {
            [1, 7, 8, 9, 33].into_iter().flat_map(move |depth| {
                [1, 2, 8, 15, 16, 17, 31, 33].into_iter().map(move |columns| (rows, depth, columns))
            })
        }) {
            let matrix = |rows: usize| -> Vec<Vec<f32>> {
                let number = |row: usize, term: usize| EXTREMES[(row * 7 + term * 5) % EXTREMES.len()];
                (0..rows).map(|row| (0..depth).map(|term| number(row, term)).collect()).collect()
            };
            let (rows, columns) = (matrix(rows), matrix(columns));
            let expected = expected(&rows, &columns);
            for arch in archs() {
                let panels = Panels::of_columns(arch, depth, columns.iter().map(Vec::as_slice));
                let found = product_of(arch, &rows, &panels, 1);
                assert_eq!(found.len(), rows.len());
                for ((row, found), expected) in rows.iter().zip(found).zip(&expected) {
                    for ((column, found), expected) in columns.iter().zip(found).zip(expected) {
                        // Each sum and product is rounded; what is too small for the type becomes zero.
                        let sizes =
                            row.iter().zip(column).map(|(&a, &b)| (f64::from(a) * f64::from(b)).abs());
                        let bound = sizes.sum::<f64>() * f64::from(f32::EPSILON) * depth as f64 + 1e-37;
                        assert!((f64::from(found) - expected).abs() <= bound, "{found}, not {expected}");
                    }
                }
            }
        }
    }

    /// What an earlier product left in the buffer, in tiles of other heights, is not read.
    #[test]
    fn buffer_of_rows_may_have_served_another_product() {
        let mut buffer = FloatRows::default();
        for arch in archs() {
            for (count, depth) in [(30, 40), (7, 33), (13, 1), (120, 6)] {
                let numbers: Vec<f32> = (0..count * depth).map(|at| (at % 17) as f32 - 5.0).collect();
                let column: Vec<f32> = (0..depth).map(|at| at as f32).collect();
                let panels = Panels::of_columns(arch, depth, [column.as_slice()].into_iter());
                let of = |buffer: &mut FloatRows| {
                    let mut out = vec![0.0; count];
                    let rows = Rows { numbers: &numbers, count, stride: depth };
                    let place = &mut RowsMut { numbers: &mut out, stride: 1 };
                    product(arch, rows, &panels, place, buffer).unwrap();
                    out
                };
                assert_eq!(of(&mut buffer), of(&mut FloatRows::default()));
            }
        }
    }

    #[test]
    fn short_slice_is_an_error() {
        let arch = Arch::new();
        let column = [1.0; 4];
        let panels = Panels::of_columns(arch, 4, [column.as_slice(); 3].into_iter());
        let check = |rows: usize, out: usize| {
            let (rows, mut out) = (vec![1.0; rows], vec![0.0; out]);
            let rows = Rows { numbers: &rows, count: 2, stride: 4 };
            let out = &mut RowsMut { numbers: &mut out, stride: 3 };
            product(arch, rows, &panels, out, &mut FloatRows::default()).is_ok()
        };
        assert_eq!([check(8, 6), check(7, 6), check(8, 5)], [true, false, false]);
    }
}
