//! Fingerprints of live documents in memory, to find those that are near.

mod words;

use std::collections::{HashMap, HashSet};

use lkr_domain::DocId;
use pulp::Arch;

use words::{Best, Words};

/// The fingerprints of documents. Looking one up looks at all of them, as long as these are few; many are found by the
/// words that they are made of, as far as that is quicker.
#[derive(Debug, Default)]
pub struct SimhashIndex {
    bits: Vec<u64>,
    documents: Vec<DocId>,
    places: HashMap<DocId, usize>,
    /// By block: a document than which none in it is older.
    oldest: Vec<DocId>,
    /// By their words, once there are many.
    words: Option<Words>,
}

/// From how many on fingerprints are found by their words: looking at fewer costs next to nothing.
const MANY: usize = if cfg!(test) { 12 } else { 50_000 };

/// How many fingerprints are looked at before the nearest of them counts.
const BLOCK: usize = if cfg!(test) { 8 } else { 4_096 };

impl SimhashIndex {
    /// Puts a document in, or gives it other bits.
    pub fn insert(&mut self, document: DocId, bits: u64) {
        match self.places.get(&document).and_then(|&place| self.bits.get_mut(place)) {
            Some(place) => {
                let before = std::mem::replace(place, bits);
                if let Some(words) = &mut self.words {
                    words.remove(before, document);
                }
            }
            None => {
                self.places.insert(document, self.bits.len());
                self.lies(document, self.bits.len());
                self.bits.push(bits);
                self.documents.push(document);
            }
        }
        match &mut self.words {
            Some(words) => words.insert(bits, document),
            None if self.bits.len() >= MANY => self.words = Some(Words::new(self.all())),
            None => {}
        }
    }

    fn all(&self) -> impl Iterator<Item = (u64, DocId)> {
        self.bits.iter().copied().zip(self.documents.iter().copied())
    }

    /// Whether a document is in.
    #[must_use]
    pub fn contains(&self, document: DocId) -> bool {
        self.places.contains_key(&document)
    }

    /// Takes a document out; nothing where it is not in.
    pub fn remove(&mut self, document: DocId) {
        let Some(place) = self.places.remove(&document) else { return };
        let bits = self.bits.swap_remove(place);
        if let Some(words) = &mut self.words {
            words.remove(bits, document);
        }
        self.documents.swap_remove(place);
        self.oldest.truncate(self.bits.len().div_ceil(BLOCK));
        if let Some(&moved) = self.documents.get(place) {
            self.places.insert(moved, place);
            self.lies(moved, place);
        }
    }

    /// Takes note of where a document lies.
    fn lies(&mut self, document: DocId, place: usize) {
        match self.oldest.get_mut(place / BLOCK) {
            Some(oldest) => *oldest = document.min(*oldest),
            None => self.oldest.push(document),
        }
    }

    /// The nearest document, `passed` left out, whose bits differ in at most `threshold`, and in how many; of several
    /// the oldest.
    #[must_use]
    pub fn nearest(&self, bits: u64, threshold: u32, passed: &HashSet<DocId>) -> Option<(DocId, u32)> {
        let by_words =
            self.words.as_ref().map(|words| words.nearest(bits, threshold, passed, self.bits.len()));
        let best = match by_words {
            Some(Ok(best)) => best,
            Some(Err(best)) => self.scanned(bits, threshold, passed, best),
            None => self.scanned(bits, threshold, passed, None),
        };
        best.map(|(distance, document)| (document, distance))
    }

    /// The nearest of all and of `best`, which was found before.
    fn scanned(&self, bits: u64, threshold: u32, passed: &HashSet<DocId>, mut best: Best) -> Best {
        let blocks = self.bits.chunks(BLOCK).zip(self.documents.chunks(BLOCK)).zip(&self.oldest);
        for ((block, documents), oldest) in blocks {
            let limit = best.map_or(threshold, |(distance, _)| distance);
            let least = least(block, bits);
            // Many may be as near as the best so far; one look at each tells that none is older.
            if least > limit || best.is_some_and(|best| best <= (least, *oldest)) {
                continue;
            }
            for (other, document) in block.iter().zip(documents) {
                let found = ((other ^ bits).count_ones(), *document);
                if found.0 <= limit && best.is_none_or(|best| found < best) && !passed.contains(document) {
                    best = Some(found);
                }
            }
        }
        best
    }
}

/// The least distance of `bits` to any of a block.
fn least(block: &[u64], bits: u64) -> u32 {
    Arch::new().dispatch(|| {
        let distances = block.iter().map(|other| (other ^ bits).count_ones());
        distances.fold(u32::MAX, u32::min)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Any, such that many are as near, or such that they differ in a few bits of several words.
    fn some_bits() -> impl Strategy<Value = u64> {
        let few = prop::collection::vec(0u32..64, 0..14);
        let few = few.prop_map(|ones| ones.into_iter().fold(0, |bits, one| bits | 1 << one));
        prop_oneof![any::<u64>(), 0u64..4, few]
    }

    proptest! {
        #[test]
        fn finds_what_a_walk_finds(
            steps in prop::collection::vec((0u8..40, some_bits(), prop::bool::weighted(0.3)), 0..200),
            asked in some_bits(),
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
            let passed = HashSet::from([ids[0]]);
            let walked = model
                .iter()
                .filter(|(id, _)| !passed.contains(id))
                .map(|(id, bits)| ((bits ^ asked).count_ones(), *id))
                .filter(|(distance, _)| *distance <= threshold)
                .min();
            prop_assert_eq!(near.nearest(asked, threshold, &passed), walked.map(|(distance, id)| (id, distance)));
        }
    }
}
