use std::fmt;

use lkr_domain::hex;
use sha2::{Digest, Sha256};

/// A checksum of items in any order: the sum of their SHA-256, so two sides need not return them in the same order. It
/// finds accidents; it does not withstand somebody who chooses the items.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Checksum([u64; 4]);

impl Checksum {
    /// Adds an item by its digest.
    pub(crate) fn add(&mut self, digest: &ItemDigest) {
        let words = digest.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        for (sum, word) in self.0.iter_mut().zip(words) {
            *sum = sum.wrapping_add(word);
        }
    }
}

/// In lower-case hexadecimal.
impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|word| f.write_str(&hex(&word.to_le_bytes())))
    }
}

/// The SHA-256 of an item.
pub(crate) type ItemDigest = [u8; 32];

/// Hashes the fields of an item so that no two lists of fields have the same bytes.
#[derive(Debug, Default)]
pub(crate) struct ItemHasher(Sha256);

impl ItemHasher {
    /// Adds a field of any length.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }

    pub(crate) fn number(&mut self, number: u64) {
        self.0.update(number.to_le_bytes());
    }

    pub(crate) fn finish(self) -> ItemDigest {
        self.0.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checksum(items: &[&str]) -> String {
        let mut sum = Checksum::default();
        for item in items {
            let mut hasher = ItemHasher::default();
            hasher.bytes(item.as_bytes());
            sum.add(&hasher.finish());
        }
        sum.to_string()
    }

    #[test]
    fn checksum_ignores_the_order_and_counts_repetitions() {
        assert_eq!(checksum(&["a", "b", "c"]), checksum(&["c", "a", "b"]));
        assert_ne!(checksum(&["a", "b"]), checksum(&["a", "b", "b"]));
        assert_ne!(checksum(&["a", "b"]), checksum(&["ab"]));
        assert_eq!(checksum(&[]), "0".repeat(64));
    }
}
