use std::{
    env,
    time::{SystemTime, UNIX_EPOCH},
};

/// Reproducible random numbers (SplitMix64).
#[derive(Debug, Clone)]
pub struct Seed(u64);

impl Seed {
    /// The seed of `LKR_TEST_SEED`, otherwise of the clock. It is printed, so that a failure can be reproduced.
    ///
    /// # Panics
    /// If `LKR_TEST_SEED` is not a number.
    #[must_use]
    pub fn announce(test: &str) -> Self {
        let clock =
            || SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_nanos() as u64;
        let seed = env::var("LKR_TEST_SEED").map_or_else(|_| clock(), |seed| seed.parse().expect("a seed"));
        eprintln!("{test}: LKR_TEST_SEED={seed}");
        Self(seed)
    }

    /// Another sequence, for another thread.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self(self.draw())
    }

    /// The next of 64 random bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which must not be 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.draw() % end
    }
}
