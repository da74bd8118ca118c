//! Multi-index hashing (Norouzi, Punjani and Fleet 2012): fingerprints by each of their four 16-bit words.

use std::collections::{BTreeSet, HashSet};

use lkr_domain::DocId;
use pulp::Arch;

/// The words of a fingerprint.
const WORDS: usize = 4;
/// The fingerprints that a linear scan compares in the time of one bucket lookup. See docs/studies.md#near-duplicates.
const SCANNED: usize = if cfg!(test) { 0 } else { 32 };
/// The values of a word.
const BUCKETS: usize = 1 << u16::BITS;
/// The changes after which the buckets are rebuilt: this many, or one in `FEW_OF` of all fingerprints. See
/// docs/studies.md#near-duplicates.
const FEW: usize = if cfg!(test) { 5 } else { 2_048 };
const FEW_OF: usize = 64;
/// The most bits in which a word may differ from the looked-up one.
const MAX_RADIUS: u32 = 3;

/// Distinct fingerprints, each in a bucket for each of its words.
///
/// Two fingerprints that differ in at most 4·r + 3 bits have a word that differs in at most r bits. So all of them are in the
/// buckets within r bits of the words of the looked-up fingerprint.
#[derive(Debug)]
pub(super) struct WordIndex {
    /// The documents of each fingerprint, oldest first.
    owners: BTreeSet<(u64, DocId)>,
    /// For each word, the fingerprints at the last rebuild. Removed ones stay until the next.
    buckets: [Buckets; WORDS],
    /// The fingerprints added since.
    recent: Vec<u64>,
    /// The changes since.
    changes: usize,
}

/// Fingerprints by one of their words.
#[derive(Debug)]
struct Buckets {
    /// The start of each bucket in `bits`, and the end of the last one.
    begins: Vec<usize>,
    /// The fingerprints, bucket by bucket.
    bits: Vec<u64>,
}

/// The nearest document so far, preceded by the number of bits in which it differs.
pub(super) type Nearest = Option<(u32, DocId)>;

impl WordIndex {
    pub(super) fn new(all: impl Iterator<Item = (u64, DocId)>) -> Self {
        Self::of(all.collect())
    }

    fn of(owners: BTreeSet<(u64, DocId)>) -> Self {
        let mut distinct: Vec<u64> = owners.iter().map(|(bits, _)| *bits).collect();
        distinct.dedup();
        let buckets = std::array::from_fn(|at| Buckets::new(&distinct, at));
        Self { owners, buckets, recent: Vec::new(), changes: 0 }
    }

    pub(super) fn insert(&mut self, bits: u64, document: DocId) {
        if self.owners_of(bits).next().is_none() {
            self.recent.push(bits);
        }
        self.owners.insert((bits, document));
        self.changed();
    }

    pub(super) fn remove(&mut self, bits: u64, document: DocId) {
        self.owners.remove(&(bits, document));
        self.changed();
    }

    fn changed(&mut self) {
        self.changes += 1;
        if self.changes > FEW.max(self.owners.len() / FEW_OF) {
            *self = Self::of(std::mem::take(&mut self.owners));
        }
    }

    /// The nearest document within `threshold` that is not in `excluded`; of several, the oldest. Fails with the nearest so far
    /// if scanning all `count` fingerprints is quicker than continuing.
    pub(super) fn nearest(
        &self,
        bits: u64,
        threshold: u32,
        excluded: &HashSet<DocId>,
        count: usize,
    ) -> Result<Nearest, Nearest> {
        let mut best: Nearest = None;
        for radius in 0.. {
            let limit = best.map_or(threshold, |(distance, _)| distance);
            if radius > limit / WORDS as u32 {
                return Ok(best);
            }
            if radius > MAX_RADIUS || WORDS * within(radius) * SCANNED > count {
                return Err(best);
            }
            Arch::new().dispatch(|| self.search_radius(bits, radius, limit, excluded, &mut best));
        }
        Ok(best)
    }

