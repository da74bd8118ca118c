//! Fingerprints of live documents in memory, to find those that are near.

use std::collections::{HashMap, HashSet};

use lkr_domain::DocId;
use pulp::Arch;

/// The fingerprints of documents. Looking one up looks at all of them: at a million that takes less than a
/// thousandth of a second, whatever the distance asked for, which no index over 64 bits does for long distances.
#[derive(Debug, Default)]
pub(crate) struct Near {
    bits: Vec<u64>,
    documents: Vec<DocId>,
    places: HashMap<DocId, usize>,
}

/// How many fingerprints are looked at before the nearest of them counts.
const BLOCK: usize = 4_096;

impl Near {
    /// Puts a document in, or gives it other bits.
    pub(crate) fn insert(&mut self, document: DocId, bits: u64) {
        match self.places.get(&document).and_then(|&place| self.bits.get_mut(place)) {
            Some(place) => *place = bits,
            None => {
                self.places.insert(document, self.bits.len());
                self.bits.push(bits);
                self.documents.push(document);
            }
        }
    }

    /// Whether a document is in.
    pub(crate) fn contains(&self, document: DocId) -> bool {
        self.places.contains_key(&document)
    }

    /// Takes a document out; nothing where it is not in.
    pub(crate) fn remove(&mut self, document: DocId) {
        let Some(place) = self.places.remove(&document) else { return };
        self.bits.swap_remove(place);
        self.documents.swap_remove(place);
        if let Some(moved) = self.documents.get(place) {
            self.places.insert(*moved, place);
        }
    }

    /// The nearest document, `passed` left out, whose bits differ in at most `threshold`, and in how many; of several
    /// the oldest.
    pub(crate) fn nearest(&self, bits: u64, threshold: u32, passed: &HashSet<DocId>) -> Option<(DocId, u32)> {
        let mut best: Option<(u32, DocId)> = None;
        for (block, documents) in self.bits.chunks(BLOCK).zip(self.documents.chunks(BLOCK)) {
            let limit = best.map_or(threshold, |(distance, _)| distance);
            if least(block, bits) > limit {
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

    proptest! {
        #[test]
        fn finds_what_a_walk_finds(
            steps in prop::collection::vec((0u8..40, any::<u64>(), prop::bool::weighted(0.3)), 0..200),
            asked in any::<u64>(),
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
