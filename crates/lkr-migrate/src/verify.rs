//! Comparing the target with the source by reading both back.
//!
//! Each item of the source is compared with the target's item of the same name, so the first difference can be named. If
//! the numbers are equal too, the target has nothing else.

pub(crate) mod blobs;
pub(crate) mod points;
pub(crate) mod records;

use crate::{Error, ErrorKind, Result, checksum::Checksum};

/// The checksums of both sides.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Checksums {
    pub(crate) source: Checksum,
    pub(crate) target: Checksum,
}

impl Checksums {
    /// The checksum that both sides have.
    pub(crate) fn equal(self, what: &str) -> Result<Checksum> {
        match self.source == self.target {
            true => Ok(self.source),
            false => {
                Err(different(format!("the checksums of {what} differ: {} and {}", self.source, self.target)))
            }
        }
    }
}

pub(crate) fn different(reason: String) -> Error {
    Error::new(ErrorKind::Different, "verify", reason)
}
