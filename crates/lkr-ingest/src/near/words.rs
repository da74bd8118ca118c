//! Fingerprints by the words of 16 bits that they are made of (multi-index hashing: Norouzi, Punjani and Fleet, 2012).

use std::collections::{BTreeSet, HashSet};

use lkr_domain::DocId;
use pulp::Arch;

/// How many words a fingerprint has.
const WORDS: usize = 4;
/// How many fingerprints are looked at one after another in the time that it takes to look one bucket up.
const SCANNED: usize = if cfg!(test) { 0 } else { 32 };
/// How many values a word has.
const BUCKETS: usize = 1 << u16::BITS;
/// How much may have changed before the buckets are made anew: so many, or such a part of all.
const FEW: usize = if cfg!(test) { 5 } else { 2_048 };
const FEW_OF: usize = 64;
/// How far words are looked for at the most.
const MAX_RADIUS: u32 = 3;

/// Distinct fingerprints, each in a bucket for each of its words.
///
/// Two fingerprints that differ in at most 4·r + 3 bits have a word that differs in at most r, so that all of them are
/// found in the buckets within r of the words that are looked for.
#[derive(Debug)]
pub(super) struct Words {
    /// The documents of each fingerprint, the oldest first.
    owners: BTreeSet<(u64, DocId)>,
    /// By word: what there was when they were made. What has no owner any more stays until they are made anew.
    buckets: [Buckets; WORDS],
    /// What came since.
    recent: Vec<u64>,
    /// How much changed since.
    changes: usize,
}

/// Fingerprints by one of their words.
#[derive(Debug)]
struct Buckets {
    /// Where each bucket begins, and behind the last where that ends.
    begins: Vec<usize>,
    /// Bucket by bucket.
    bits: Vec<u64>,
}

/// The nearest so far: in how many bits it differs, and its document.
pub(super) type Best = Option<(u32, DocId)>;

impl Words {
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

    /// The nearest document within `threshold`, `passed` left out, and of several the oldest. As `Err` what was found so
    /// far, where looking at all of `count` fingerprints is quicker than going on.
    pub(super) fn nearest(
        &self,
        bits: u64,
        threshold: u32,
        passed: &HashSet<DocId>,
        count: usize,
    ) -> Result<Best, Best> {
        let mut best: Best = None;
        for radius in 0.. {
            let limit = best.map_or(threshold, |(distance, _)| distance);
            if radius > limit / WORDS as u32 {
                return Ok(best);
            }
            if radius > MAX_RADIUS || WORDS * within(radius) * SCANNED > count {
                return Err(best);
            }
            Arch::new().dispatch(|| self.look(bits, radius, limit, passed, &mut best));
        }
        Ok(best)
    }

    /// Looks at the fingerprints one of whose words differs in just `radius` bits, and at the recent ones.
    #[inline(always)]
    fn look(&self, bits: u64, radius: u32, mut limit: u32, passed: &HashSet<DocId>, best: &mut Best) {
        let mut look_at = |others: &[u64]| {
            // Nearly always none is near enough, which is told without a branch for each.
            if others.iter().fold(u32::MAX, |least, other| least.min((other ^ bits).count_ones())) > limit {
                return;
            }
            for other in others {
                let distance = (other ^ bits).count_ones();
                if distance > limit {
                    continue;
                }
                let Some(document) = self.owners_of(*other).find(|owner| !passed.contains(owner)) else {
                    continue;
                };
                if best.is_none_or(|best| (distance, document) < best) {
                    *best = Some((distance, document));
                    limit = distance;
                }
            }
        };
        if radius == 0 {
            look_at(&self.recent);
        }
        for (buckets, word) in self.buckets.iter().zip(words(bits)) {
            masks(radius).for_each(|mask| look_at(buckets.of(word ^ mask)));
        }
    }

    fn owners_of(&self, bits: u64) -> impl Iterator<Item = DocId> {
        let first = (bits, DocId::from_bytes([0; 16]));
        let last = (bits, DocId::from_bytes([u8::MAX; 16]));
        self.owners.range(first..=last).map(|(_, document)| *document)
    }
}

impl Buckets {
    /// By the word at place `at`.
    fn new(all: &[u64], at: usize) -> Self {
        let word = |bits: u64| words(bits).get(at).copied().map_or(0, usize::from);
        // By counting: sorting would take several times as long, and whoever comes meanwhile waits.
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
            let place = next.get_mut(word(each));
            if let Some((place, free)) =
                place.and_then(|place| bits.get_mut(*place).map(|free| (place, free)))
            {
                *free = each;
                *place += 1;
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

/// All words with `ones` bits, in growing order: each next one moves the lowest run of ones up by a place and its rest
/// down (Gosper).
fn masks(ones: u32) -> impl Iterator<Item = u16> {
    let first = (1_u32 << ones) - 1;
    let next = |&mask: &u32| {
        let lowest = mask & mask.wrapping_neg();
        let carried = mask.checked_add(lowest).filter(|_| lowest != 0)?;
        Some(carried | (((mask ^ carried) >> 2) / lowest))
    };
    std::iter::successors(Some(first), next).map_while(|mask| u16::try_from(mask).ok())
}

/// How many words differ from one in at most `radius` bits.
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
    fn masks_are_all_words_with_so_many_ones() {
        for ones in 0..=MAX_RADIUS {
            let expected: Vec<u16> = (0..=u16::MAX).filter(|word| word.count_ones() == ones).collect();
            assert_eq!(masks(ones).collect::<Vec<_>>(), expected);
        }
        assert_eq!([0, 1, 2, 3].map(within), [1, 17, 137, 697]);
    }
}
