//! Which candidates fill a page of results. Pure functions over sorted candidates.

use lkr_domain::{DocId, PointId};

use crate::{
    GroupBy,
    candidate::Candidate,
    ids::{IdMap, IdSet},
};

/// The candidates that fill a page of `top_k` results, in order: the best chunks, or the best chunk of each document.
pub(crate) fn page(sorted: &[Candidate], group_by: GroupBy, top_k: usize) -> Vec<Candidate> {
    match group_by {
        GroupBy::Chunk => capped(sorted, top_k),
        GroupBy::Document => {
            let mut seen = IdSet::default();
            let first = sorted.iter().filter(|candidate| seen.insert(candidate.origin.doc_id));
            first.take(top_k).cloned().collect()
        }
    }
}

/// How many of `count` results may belong to one document while there are others: two thirds, rounded up.
/// See docs/studies.md#document-cap.
const fn document_cap(count: usize) -> usize {
    (2 * count).div_ceil(3)
}

/// The best `count` candidates under the document cap, in order.
///
/// Candidates are picked one by one, each time the best whose document has room. So a larger count contains all
/// candidates of a smaller one, and the largest contains all.
fn capped(sorted: &[Candidate], count: usize) -> Vec<Candidate> {
    let mut remaining: Vec<usize> = (0..sorted.len()).collect();
    let mut per_document: IdMap<DocId, usize> = IdMap::default();
    let mut picked = Vec::new();
    while picked.len() < count && !remaining.is_empty() {
        let cap = document_cap(picked.len() + 1);
        let has_room = |&at: &usize| {
            let used =
                |candidate: &Candidate| per_document.get(&candidate.origin.doc_id).copied().unwrap_or(0);
            sorted.get(at).is_some_and(|candidate| used(candidate) < cap)
        };
        let at = remaining.remove(remaining.iter().position(has_room).unwrap_or(0));
        if let Some(candidate) = sorted.get(at) {
            *per_document.entry(candidate.origin.doc_id).or_default() += 1;
        }
        picked.push(at);
    }
    picked.sort_unstable();
    picked.into_iter().filter_map(|at| sorted.get(at).cloned()).collect()
}

/// The document, with its revision, that exceeds the document cap of a page of `top_k` chunks because `sorted` has too
/// few others.
pub(crate) fn dominant_document(sorted: &[Candidate], top_k: usize) -> Option<(DocId, u64)> {
    let page = capped(sorted, top_k);
    let mut counts: IdMap<(DocId, u64), usize> = IdMap::default();
    for Candidate { origin, .. } in &page {
        *counts.entry((origin.doc_id, origin.revision)).or_default() += 1;
    }
    let cap = document_cap(page.len());
    counts.into_iter().find_map(|(document, count)| (count > cap).then_some(document))
}

/// The candidates whose chunks are read: those of the present page, the best `depth`, and those named in `also`.
pub(crate) fn shortlist(
    sorted: &[Candidate],
    (group_by, top_k): (GroupBy, usize),
    depth: usize,
    also: &[PointId],
) -> Vec<Candidate> {
    let page = page(sorted, group_by, top_k).into_iter().map(|candidate| candidate.id);
    let best = capped(sorted, depth).into_iter().map(|candidate| candidate.id);
    let selected: IdSet<PointId> = page.chain(best).chain(also.iter().copied()).collect();
    sorted.iter().filter(|candidate| selected.contains(&candidate.id)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;
    use crate::candidate::tests::{candidate, ids, sorted_candidates};

    fn documents(candidates: &[Candidate]) -> Vec<u8> {
        candidates.iter().map(|candidate| candidate.origin.doc_id.as_bytes()[0]).collect()
    }

    #[test]
    fn page_of_chunks_reserves_a_third_for_other_documents() {
        let mut all: Vec<_> = (0..20).map(|n| candidate(n, 1, 0.05)).collect();
        all.extend((20..24).map(|n| candidate(n, 2, 0.01)));
        assert_eq!(documents(&capped(&all, 3)), [1, 1, 2]);
        assert_eq!(documents(&capped(&all, 10)), [1, 1, 1, 1, 1, 1, 1, 2, 2, 2]);
        assert_eq!(documents(&capped(&all, 1)), [1]);
        assert_eq!(documents(&capped(&all[..20], 10)), [1; 10], "there is no other document");
        assert_eq!(dominant_document(&all[..20], 10), Some((DocId::from_bytes([1; 16]), 1)));
        assert_eq!(
            (dominant_document(&all, 10), dominant_document(&all[..20], 2), dominant_document(&[], 5)),
            (None, None, None)
        );
        assert_eq!(ids(&capped(&all, 24)), ids(&all));
    }

    #[test]
    fn page_by_document_has_the_best_chunk_of_each() {
        let all = [candidate(1, 1, 0.5), candidate(2, 1, 0.4), candidate(3, 2, 0.3), candidate(4, 3, 0.2)];
        assert_eq!(ids(&page(&all, GroupBy::Document, 2)), ids(&[all[0].clone(), all[2].clone()]));
    }

    proptest! {
        #[test]
        fn larger_page_contains_every_smaller_page(all in sorted_candidates()) {
            let mut smaller: HashSet<PointId> = HashSet::new();
            for count in 0..=all.len() {
                let page = page(&all, GroupBy::Chunk, count);
                prop_assert_eq!(page.len(), count);
                prop_assert!(page.is_sorted_by(|a, b| a.score > b.score || (a.score == b.score && a.id < b.id)));
                let larger: HashSet<PointId> = ids(&page).into_iter().collect();
                prop_assert!(smaller.is_subset(&larger));
                smaller = larger;
            }
            prop_assert_eq!(ids(&page(&all, GroupBy::Chunk, all.len() + 1)), ids(&all));
        }

        #[test]
        fn document_stays_within_its_cap_while_there_are_others(all in sorted_candidates(), count in 1_usize..40) {
            let page = page(&all, GroupBy::Chunk, count);
            for document in 0_u8..5 {
                let own = documents(&page).iter().filter(|of| **of == document).count();
                let others_left = documents(&all).iter().filter(|of| **of != document).count() + own > page.len();
                prop_assert!(own <= document_cap(page.len()) || !others_left);
            }
        }

        #[test]
        fn shortlist_yields_the_same_page(all in sorted_candidates(), top_k in 1_usize..20, depth in 0_usize..30) {
            for group_by in [GroupBy::Chunk, GroupBy::Document] {
                let short = shortlist(&all, (group_by, top_k), depth, &[]);
                prop_assert_eq!(ids(&page(&short, group_by, top_k)), ids(&page(&all, group_by, top_k)));
            }
        }
    }
}
