/// Numbers as of chance, the same in each run: xorshift64.
#[derive(Debug, Clone)]
pub(super) struct XorShift64(u64);

impl XorShift64 {
    /// Those that begin with a seed; all seeds are good.
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.max(1))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Between -1 and 1.
    pub(super) fn around_zero(&mut self) -> f32 {
        // The upper 24 bits are what a f32 holds exactly.
        (self.next() >> 40) as f32 / 8_388_608.0 - 1.0
    }
}
