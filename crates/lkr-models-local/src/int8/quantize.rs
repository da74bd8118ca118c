use super::{Group, STEP, STEP_TERMS};
use crate::kernels::fold;
use crate::product::Rows;

/// 1.5 · 2²³: adding it leaves a rounded integer in the lowest bits.
const ROUND: f32 = 12_582_912.0;

/// Rows of numbers as bytes, each with its own scale.
#[derive(Debug, Default)]
pub(crate) struct ByteRows {
    bytes: Vec<u8>,
    /// The bytes of a row: a multiple of [`STEP_TERMS`].
    stride: usize,
    /// The value of a unit and the byte of zero, by row.
    scales: Vec<(f32, i32)>,
}

impl ByteRows {
    /// Replaces the rows by the first `depth` numbers of these.
    #[inline(always)]
    pub(super) fn quantize(&mut self, rows: Rows<'_>, depth: usize) {
        self.stride = depth.next_multiple_of(STEP_TERMS);
        self.scales.clear();
        // What is behind a row is multiplied by zeros.
        self.bytes.resize(self.stride * rows.count, 0);
        let numbers = rows.numbers.chunks(rows.stride.max(1)).take(rows.count);
        for (numbers, bytes) in numbers.zip(self.bytes.chunks_exact_mut(self.stride.max(1))) {
            self.scales.push(quantize(numbers.get(..depth).unwrap_or_default(), bytes));
        }
    }

    pub(super) const fn count(&self) -> usize {
        self.scales.len()
    }

    /// The terms of a row.
    #[inline(always)]
    pub(super) fn steps(&self, row: usize) -> &[[Group; STEP]] {
        let bytes = self.bytes.get(row * self.stride..(row + 1) * self.stride).unwrap_or_default();
        bytes.as_chunks().0.as_chunks().0
    }

    /// The value of a unit of a row and its byte of zero.
    #[inline(always)]
    pub(super) fn scale_and_zero(&self, row: usize) -> (f32, i32) {
        self.scales.get(row).copied().unwrap_or_default()
    }
}

/// Writes the numbers in units of a 255th of their range. Returns the unit and the byte of zero.
#[inline(always)]
fn quantize(numbers: &[f32], bytes: &mut [u8]) -> (f32, i32) {
    // Zero has a byte of its own, so it is part of the range.
    let low = fold(numbers, 0.0, |low, x| if x < low { x } else { low });
    let high = fold(numbers, 0.0, |high, x| if x > high { x } else { high });
    let unit = (high - low) / 255.0;
    let inverse = if unit > 0.0 { 1.0 / unit } else { 0.0 };
    let zero = -low * inverse + ROUND - ROUND;
    for (byte, &number) in bytes.iter_mut().zip(numbers) {
        let units = (number * inverse + zero).clamp(0.0, 255.0) + ROUND;
        *byte = units.to_bits() as u8;
    }
    (unit, zero as i32)
}
