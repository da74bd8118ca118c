//! Fingerprints of live documents in memory, to find those that are near.

use std::collections::{HashMap, HashSet};

use lkr_domain::DocId;
use pulp::Arch;

/// The fingerprints of documents. Looking one up looks at all of them: at a million that takes less than a
/// thousandth of a second, whatever the distance asked for, which no index over 64 bits does for long distances.
#[derive(Debug, Default)]
pub struct Near {
    bits: Vec<u64>,
    documents: Vec<DocId>,
    places: HashMap<DocId, usize>,
    /// By block: a document than which none in it is older.
    oldest: Vec<DocId>,
}

/// How many fingerprints are looked at before the nearest of them counts.
const BLOCK: usize = if cfg!(test) { 8 } else { 4_096 };

impl Near {
    /// Puts a document in, or gives it other bits.
    pub fn insert(&mut self, document: DocId, bits: u64) {
        match self.places.get(&document).and_then(|&place| self.bits.get_mut(place)) {
            Some(place) => *place = bits,
            None => {
                self.places.insert(document, self.bits.len());
                self.lies(document, self.bits.len());
                self.bits.push(bits);
                self.documents.push(document);
            }
        }
    }

    /// Whether a document is in.
    #[must_use]
    pub fn contains(&self, document: DocId) -> bool {
        self.places.contains_key(&document)
    }

    /// Takes a document out; nothing where it is not in.
    pub fn remove(&mut self, document: DocId) {
        let Some(place) = self.places.remove(&document) else { return };
        self.bits.swap_remove(place);
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
        let mut best: Option<(u32, DocId)> = None;
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
        best.map(|(distance, document)| (document, distance))
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

    /// Any, or such that many are as near.
    fn some_bits() -> impl Strategy<Value = u64> {
        prop_oneof![any::<u64>(), 0u64..4]
    }

    proptest! {
        #[test]
        fn finds_what_a_walk_finds(
            steps in prop::collection::vec((0u8..40, some_bits(), prop::bool::weighted(0.3)), 0..200),
            asked in some_bits(),
            threshold in 0u32..=64,
        ) {
            let ids: Vec<DocId> = (0..40).map(|_| DocId::new()).collect();
            let (mut near, mut model) = (Near::default(), HashMap::new());
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
