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

/// The most rows of a tile. With two vectors a row, its sums occupy 24 of 32 registers.
const MAX_TILE_ROWS: usize = 12;
/// The same for processors with 16 registers.
const MAX_TILE_ROWS_OF_16_REGISTERS: usize = 6;
/// The number of rows that pass all panels together, so that they stay in the cache.
const BLOCK_ROWS: usize = 48;
/// The number of terms between checks of a row's end.
const STEP: usize = 8;

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

/// Writes `rows · panels` to `out`.
///
/// Fails if a slice is too short for its rows.
pub(crate) fn product(arch: Arch, rows: Rows<'_>, panels: &Panels, out: &mut RowsMut<'_>) -> Result<()> {
    check_fit(rows, panels.depth(), out, panels.columns())?;
    arch.dispatch(Product { rows, panels, out });
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
}

impl WithSimd for Product<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { rows, panels, out } = self;
        let max_rows = if S::REGISTER_COUNT > 16 { MAX_TILE_ROWS } else { MAX_TILE_ROWS_OF_16_REGISTERS };
        for first in (0..rows.count).step_by(BLOCK_ROWS) {
            let count = BLOCK_ROWS.min(rows.count - first);
            for (index, panel) in panels.iter().enumerate() {
                let column = index * panels.width();
                let mut row = first;
                for height in heights(count, max_rows) {
                    let tile = Tile {
                        rows: rows.numbers.get(row * rows.stride..).unwrap_or_default(),
                        stride: rows.stride,
                        panel,
                        out: out.numbers.get_mut(row * out.stride + column..).unwrap_or_default(),
                        out_stride: out.stride,
                        columns: panels.width().min(panels.columns() - column),
                    };
                    with_height!(height, HEIGHT => tile.multiply::<S, HEIGHT>(simd));
                    row += height;
                }
            }
        }
    }
}

/// The heights of as few tiles as `count` rows need, which differ by one at most.
#[inline(always)]
pub(crate) fn heights(count: usize, max: usize) -> impl Iterator<Item = usize> {
    let tiles = count.div_ceil(max);
    (0..tiles).map(move |tile| count / tiles + usize::from(tile < count % tiles))
}

/// Some rows, a panel, and the place of their product.
struct Tile<'a> {
    rows: &'a [f32],
    stride: usize,
    panel: &'a [f32],
    out: &'a mut [f32],
    out_stride: usize,
    /// The columns of the panel that are not filling.
    columns: usize,
}

impl Tile<'_> {
    #[inline(always)]
    fn multiply<S: Simd, const HEIGHT: usize>(self, simd: S) {
        let (panel, _) = S::as_simd_f32s(self.panel);
        let (panel, _) = panel.as_chunks::<PANEL_VECTORS>();
        let (steps, last) = panel.as_chunks::<STEP>();
        let row = |row: usize| self.rows.get(row * self.stride..).unwrap_or_default();
        let rows: [&[[f32; STEP]]; HEIGHT] = std::array::from_fn(|at| row(at).as_chunks().0);
        let mut sums = [[simd.splat_f32s(0.0); PANEL_VECTORS]; HEIGHT];
        for (at, columns) in steps.iter().enumerate() {
            let numbers = rows.map(|row| row.get(at).unwrap_or(&[0.0; STEP]));
            for (at, columns) in columns.iter().enumerate() {
                for (sums, numbers) in sums.iter_mut().zip(numbers) {
                    add_product(simd, sums, numbers.get(at), columns);
                }
            }
        }
        for (at, columns) in last.iter().enumerate() {
            for (index, sums) in sums.iter_mut().enumerate() {
                add_product(simd, sums, row(index).get(steps.len() * STEP + at), columns);
            }
        }
        for (sums, out) in sums.into_iter().zip(self.out.chunks_mut(self.out_stride.max(1))) {
            store(simd, sums, out, self.columns);
        }
    }
}

#[inline(always)]
fn add_product<S: Simd>(
    simd: S,
    sums: &mut [S::f32s; PANEL_VECTORS],
    number: Option<&f32>,
    columns: &[S::f32s; PANEL_VECTORS],
) {
    let number = simd.splat_f32s(number.copied().unwrap_or_default());
    for (sum, &columns) in sums.iter_mut().zip(columns) {
        *sum = simd.mul_add_e_f32s(number, columns, *sum);
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
        product(arch, rows, panels, &mut RowsMut { numbers: &mut out, stride }).unwrap();
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

    #[test]
    fn short_slice_is_an_error() {
        let arch = Arch::new();
        let column = [1.0; 4];
        let panels = Panels::of_columns(arch, 4, [column.as_slice(); 3].into_iter());
        let check = |rows: usize, out: usize| {
            let (rows, mut out) = (vec![1.0; rows], vec![0.0; out]);
            let rows = Rows { numbers: &rows, count: 2, stride: 4 };
            let out = &mut RowsMut { numbers: &mut out, stride: 3 };
            product(arch, rows, &panels, out).is_ok()
        };
        assert_eq!([check(8, 6), check(7, 6), check(8, 5)], [true, false, false]);
    }
}
