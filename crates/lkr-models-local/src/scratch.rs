//! Buffers that the layers reuse.

use std::sync::{Mutex, PoisonError};

use crate::attention::AttentionScratch;
use crate::linear::InputBuffers;

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
    /// The inputs of a linear layer in the format of its weights.
    pub(crate) inputs: InputBuffers,
}

/// The most numbers in the buffers of a batch that are kept for the next one: 8 MiB. Those of more are freed.
const MOST_KEPT: usize = 2 << 20;

impl Scratch {
    /// The numbers for which the buffers have memory, without those of one head.
    fn capacity(&self) -> usize {
        [&self.normed, &self.qkv, &self.context, &self.out, &self.wide].map(Vec::capacity).iter().sum()
    }
}

/// Buffers of batches that have ended: the memory of fresh ones would have to be mapped and cleared again for each batch.
#[derive(Debug, Default)]
pub(crate) struct ScratchPool(Mutex<Vec<Scratch>>);

impl ScratchPool {
    /// Calls `body` with buffers of an earlier batch if there are some that no other thread uses.
    pub(crate) fn with<T>(&self, body: impl FnOnce(&mut Scratch) -> T) -> T {
        // No operation leaves the list in an inconsistent state.
        let pool = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = pool().pop();
        let mut scratch = kept.unwrap_or_default();
        let result = body(&mut scratch);
        if scratch.capacity() <= MOST_KEPT {
            pool().push(scratch);
        }
        result
    }
}

/// The start of a buffer, grown to `len` numbers with unspecified values.
pub(crate) fn sized(buffer: &mut Vec<f32>, len: usize) -> &mut [f32] {
    if buffer.len() < len {
        buffer.resize(len, 0.0);
    }
    buffer.get_mut(..len).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_kept_unless_they_are_large() {
        let pool = ScratchPool::default();
        let capacity = || pool.with(|scratch| scratch.capacity());
        pool.with(|scratch| sized(&mut scratch.qkv, 1000).fill(1.0));
        assert!(capacity() >= 1000);
        // Two at the same time have buffers of their own.
        assert_eq!(pool.with(|_| capacity()), 0);
        assert_eq!(pool.0.lock().unwrap().len(), 2);
        let large = ScratchPool::default();
        large.with(|scratch| scratch.wide.reserve_exact(MOST_KEPT + 1));
        assert!(large.0.lock().unwrap().is_empty());
    }
}
