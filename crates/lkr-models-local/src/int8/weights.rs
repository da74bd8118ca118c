use super::{InstructionSet, STEP_TERMS, units_of_one};

/// The weights of a linear layer as signed bytes, in panels of as many columns as a kernel computes at a time.
///
/// Within a panel, as many terms of each column are side by side as the kernel multiplies together. Rows and columns are filled up with zeros.
#[derive(Debug)]
pub(crate) struct ByteWeights {
    instruction_set: InstructionSet,
    bytes: Vec<i8>,
    depth: usize,
    columns: usize,
    /// The value of a unit, by column.
    scales: Vec<f32>,
    /// The sum of the bytes, by column.
    sums: Vec<i32>,
}

/// A panel of weights.
#[derive(Debug, Clone, Copy)]
pub(super) struct BytePanel<'a> {
    pub(super) bytes: &'a [i8],
    pub(super) scales: &'a [f32],
    pub(super) sums: &'a [i32],
    pub(super) first_column: usize,
    /// The number of columns that are not filling.
    pub(super) columns: usize,
}

impl ByteWeights {
    /// The weights with these columns, each with `depth` numbers, which is at most [`super::MAX_DEPTH`].
    pub(crate) fn of_columns<'a>(
        instruction_set: InstructionSet,
        depth: usize,
        columns: impl ExactSizeIterator<Item = &'a [f32]>,
    ) -> Self {
        let (width, group) = (instruction_set.width(), instruction_set.group());
        let (count, filled) = (columns.len(), columns.len().next_multiple_of(width));
        let mut weights = Self {
            instruction_set,
            bytes: vec![0; filled * depth.next_multiple_of(STEP_TERMS)],
            depth,
            columns: count,
            scales: Vec::with_capacity(filled),
            sums: Vec::with_capacity(filled),
        };
        let panel_len = width * depth.next_multiple_of(STEP_TERMS);
        for (index, column) in columns.enumerate() {
            let start = index / width * panel_len + index % width * group;
            let groups = weights.bytes.get_mut(start..).unwrap_or_default().chunks_exact_mut(group);
            let (scale, sum) = quantize(column, groups.step_by(width).flatten());
            weights.scales.push(scale);
            weights.sums.push(sum);
        }
        weights.scales.resize(filled, 0.0);
        weights.sums.resize(filled, 0);
        weights
    }

    pub(super) const fn instruction_set(&self) -> InstructionSet {
        self.instruction_set
    }

    /// The number of terms of a sum.
    pub(crate) const fn depth(&self) -> usize {
        self.depth
    }

    /// The number of columns.
    pub(crate) const fn columns(&self) -> usize {
        self.columns
    }

    /// The panels from left to right.
    pub(super) fn panels(&self) -> impl Iterator<Item = BytePanel<'_>> {
        let width = self.instruction_set.width();
        let bytes = self.bytes.chunks_exact((width * self.depth.next_multiple_of(STEP_TERMS)).max(1));
        let parts = bytes.zip(self.scales.chunks_exact(width)).zip(self.sums.chunks_exact(width));
        parts.zip((0..).step_by(width)).map(move |(((bytes, scales), sums), first_column)| BytePanel {
            bytes,
            scales,
            sums,
            first_column,
            columns: width.min(self.columns - first_column),
        })
    }
}

/// Writes the numbers in units of a 127th of the largest one. Returns the unit and the sum of the bytes.
fn quantize<'a>(numbers: &[f32], bytes: impl Iterator<Item = &'a mut i8>) -> (f32, i32) {
    // A number that is not finite makes the unit so, and with it all results.
    let largest =
        numbers.iter().fold(0.0_f32, |largest, &x| if x.abs() <= largest { largest } else { x.abs() });
    let unit = largest / 127.0;
    let inverse = units_of_one(unit);
    let mut sum = 0;
    for (&number, byte) in numbers.iter().zip(bytes) {
        *byte = (number * inverse).round().clamp(-127.0, 127.0) as i8;
        sum += i32::from(*byte);
    }
    (unit, sum)
}
