//! The rows of a product in the order in which a kernel reads them.

use std::iter::{Skip, StepBy};
use std::ops::Range;
use std::slice::IterMut;

use crate::product::Rows;

/// The number of rows that pass all panels together, so that they stay in the cache.
const BLOCK_ROWS: usize = 96;

/// The rows that pass all panels together.
pub(crate) fn blocks(rows: usize) -> impl Iterator<Item = Range<usize>> + Clone {
    (0..rows).step_by(BLOCK_ROWS).map(move |first| first..rows.min(first + BLOCK_ROWS))
}

/// Some rows of a block, which a kernel multiplies together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tile {
    /// The index of the first row.
    pub(crate) first: usize,
    /// The number of rows.
    pub(crate) height: usize,
    /// Which one it is of the tiles of the block, and how many these are.
    turn: (usize, usize),
}

/// As few tiles of at most `max_height` rows as the block needs. Their heights differ by one at most.
#[inline(always)]
pub(crate) fn tiles(block: Range<usize>, max_height: usize) -> impl Iterator<Item = Tile> {
    let (rows, count) = (block.len(), block.len().div_ceil(max_height));
    let heights = (0..count).map(move |tile| (tile, rows / count + usize::from(tile < rows % count)));
    heights.scan(block.start, move |next, (tile, height)| {
        let first = *next;
        *next += height;
        Some(Tile { first, height, turn: (tile, count) })
    })
}

impl Tile {
    /// Asks the processor for a step of the panel behind the one that is being multiplied, which has `panel_bytes`. The tiles of a
    /// block take turns, so each step is asked for once. See docs/studies.md#rows-of-a-tile.
    #[inline(always)]
    pub(crate) fn prefetch<S>(self, index: usize, step: &S, panel_bytes: usize) {
        let (turn, turns) = self.turn;
        if index % turns == turn {
            prefetch(step, panel_bytes);
        }
    }
}

/// The bytes of a line of the cache.
#[cfg(target_arch = "x86_64")]
const CACHE_LINE: usize = 64;

/// Asks the processor for as many bytes as `step` has, `ahead` bytes behind it.
#[inline(always)]
fn prefetch<S>(step: &S, ahead: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..size_of::<S>()).step_by(CACHE_LINE) {
        let address = std::ptr::from_ref(step).cast::<i8>().wrapping_add(ahead + line);
        // SAFETY: every processor of this architecture has the instruction, which reads nothing that the program sees and ignores
        // addresses that are not mapped.
        #[expect(unsafe_code, reason = "an instruction that takes an address")]
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (step, ahead);
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
        for Tile { height, .. } in blocks(rows.count).flat_map(|block| tiles(block, max_height)) {
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
    pub(crate) fn steps_of<const HEIGHT: usize>(&self, first: usize) -> &[[S; HEIGHT]] {
        let steps = self.steps.get(first * self.stride..(first + HEIGHT) * self.stride);
        steps.unwrap_or_default().as_chunks().0
    }
}
