//! The rows of a product in the order in which a kernel reads them.

use std::iter::{Skip, StepBy};
use std::ops::Range;
use std::slice::IterMut;

use crate::product::{Rows, heights};

/// The number of rows that pass all panels together, so that they stay in the cache.
const BLOCK_ROWS: usize = 96;

/// The rows that pass all panels together.
pub(crate) fn blocks(rows: usize) -> impl Iterator<Item = Range<usize>> + Clone {
    (0..rows).step_by(BLOCK_ROWS).map(move |first| first..rows.min(first + BLOCK_ROWS))
}

/// Rows of steps, each of which has several terms.
///
/// The rows of a tile are interleaved: the first step of each row, then the second one of each. So a kernel reads them from
/// one place, and checks its end once for all of them.
#[derive(Debug, Default)]
pub(crate) struct Tiles<S> {
    steps: Vec<S>,
    /// The steps of a row.
    stride: usize,
}

/// The steps of a row.
pub(crate) type RowSteps<'a, S> = StepBy<Skip<IterMut<'a, S>>>;

impl<S: Copy + Default> Tiles<S> {
    /// Replaces the rows by the first `depth` numbers of these, as `stride` steps each, in tiles of at most `max_height` rows.
    /// `write` gets the numbers of a row and its steps, whose values are unspecified.
    #[inline(always)]
    pub(crate) fn fill(
        &mut self,
        rows: Rows<'_>,
        (depth, stride): (usize, usize),
        max_height: usize,
        mut write: impl FnMut(&[f32], RowSteps<'_, S>),
    ) {
        self.stride = stride;
        self.steps.resize(stride * rows.count, S::default());
        let mut numbers = rows.numbers.chunks(rows.stride.max(1)).take(rows.count);
        let mut rest = self.steps.as_mut_slice();
        for height in blocks(rows.count).flat_map(|block| heights(block.len(), max_height)) {
            let (tile, after) =
                std::mem::take(&mut rest).split_at_mut_checked(height * stride).unwrap_or_default();
            rest = after;
            for (row, numbers) in numbers.by_ref().take(height).enumerate() {
                write(numbers.get(..depth).unwrap_or_default(), tile.iter_mut().skip(row).step_by(height));
            }
        }
    }

    /// The steps of the tile of `HEIGHT` rows from `first` on.
    #[inline(always)]
    pub(crate) fn tile<const HEIGHT: usize>(&self, first: usize) -> &[[S; HEIGHT]] {
        let steps = self.steps.get(first * self.stride..(first + HEIGHT) * self.stride);
        steps.unwrap_or_default().as_chunks().0
    }
}
