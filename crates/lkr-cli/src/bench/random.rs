//! Pseudo-random numbers.

/// A reproducible pseudo-random number generator: xorshift64.
#[derive(Debug, Clone)]
pub(super) struct XorShift64(u64);

impl XorShift64 {
    /// A generator with a seed. Every seed is valid.
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.max(1))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number between -1 and 1.
    pub(super) fn around_zero(&mut self) -> f32 {
        // An f32 represents 24 bits exactly.
        (self.next() >> 40) as f32 / 8_388_608.0 - 1.0
    }
}
