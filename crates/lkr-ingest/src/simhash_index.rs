//! SimHash fingerprints in memory, searched by Hamming distance.

mod word_index;

use std::collections::{HashMap, HashSet};

use lkr_domain::DocId;
use pulp::Arch;

use word_index::{Nearest, WordIndex};

/// The SimHash fingerprints of documents. A lookup scans all of them while they are few; many are found by multi-index
/// hashing where that is quicker. See docs/studies.md#near-duplicates.
#[derive(Debug, Default)]
pub struct SimhashIndex {
    bits: Vec<u64>,
    documents: Vec<DocId>,
    /// The index of each document in `bits` and `documents`.
    positions: HashMap<DocId, usize>,
    /// The oldest document of each block.
    oldest: Vec<DocId>,
    /// Used once there are many.
    words: Option<WordIndex>,
}

/// The number of fingerprints from which they are indexed by their words: scanning fewer costs next to nothing. See
/// docs/studies.md#near-duplicates.
const MANY: usize = if cfg!(test) { 12 } else { 50_000 };

/// The fingerprints that are scanned together.
const BLOCK: usize = if cfg!(test) { 8 } else { 4_096 };

impl SimhashIndex {
    /// Adds a document, or changes its fingerprint.
    pub fn insert(&mut self, document: DocId, bits: u64) {
        match self.positions.get(&document).and_then(|&position| self.bits.get_mut(position)) {
            Some(position) => {
                let before = std::mem::replace(position, bits);
                if let Some(words) = &mut self.words {
                    words.remove(before, document);
                }
            }
            None => {
                self.positions.insert(document, self.bits.len());
                self.note_position(document, self.bits.len());
                self.bits.push(bits);
                self.documents.push(document);
            }
        }
        match &mut self.words {
            Some(words) => words.insert(bits, document),
            None if self.bits.len() >= MANY => self.words = Some(WordIndex::new(self.all())),
            None => {}
        }
    }

    fn all(&self) -> impl Iterator<Item = (u64, DocId)> {
        self.bits.iter().copied().zip(self.documents.iter().copied())
    }

    /// Whether the index contains a document.
    #[must_use]
    pub fn contains(&self, document: DocId) -> bool {
        self.positions.contains_key(&document)
    }

    /// Removes a document, if it is present.
    pub fn remove(&mut self, document: DocId) {
        let Some(position) = self.positions.remove(&document) else { return };
        let bits = self.bits.swap_remove(position);
        if let Some(words) = &mut self.words {
            words.remove(bits, document);
        }
        self.documents.swap_remove(position);
        self.oldest.truncate(self.bits.len().div_ceil(BLOCK));
        if let Some(&moved) = self.documents.get(position) {
            self.positions.insert(moved, position);
            self.note_position(moved, position);
        }
    }

    /// Updates the oldest document of the block at this position.
    fn note_position(&mut self, document: DocId, position: usize) {
        match self.oldest.get_mut(position / BLOCK) {
            Some(oldest) => *oldest = document.min(*oldest),
            None => self.oldest.push(document),
        }
    }

    /// The document whose fingerprint differs from `bits` in the fewest bits, at most `threshold`, and their number. Documents
    /// in `excluded` are skipped. Of equally near documents, the oldest.
    #[must_use]
    pub fn nearest(&self, bits: u64, threshold: u32, excluded: &HashSet<DocId>) -> Option<(DocId, u32)> {
        let from_words =
            self.words.as_ref().map(|words| words.nearest(bits, threshold, excluded, self.bits.len()));
        let best = match from_words {
            Some(Ok(best)) => best,
            Some(Err(best)) => self.scan(bits, threshold, excluded, best),
            None => self.scan(bits, threshold, excluded, None),
        };
        best.map(|(distance, document)| (document, distance))
    }

    /// The nearest of all fingerprints and `best`, which was found before.
    fn scan(&self, bits: u64, threshold: u32, excluded: &HashSet<DocId>, mut best: Nearest) -> Nearest {
        let blocks = self.bits.chunks(BLOCK).zip(self.documents.chunks(BLOCK)).zip(&self.oldest);
        for ((block, documents), oldest) in blocks {
            let limit = best.map_or(threshold, |(distance, _)| distance);
            let least = least_distance(block, bits);
            // Many may be as near as the best so far; skip a block without an older document.
            if least > limit || best.is_some_and(|best| best <= (least, *oldest)) {
                continue;
            }
            for (other, document) in block.iter().zip(documents) {
                let found = ((other ^ bits).count_ones(), *document);
                if found.0 <= limit && best.is_none_or(|best| found < best) && !excluded.contains(document) {
                    best = Some(found);
                }
            }
        }
        best
    }
}

/// The least Hamming distance of `bits` to a fingerprint of a block.
fn least_distance(block: &[u64], bits: u64) -> u32 {
    Arch::new().dispatch(|| {
        let distances = block.iter().map(|other| (other ^ bits).count_ones());
        distances.fold(u32::MAX, u32::min)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Arbitrary fingerprints, many equally near ones, and ones that differ in a few bits of several words.
    fn some_bits() -> impl Strategy<Value = u64> {
        let few = prop::collection::vec(0u32..64, 0..14);
        let few = few.prop_map(|ones| ones.into_iter().fold(0, |bits, one| bits | 1 << one));
        prop_oneof![any::<u64>(), 0u64..4, few]
    }

    proptest! {
        #[test]
        fn nearest_equals_a_linear_scan(
            steps in prop::collection::vec((0u8..40, some_bits(), prop::bool::weighted(0.3)), 0..200),
            query in some_bits(),
            threshold in 0u32..=64,
        ) {
            let ids: Vec<DocId> = (0..40).map(|_| DocId::new()).collect();
            let (mut near, mut model) = (SimhashIndex::default(), HashMap::new());
            for (at, bits, removes) in steps {
                let id = ids[usize::from(at)];
                if removes {
                    near.remove(id);
                    model.remove(&id);
                } else {
                    near.insert(id, bits);
                    model.insert(id, bits);
                }
            }
            let excluded = HashSet::from([ids[0]]);
            let scanned = model
                .iter()
                .filter(|(id, _)| !excluded.contains(id))
                .map(|(id, bits)| ((bits ^ query).count_ones(), *id))
                .filter(|(distance, _)| *distance <= threshold)
                .min();
            prop_assert_eq!(near.nearest(query, threshold, &excluded), scanned.map(|(distance, id)| (id, distance)));
        }
    }
}
