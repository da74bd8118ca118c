use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A worker may take this many times its processor time. Workers compete with searches, which have a higher priority, and with
/// ingestion, which may have several threads for each of theirs. Chosen, not measured. See docs/studies.md#sandbox-limits.
const WALL_FACTOR: u32 = 16;

/// The limits of extracting one file. See docs/studies.md#sandbox-limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Processor time of the worker and the processes that it starts, without OCR. Time in which they wait, for example
    /// because the machine is busy, does not count; a much longer limit of wall-clock time is for parsers that hang.
    pub time: Duration,
    /// Additional processor time for OCR; zero without OCR. Files with OCR never use all of the concurrency, so that
    /// other files are not blocked.
    #[serde(rename = "pictures")]
    pub ocr_time: Duration,
    /// Resident memory in bytes.
    pub resident: u64,
    /// Address space in bytes.
    pub address_space: u64,
    /// Bytes that the worker may write.
    pub output: u64,
    /// Open files.
    pub files: u64,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: u64 = 1024 * 1024;
        Self {
            time: Duration::from_secs(16),
            ocr_time: Duration::ZERO,
            resident: 512 * MIB,
            address_space: 2048 * MIB,
            output: 128 * MIB,
            files: 64,
        }
    }
}

impl Limits {
    /// The processor time after which a parser should return what it has, early enough to write it.
    pub(crate) fn soft(&self) -> Duration {
        self.time.mul_f32(0.75)
    }

    /// The processor time after which the worker is killed.
    pub(crate) fn hard(&self) -> Duration {
        self.time.saturating_add(self.ocr_time)
    }

    /// The wall-clock time after which the worker is killed.
    pub(crate) fn wall(&self) -> Duration {
        self.hard().saturating_mul(WALL_FACTOR)
    }
}
