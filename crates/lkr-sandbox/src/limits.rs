use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What reading one file may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// By the clock, what is read beside it, such as pictures of pages, not counted.
    pub time: Duration,
    /// What is granted beyond that for text in pictures; nothing where none is read. Files that have it leave a turn
    /// to those that do not.
    pub pictures: Duration,
    /// Bytes of memory that are in use at once.
    pub resident: u64,
    /// Bytes of addresses.
    pub address_space: u64,
    /// Bytes that are written in all.
    pub output: u64,
    /// Files that are open at once.
    pub files: u64,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: u64 = 1024 * 1024;
        Self {
            time: Duration::from_secs(16),
            pictures: Duration::ZERO,
            resident: 512 * MIB,
            address_space: 2048 * MIB,
            output: 128 * MIB,
            files: 64,
        }
    }
}

impl Limits {
    /// When a parser that began now should answer what it has: early enough to write it down.
    pub(crate) fn soft(&self) -> Duration {
        self.time.mul_f32(0.75)
    }

    /// When it is ended.
    pub(crate) fn hard(&self) -> Duration {
        self.time + self.pictures
    }
}
