//! Maps and sets by ids.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasherDefault, Hasher},
};

/// A map by ids of documents or points. A search makes many of hundreds of entries.
pub(crate) type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;
/// A set of ids of documents or points.
pub(crate) type IdSet<K> = HashSet<K, BuildHasherDefault<IdHasher>>;

/// Hashes ids. Clients choose none of them, and they are random for the most part: ids of points are digests, those of
/// documents end in random bits. So a multiplication suffices, after which every bit of an id has changed the upper ones.
#[derive(Debug, Default)]
pub(crate) struct IdHasher(u64);

/// 2⁶⁴ divided by the golden ratio, as in Fibonacci hashing (Knuth, The Art of Computer Programming, volume 3, 6.4).
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        for byte in rest {
            self.write_u64((*byte).into());
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(26) ^ word).wrapping_mul(FACTOR);
    }

    /// The same for all ids.
    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        // Tables take the lowest bits, which a multiplication mixes least.
        self.0 ^ (self.0 >> 32)
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher;

    use lkr_domain::{DocId, Layer, PointId};

    use super::*;

    /// The places of these hashes in a table: none may have much more than its share.
    fn assert_even(hashes: impl Iterator<Item = u64>) {
        let mut places = [0; 64];
        let mut count = 0;
        for hash in hashes {
            places[(hash % 64) as usize] += 1;
            count += 1;
        }
        let (most, share) = (places.iter().max().unwrap(), count / 64);
        assert!(*most < share * 3 / 2, "{most} of {count} in one of 64 places");
    }

    #[test]
    fn ids_that_follow_one_another_are_spread_evenly() {
        let hasher = BuildHasherDefault::<IdHasher>::default();
        let document = DocId::new();
        assert_even((0..20_000).map(|_| hasher.hash_one(DocId::new())));
        assert_even((0..20_000).map(|n| hasher.hash_one(PointId::derive(document, 1, Layer::Chunks, n))));
    }
}
