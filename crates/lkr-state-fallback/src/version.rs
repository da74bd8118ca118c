//! The versions that callers see.
//!
//! A version of the remote store is shifted by [`LOCAL_BITS`]. What this process writes on its own gets the next number after
//! all versions that it saw and gave, except those whose lower bits are zero. So a version of this process never equals one of
//! the remote store and is larger than all earlier ones. It is smaller than the one that the remote store gives next, unless
//! this process wrote more than two thousand records since it saw the last one and the remote store counts without gaps; then a
//! version may be smaller than an earlier one, and still differs from all.

use lkr_state::{Error, ErrorKind, Result};

/// The bits below a version of the remote store. 53 bits remain for it: its versions may be microseconds since 1970, until
/// the year 2255.
const LOCAL_BITS: u32 = 11;

const LOCAL_MASK: u64 = (1 << LOCAL_BITS) - 1;

/// The version that callers see for a version of the remote store.
///
/// # Errors
/// `Corrupt` if the remote store gives a version of 2^53 or more.
pub(crate) fn shown(remote: u64) -> Result<u64> {
    let shifted = remote << LOCAL_BITS;
    if shifted >> LOCAL_BITS == remote {
        return Ok(shifted);
    }
    Err(Error::new(ErrorKind::Corrupt, "read version", format!("the version {remote} is above 2^53")))
}

/// The remote store's version of a version that callers see; `None` if this process gave it.
pub(crate) const fn remote(shown: u64) -> Option<u64> {
    if shown & LOCAL_MASK == 0 { Some(shown >> LOCAL_BITS) } else { None }
}

/// Gives local versions.
#[derive(Debug, Default)]
pub(crate) struct LocalVersions {
    /// The largest version seen or given.
    last: u64,
}

impl LocalVersions {
    /// Notes a version that callers see. The next local ones are larger.
    pub(crate) fn note(&mut self, shown: u64) {
        self.last = self.last.max(shown);
    }

    /// A version for a record that had the version `before`.
    pub(crate) fn next(&mut self, before: Option<u64>) -> u64 {
        let next = self.last.max(before.unwrap_or_default()).saturating_add(1);
        self.last = if next & LOCAL_MASK == 0 { next.saturating_add(1) } else { next };
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_versions_are_between_those_of_the_remote_store() {
        let mut versions = LocalVersions::default();
        for remote_version in [0, 1, 7, 1_764_000_000_000_000, (1 << 53) - 2] {
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
        assert_eq!(shown(1 << 53).unwrap_err().kind(), ErrorKind::Corrupt);
    }

    #[test]
    fn many_local_versions_grow_and_equal_none_of_the_remote_store() {
        let mut versions = LocalVersions::default();
        versions.note(shown(7).unwrap());
        let mut before = shown(7).unwrap();
        for _ in 0..10_000 {
            let version = versions.next(Some(before));
            assert!(version > before);
            assert_eq!(remote(version), None);
            before = version;
        }
    }
}
