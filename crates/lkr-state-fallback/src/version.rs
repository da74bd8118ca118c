//! The versions that callers see.
//!
//! A version of the remote store is shifted by [`LOCAL_BITS`]. What this process writes on its own gets the version that
//! the remote store gave last, with a count in the lower bits. So a version of this process never equals one of the remote
//! store, is larger than all earlier ones of its key, and smaller than the one that the remote store gives next.

use lkr_state::{Error, ErrorKind, Result};

/// The bits of the local count. It starts again after 16 million writes, long after the versions that it gave then were
/// replaced. 40 bits remain for the remote store, which are 1,000 writes a second for 34 years.
const LOCAL_BITS: u32 = 24;

const LOCAL_MASK: u64 = (1 << LOCAL_BITS) - 1;

/// The version that callers see for a version of the remote store.
///
/// # Errors
/// `Corrupt` if the remote store gives a version above 2^40.
pub(crate) fn shown(remote: u64) -> Result<u64> {
    let shifted = remote << LOCAL_BITS;
    if shifted >> LOCAL_BITS == remote {
        return Ok(shifted);
    }
    Err(Error::new(ErrorKind::Corrupt, "read version", format!("the version {remote} is above 2^40")))
}

/// The remote store's version of a version that callers see; `None` if this process gave it.
pub(crate) const fn remote(shown: u64) -> Option<u64> {
    if shown & LOCAL_MASK == 0 { Some(shown >> LOCAL_BITS) } else { None }
}

/// Gives local versions.
#[derive(Debug, Default)]
pub(crate) struct LocalVersions {
    /// The largest version seen, without the local count.
    largest: u64,
    count: u64,
}

impl LocalVersions {
    /// Notes a version that callers see. The next local ones are different from it.
    pub(crate) fn note(&mut self, shown: u64) {
        self.largest = self.largest.max(shown & !LOCAL_MASK);
        self.count = self.count.max(shown & LOCAL_MASK);
    }

    /// A version for a record that had the version `before`.
    pub(crate) fn next(&mut self, before: Option<u64>) -> u64 {
        self.count = if self.count == LOCAL_MASK { 1 } else { self.count + 1 };
        before.map_or(self.largest, |before| before & !LOCAL_MASK) | self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_versions_are_between_those_of_the_remote_store() {
        let mut versions = LocalVersions::default();
        for remote_version in [0, 1, 7, (1 << 40) - 2] {
            let before = shown(remote_version).unwrap();
            versions.note(before);
            let after = shown(remote_version + 1).unwrap();
            let local = [versions.next(None), versions.next(Some(before)), versions.next(Some(before + 5))];
            for version in local {
                assert!(before < version && version < after, "{before} {version} {after}");
                assert_eq!(remote(version), None);
            }
            assert!(local.is_sorted() && local[0] != local[1]);
            assert_eq!(remote(before), Some(remote_version));
        }
        assert_eq!(shown(1 << 40).unwrap_err().kind(), ErrorKind::Corrupt);
    }

    #[test]
    fn count_starts_again_without_touching_the_remote_part() {
        let mut versions = LocalVersions { largest: 1 << LOCAL_BITS, count: LOCAL_MASK - 1 };
        assert_eq!(versions.next(None), (2 << LOCAL_BITS) - 1);
        assert_eq!(versions.next(None), (1 << LOCAL_BITS) + 1);
    }
}
