use std::mem;

use bytemuck::Pod;

use super::{ByteStep, STEP_TERMS, units_of_one};
use crate::kernels::fold;
use crate::product::Rows;
use crate::tiles::{RowSteps, Tiles};

/// 1.5 · 2²³: adding it leaves a rounded integer in the lowest bits.
const ROUND: f32 = 12_582_912.0;

/// The terms of a row between checks of its end, in the form that a kernel reads.
pub(super) trait RowStep: Pod + Default {
    /// The step with these terms.
    fn of(bytes: [u8; STEP_TERMS]) -> Self;

    /// The rows in this form.
    fn tiles(rows: &ByteRows) -> &Tiles<Self>;

    /// The rows in this form, to be written.
    fn tiles_mut(rows: &mut ByteRows) -> &mut Tiles<Self>;
}

impl RowStep for ByteStep {
    #[inline(always)]
    fn of(bytes: [u8; STEP_TERMS]) -> Self {
        bytemuck::cast(bytes)
    }

    #[inline(always)]
    fn tiles(rows: &ByteRows) -> &Tiles<Self> {
        &rows.bytes
    }

    #[inline(always)]
    fn tiles_mut(rows: &mut ByteRows) -> &mut Tiles<Self> {
        &mut rows.bytes
    }
}

/// Terms that are widened to 16 bits, two side by side.
pub(super) type WordStep = [[u16; 2]; STEP_TERMS / 2];

impl RowStep for WordStep {
    #[inline(always)]
    fn of(bytes: [u8; STEP_TERMS]) -> Self {
        bytemuck::cast(bytes.map(u16::from))
    }

    #[inline(always)]
    fn tiles(rows: &ByteRows) -> &Tiles<Self> {
        &rows.words
    }

    #[inline(always)]
    fn tiles_mut(rows: &mut ByteRows) -> &mut Tiles<Self> {
        &mut rows.words
    }
}

/// Rows of numbers as bytes, each with its own scale, in the form that the kernel of the last product reads.
#[derive(Debug, Default)]
pub(crate) struct ByteRows {
    bytes: Tiles<ByteStep>,
    words: Tiles<WordStep>,
    /// The value of a unit and the byte of zero, by row.
    scales: Vec<(f32, i32)>,
}

impl ByteRows {
    /// Replaces the rows by the first `depth` numbers of these, in tiles of at most `max_height` rows.
    #[inline(always)]
    pub(super) fn quantize<S: RowStep>(&mut self, rows: Rows<'_>, depth: usize, max_height: usize) {
        let mut scales = mem::take(&mut self.scales);
        scales.clear();
        S::tiles_mut(self).fill(
            rows,
            (depth, depth.div_ceil(STEP_TERMS)),
            max_height,
            #[inline(always)]
            |numbers, steps| scales.push(quantize(numbers, steps)),
        );
        self.scales = scales;
    }

    /// The steps of the tile of `HEIGHT` rows from `first` on.
    #[inline(always)]
    pub(super) fn steps_of<S: RowStep, const HEIGHT: usize>(&self, first: usize) -> &[[S; HEIGHT]] {
        S::tiles(self).steps_of(first)
    }

    /// The value of a unit of a row and its byte of zero.
    #[inline(always)]
    pub(super) fn scale_and_zero(&self, row: usize) -> (f32, i32) {
        self.scales.get(row).copied().unwrap_or_default()
    }
}

/// Writes the numbers in units of a 255th of their range. Returns the unit and the byte of zero.
#[inline(always)]
fn quantize<S: RowStep>(numbers: &[f32], mut steps: RowSteps<'_, S>) -> (f32, i32) {
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
    for (numbers, step) in whole.iter().zip(steps.by_ref()) {
        *step = S::of(numbers.map(byte));
    }
    if let Some(step) = steps.next() {
        // What is behind a row is multiplied by zeros.
        let mut bytes = [0; STEP_TERMS];
        bytes.iter_mut().zip(last).for_each(|(place, &number)| *place = byte(number));
        *step = S::of(bytes);
    }
    (unit, zero as i32)
}