    /// Compares the fingerprints with a word that differs in exactly `radius` bits, and the recent ones.
    #[inline(always)]
    fn search_radius(
        &self,
        bits: u64,
        radius: u32,
        mut limit: u32,
        excluded: &HashSet<DocId>,
        best: &mut Nearest,
    ) {
        let mut compare = |others: &[u64]| {
            // Mostly none is near enough; the minimum finds that out without a branch per fingerprint.
            if others.iter().fold(u32::MAX, |least, other| least.min((other ^ bits).count_ones())) > limit {
                return;
            }
            for other in others {
                let distance = (other ^ bits).count_ones();
                if distance > limit {
                    continue;
                }
                let Some(document) = self.owners_of(*other).find(|owner| !excluded.contains(owner)) else {
                    continue;
                };
                if best.is_none_or(|best| (distance, document) < best) {
                    *best = Some((distance, document));
                    limit = distance;
                }
            }
        };
        if radius == 0 {
            compare(&self.recent);
        }
        for (buckets, word) in self.buckets.iter().zip(words(bits)) {
            masks(radius).for_each(|mask| compare(buckets.of(word ^ mask)));
        }
    }

    fn owners_of(&self, bits: u64) -> impl Iterator<Item = DocId> {
        let first = (bits, DocId::from_bytes([0; 16]));
        let last = (bits, DocId::from_bytes([u8::MAX; 16]));
        self.owners.range(first..=last).map(|(_, document)| *document)
    }
}

impl Buckets {
    /// Sorts fingerprints by their word number `at`.
    fn new(all: &[u64], at: usize) -> Self {
        let word = |bits: u64| words(bits).get(at).copied().map_or(0, usize::from);
        // A counting sort: a comparison sort takes several times as long, and lookups wait for it.
        let mut begins = vec![0; BUCKETS + 1];
        for &each in all {
            if let Some(count) = begins.get_mut(word(each) + 1) {
                *count += 1;
            }
        }
        let mut end = 0;
        for begin in &mut begins {
            end += *begin;
            *begin = end;
        }
        let (mut next, mut bits) = (begins.clone(), vec![0; all.len()]);
        for &each in all {
            let slot = next.get_mut(word(each));
            if let Some((slot, free)) = slot.and_then(|slot| bits.get_mut(*slot).map(|free| (slot, free))) {
                *free = each;
                *slot += 1;
            }
        }
        Self { begins, bits }
    }

    #[inline(always)]
    fn of(&self, word: u16) -> &[u64] {
        let at = usize::from(word);
        let (begin, end) = (self.begins.get(at), self.begins.get(at + 1));
        begin.zip(end).and_then(|(&begin, &end)| self.bits.get(begin..end)).unwrap_or_default()
    }
}

/// The words of a fingerprint.
fn words(bits: u64) -> [u16; WORDS] {
    [bits as u16, (bits >> 16) as u16, (bits >> 32) as u16, (bits >> 48) as u16]
}

/// All words with `ones` bits set, in ascending order, by Gosper's hack.
fn masks(ones: u32) -> impl Iterator<Item = u16> {
    let first = (1_u32 << ones) - 1;
    let next = |&mask: &u32| {
        let lowest = mask & mask.wrapping_neg();
        let carried = mask.checked_add(lowest).filter(|_| lowest != 0)?;
        Some(carried | (((mask ^ carried) >> 2) / lowest))
    };
    std::iter::successors(Some(first), next).map_while(|mask| u16::try_from(mask).ok())
}

/// The number of words within `radius` bits of a word.
fn within(radius: u32) -> usize {
    let mut count = 1_usize;
    let mut sum = 1_usize;
    for bit in 0..radius as usize {
        count = count * (u16::BITS as usize - bit) / (bit + 1);
        sum += count;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_all_words_with_that_many_ones() {
        for ones in 0..=MAX_RADIUS {
            let expected: Vec<u16> = (0..=u16::MAX).filter(|word| word.count_ones() == ones).collect();
            assert_eq!(masks(ones).collect::<Vec<_>>(), expected);
        }
        assert_eq!([0, 1, 2, 3].map(within), [1, 17, 137, 697]);
    }
}
