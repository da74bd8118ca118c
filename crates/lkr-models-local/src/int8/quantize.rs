use super::{Group, STEP, STEP_TERMS, units_of_one};
use crate::kernels::fold;
use crate::product::Rows;

/// 1.5 · 2²³: adding it leaves a rounded integer in the lowest bits.
const ROUND: f32 = 12_582_912.0;

/// The terms of a row that are side by side.
pub(super) type Step = [Group; STEP];

/// Rows of numbers as bytes, each with its own scale.
///
/// The rows of a tile are interleaved: the first step of each row, then the second one of each. So a kernel reads them from
/// one place, and checks its end once for all of them.
#[derive(Debug, Default)]
pub(crate) struct ByteRows {
    bytes: Vec<u8>,
    /// The bytes of a row: a multiple of [`STEP_TERMS`].
    stride: usize,
    /// The value of a unit and the byte of zero, by row.
    scales: Vec<(f32, i32)>,
}

impl ByteRows {
    /// Replaces the rows by the first `depth` numbers of these, in tiles of these heights.
    #[inline(always)]
    pub(super) fn quantize(&mut self, rows: Rows<'_>, depth: usize, heights: impl Iterator<Item = usize>) {
        self.stride = depth.next_multiple_of(STEP_TERMS);
        self.scales.clear();
        self.bytes.resize(self.stride * rows.count, 0);
        let mut numbers = rows.numbers.chunks(rows.stride.max(1)).take(rows.count);
        let mut rest = self.bytes.as_mut_slice();
        for height in heights {
            let (tile, after) =
                std::mem::take(&mut rest).split_at_mut_checked(height * self.stride).unwrap_or_default();
            rest = after;
            let (steps, _) = tile.as_chunks_mut::<STEP_TERMS>();
            for (row, numbers) in numbers.by_ref().take(height).enumerate() {
                let steps = steps.iter_mut().skip(row).step_by(height);
                self.scales.push(quantize(numbers.get(..depth).unwrap_or_default(), steps));
            }
        }
    }

    /// The steps of the tile of `HEIGHT` rows from `first` on.
    #[inline(always)]
    pub(super) fn tile<const HEIGHT: usize>(&self, first: usize) -> &[[Step; HEIGHT]] {
        let bytes = self.bytes.get(first * self.stride..(first + HEIGHT) * self.stride).unwrap_or_default();
        bytes.as_chunks().0.as_chunks().0.as_chunks().0
    }

    /// The value of a unit of a row and its byte of zero.
    #[inline(always)]
    pub(super) fn scale_and_zero(&self, row: usize) -> (f32, i32) {
        self.scales.get(row).copied().unwrap_or_default()
    }
}

/// Writes the numbers in units of a 255th of their range. Returns the unit and the byte of zero.
#[inline(always)]
fn quantize<'a>(numbers: &[f32], steps: impl Iterator<Item = &'a mut [u8; STEP_TERMS]>) -> (f32, i32) {
    // Zero has a byte of its own, so it is part of the range.
    let low = fold(numbers, 0.0, |low, x| if x < low { x } else { low });
    let high = fold(numbers, 0.0, |high, x| if x > high { x } else { high });
    let unit = (high - low) / 255.0;
    let inverse = units_of_one(unit);
    let zero = -low * inverse + ROUND - ROUND;
    let byte = |number: f32| {
        let units = (number * inverse + zero).clamp(0.0, 255.0) + ROUND;
        units.to_bits() as u8
    };
    let (whole, last) = numbers.as_chunks::<STEP_TERMS>();
    let mut steps = steps;
    for (numbers, step) in whole.iter().zip(steps.by_ref()) {
        *step = numbers.map(byte);
    }
    if let Some(step) = steps.next() {
        // What is behind a row is multiplied by zeros.
        step.iter_mut().zip(last).for_each(|(place, &number)| *place = byte(number));
    }
    (unit, zero as i32)
}
