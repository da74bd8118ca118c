//! Products of pairs of bfloat16.

use super::avx512::Avx512;
use super::rounded;
use crate::product::{Rows, RowsMut, with_height};
use crate::tiles::{RowSteps, Tile, Tiles, blocks, tiles};

/// Two terms of a sum side by side as bfloat16, the first one in the lower half.
pub(super) type Pair = u32;

/// The columns of a panel.
pub(super) const WIDTH: usize = 32;
/// The most rows of a tile. With two vectors a row, its sums occupy 24 of 32 registers.
const MAX_HEIGHT: usize = 12;
/// The number of pairs between checks of a row's end.
pub(super) const STEP: usize = 4;
/// The number of terms of a step; sums are filled up to a multiple with zeros.
pub(super) const STEP_TERMS: usize = 2 * STEP;

/// The rows of a product, rounded.
pub(super) type PairRows = Tiles<[Pair; STEP]>;

/// Weights in panels of [`WIDTH`] columns. Within a panel, the pairs of the columns are side by side, those of the first two
/// terms, then those of the next two. Rows and columns are filled up with zeros.
#[derive(Debug)]
pub(crate) struct PairWeights {
    kernel: Avx512,
    pairs: Vec<[Pair; WIDTH]>,
    depth: usize,
    columns: usize,
}

impl PairWeights {
    /// The weights with these columns, each with `depth` numbers.
    pub(super) fn of_columns<'a>(
        kernel: Avx512,
        depth: usize,
        columns: impl ExactSizeIterator<Item = &'a [f32]>,
    ) -> Self {
        let panel_len = depth.div_ceil(STEP_TERMS) * STEP;
        let count = columns.len();
        let mut pairs = vec![[0; WIDTH]; count.div_ceil(WIDTH) * panel_len];
        for (index, column) in columns.enumerate() {
            let panel = pairs.get_mut(index / WIDTH * panel_len..).unwrap_or_default();
            for (place, terms) in panel.iter_mut().zip(column.chunks(2)) {
                if let Some(place) = place.get_mut(index % WIDTH) {
                    *place = pair(terms);
                }
            }
        }
        Self { kernel, pairs, depth, columns: count }
    }

    /// The number of terms of a sum.
    pub(super) const fn depth(&self) -> usize {
        self.depth
    }

    /// The number of columns.
    pub(super) const fn columns(&self) -> usize {
        self.columns
    }

    /// Writes `rows · weights` to `out`. The slices are long enough.
    pub(super) fn product(&self, rows: Rows<'_>, out: &mut RowsMut<'_>, buffer: &mut PairRows) {
        self.kernel.run(
            #[inline(always)]
            || self.multiply(rows, out, buffer),
        );
    }

    #[inline(always)]
    fn multiply(&self, rows: Rows<'_>, out: &mut RowsMut<'_>, buffer: &mut PairRows) {
        let steps = self.depth.div_ceil(STEP_TERMS);
        buffer.fill(
            rows,
            (self.depth, steps),
            MAX_HEIGHT,
            #[inline(always)]
            |numbers, steps| round(self.kernel, numbers, steps),
        );
        for block in blocks(rows.count) {
            for (panel, column) in self.pairs.chunks_exact((steps * STEP).max(1)).zip((0..).step_by(WIDTH)) {
                let columns = WIDTH.min(self.columns - column);
                for tile in tiles(block.clone(), MAX_HEIGHT) {
                    let numbers = out.numbers.get_mut(tile.first * out.stride + column..).unwrap_or_default();
                    let mut place = RowsMut { numbers, stride: out.stride };
                    with_height!(tile.height, HEIGHT =>
                        multiply_tile::<HEIGHT>(self.kernel, (buffer, tile), panel, columns, &mut place));
                }
            }
        }
    }
}

/// Multiplies the `HEIGHT` rows of a tile by a panel and writes as many columns.
#[inline(always)]
fn multiply_tile<const HEIGHT: usize>(
    kernel: Avx512,
    (rows, tile): (&PairRows, Tile),
    panel: &[[Pair; WIDTH]],
    columns: usize,
    out: &mut RowsMut<'_>,
) {
    let mut sums = [kernel.zero(); HEIGHT];
    let (steps, _) = panel.as_chunks::<STEP>();
    for (index, (columns, rows)) in steps.iter().zip(rows.steps_of::<HEIGHT>(tile.first)).enumerate() {
        tile.prefetch(index, columns, size_of_val(panel));
        for (at, columns) in columns.iter().enumerate() {
            let columns = kernel.load(columns);
            for (sums, row) in sums.iter_mut().zip(rows) {
                *sums = kernel.add(*sums, row.get(at).copied().unwrap_or_default(), columns);
            }
        }
    }
    for (sums, place) in sums.into_iter().zip(out.numbers.chunks_mut(out.stride.max(1))) {
        kernel.store(sums, place.get_mut(..columns).unwrap_or_default());
    }
}

/// Writes the numbers of a row, rounded and filled up with zeros.
#[inline(always)]
fn round(kernel: Avx512, numbers: &[f32], mut steps: RowSteps<'_, [Pair; STEP]>) {
    let (whole, last) = numbers.as_chunks();
    for (numbers, step) in whole.iter().zip(steps.by_ref()) {
        *step = kernel.round(numbers);
    }
    if let Some(step) = steps.next() {
        let mut filled = [0.0; STEP_TERMS];
        filled.iter_mut().zip(last).for_each(|(place, &number)| *place = number);
        *step = kernel.round(&filled);
    }
}

/// Up to two terms, rounded.
fn pair(terms: &[f32]) -> Pair {
    let half = |at: usize| terms.get(at).map_or(0, |&term| rounded(term).to_bits() >> 16);
    half(1) << 16 | half(0)
}
