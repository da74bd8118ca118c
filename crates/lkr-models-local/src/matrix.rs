//! Matrix views of slices, and their product.

use gemm::{Parallelism, gemm};
use lkr_models::Result;

use crate::error;

/// The shape of a matrix in a slice: element (r, c) is at `r * row_stride + c * column_stride`.
#[derive(Debug, Clone, Copy)]
struct Layout {
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl Layout {
    /// A row-major matrix that was checked to lie within `len` elements.
    fn new(len: usize, rows: usize, columns: usize, row_stride: usize) -> Result<Self> {
        let needed =
            rows.saturating_sub(1).checked_mul(row_stride).and_then(|start| start.checked_add(columns));
        if columns > row_stride || needed.is_none_or(|needed| rows > 0 && needed > len) {
            return Err(error::internal(format_args!(
                "matrix {rows} × {columns} does not fit {len} numbers"
            )));
        }
        Ok(Self { rows, columns, row_stride, column_stride: 1 })
    }
}

/// A read-only view of a matrix.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matrix<'a> {
    data: &'a [f32],
    layout: Layout,
}

impl<'a> Matrix<'a> {
    /// The row-major matrix at the start of `data`, whose rows begin `row_stride` numbers apart.
    pub(crate) fn new(data: &'a [f32], rows: usize, columns: usize, row_stride: usize) -> Result<Self> {
        Layout::new(data.len(), rows, columns, row_stride).map(|layout| Self { data, layout })
    }

    /// The transposed view.
    pub(crate) const fn transposed(self) -> Self {
        let Layout { rows, columns, row_stride, column_stride } = self.layout;
        let layout =
            Layout { rows: columns, columns: rows, row_stride: column_stride, column_stride: row_stride };
        Self { data: self.data, layout }
    }
}

/// A mutable view of a matrix.
#[derive(Debug)]
pub(crate) struct MatrixMut<'a> {
    data: &'a mut [f32],
    layout: Layout,
}

impl<'a> MatrixMut<'a> {
    /// The row-major matrix at the start of `data`, whose rows begin `row_stride` numbers apart.
    pub(crate) fn new(data: &'a mut [f32], rows: usize, columns: usize, row_stride: usize) -> Result<Self> {
        Layout::new(data.len(), rows, columns, row_stride).map(|layout| Self { data, layout })
    }
}

/// `out = a · b`, on the calling thread.
pub(crate) fn product(out: &mut MatrixMut<'_>, a: Matrix<'_>, b: Matrix<'_>) -> Result<()> {
    let (o, l, r) = (out.layout, a.layout, b.layout);
    if (o.rows, o.columns, l.columns) != (l.rows, r.columns, r.rows) {
        return Err(error::internal(format_args!("no product of {l:?} and {r:?} in {o:?}")));
    }
    #[expect(unsafe_code, reason = "the kernel takes pointers and strides")]
    // SAFETY: each layout was checked against its slice when the view was made, and the shapes fit; strides of slices
    // fit isize. `out` is borrowed mutably and so overlaps neither operand, and no two of its elements coincide,
    // because a row is no longer than the row stride. `read_dst` is false: `out` is only written.
    unsafe {
        gemm(
            o.rows,
            o.columns,
            l.columns,
            out.data.as_mut_ptr(),
            o.column_stride.cast_signed(),
            o.row_stride.cast_signed(),
            false,
            a.data.as_ptr(),
            l.column_stride.cast_signed(),
            l.row_stride.cast_signed(),
            b.data.as_ptr(),
            r.column_stride.cast_signed(),
            r.row_stride.cast_signed(),
            0.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
    Ok(())
}
