//! Buffers that the layers reuse.

use crate::attention::AttentionScratch;
use crate::int8::ByteRows;

/// The buffers of a batch.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// Normalised rows.
    pub(crate) normed: Vec<f32>,
    /// Queries, keys and values side by side: three widths for each token.
    pub(crate) qkv: Vec<f32>,
    /// The output of the heads.
    pub(crate) context: Vec<f32>,
    /// The output of a linear layer before its residual.
    pub(crate) out: Vec<f32>,
    pub(crate) wide: Vec<f32>,
    pub(crate) attention: AttentionScratch,
    /// The inputs of a linear layer as bytes.
    pub(crate) bytes: ByteRows,
}

/// The start of a buffer, grown to `len` numbers with unspecified values.
pub(crate) fn sized(buffer: &mut Vec<f32>, len: usize) -> &mut [f32] {
    if buffer.len() < len {
        buffer.resize(len, 0.0);
    }
    buffer.get_mut(..len).unwrap_or_default()
}
