//! The right operand of a product, arranged for the kernels.

use pulp::{Arch, Simd, WithSimd};

/// A matrix with `depth` rows, in panels of as many columns as a kernel computes at a time. Within a panel, the columns of a row
/// are side by side. The last panel is filled with zeros.
#[derive(Debug, Default)]
pub(crate) struct Panels {
    numbers: Vec<f32>,
    depth: usize,
    columns: usize,
    width: usize,
}

impl Panels {
    /// The panels of a matrix with these columns, each with `depth` numbers.
    pub(crate) fn of_columns<'a>(
        arch: Arch,
        depth: usize,
        columns: impl ExactSizeIterator<Item = &'a [f32]>,
    ) -> Self {
        let mut panels = Self::default();
        panels.set_columns(arch, depth, columns);
        panels
    }

    /// Replaces the matrix by one with these columns.
    pub(crate) fn set_columns<'a>(
        &mut self,
        arch: Arch,
        depth: usize,
        columns: impl ExactSizeIterator<Item = &'a [f32]>,
    ) {
        self.reset(arch, depth, columns.len());
        for (column, numbers) in columns.enumerate() {
            let panel = self.numbers.get_mut(column / self.width * self.width * depth..).unwrap_or_default();
            let places = panel.iter_mut().skip(column % self.width).step_by(self.width);
            places.zip(numbers).for_each(|(place, &number)| *place = number);
        }
    }

    /// Replaces the matrix by one with these rows, each with `columns` numbers.
    pub(crate) fn set_rows<'a>(
        &mut self,
        arch: Arch,
        columns: usize,
        rows: impl ExactSizeIterator<Item = &'a [f32]>,
    ) {
        let depth = rows.len();
        self.reset(arch, depth, columns);
        for (row, numbers) in rows.enumerate() {
            let panels = self.numbers.chunks_exact_mut((self.width * depth).max(1));
            for (panel, part) in panels.zip(numbers.chunks(self.width)) {
                let places = panel.iter_mut().skip(row * self.width);
                places.zip(part).for_each(|(place, &number)| *place = number);
            }
        }
    }

    /// Changes the shape; all numbers are zero.
    fn reset(&mut self, arch: Arch, depth: usize, columns: usize) {
        let width = PANEL_VECTORS * lanes(arch);
        (self.depth, self.columns, self.width) = (depth, columns, width);
        self.numbers.clear();
        self.numbers.resize(columns.next_multiple_of(width) * depth, 0.0);
    }

    /// The number of rows.
    pub(crate) const fn depth(&self) -> usize {
        self.depth
    }

    /// The number of columns.
    pub(crate) const fn columns(&self) -> usize {
        self.columns
    }

    /// The number of columns of a panel.
    pub(crate) const fn width(&self) -> usize {
        self.width
    }

    /// The panels from left to right.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[f32]> {
        self.numbers.chunks_exact((self.width * self.depth).max(1))
    }
}

/// How many vectors of the processor a row of a panel has.
pub(crate) const PANEL_VECTORS: usize = 2;

/// The number of `f32` in a vector of the processor.
fn lanes(arch: Arch) -> usize {
    struct Lanes;

    impl WithSimd for Lanes {
        type Output = usize;

        fn with_simd<S: Simd>(self, _: S) -> usize {
            S::F32_LANES
        }
    }

    arch.dispatch(Lanes)
}
