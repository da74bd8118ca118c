use lkr_domain::SparseVector;

use super::support::unit;

/// A pseudo-random number generator (SplitMix64), so that the cases are the same on every machine.
#[derive(Debug)]
pub(super) struct Rng(u64);

impl Rng {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub(super) const fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A number from 0 to 1.
    pub(super) fn unit_interval(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 24) as f32
    }

    /// A unit vector with a random direction.
    pub(super) fn dense(&mut self, dims: usize) -> Vec<f32> {
        unit((0..dims).map(|_| self.unit_interval() - 0.5).collect())
    }

    /// A sparse vector of at most `terms` terms below `vocabulary`, with weights from 0.1 to 2.1.
    pub(super) fn sparse(&mut self, terms: u64, vocabulary: u64) -> SparseVector {
        let mut weights = std::collections::BTreeMap::new();
        for _ in 0..terms {
            weights.insert(self.below(vocabulary) as u32, 0.1 + 2.0 * self.unit_interval());
        }
        SparseVector::from_pairs(weights)
    }
}
