//! The final order of candidates, and which of them make the page. Pure functions.

use std::collections::{HashMap, HashSet};

use lkr_domain::{DocId, PointId};

use crate::{GroupBy, rank::Candidate};

/// How far the scores of those that come first for another reason than their score stand above the rest.
const LIFT: f32 = 1.0;

/// Puts candidates in their final order: those that hold literally what was asked for before the others, those that
/// the reranker was shown before those that it was not, then by the reranker's score, or else the fused one; ties by
/// id. Each gets the score that it is shown with, which is that score, lifted above what comes after it.
pub(crate) fn order(candidates: &mut [Candidate]) {
    candidates.sort_by(|a, b| {
        let by_group = group(b).cmp(&group(a));
        by_group.then(value(b).total_cmp(&value(a))).then(a.id.cmp(&b.id))
    });
    let mut below: Option<(Group, f32)> = None;
    let mut lift = 0.0;
    for candidate in candidates.iter_mut().rev() {
        if let Some((other, highest)) = below
            && other != group(candidate)
        {
            lift = (highest + LIFT - value(candidate)).max(0.0);
        }
        candidate.score = value(candidate) + lift;
        below = Some((group(candidate), candidate.score));
    }
}

/// Whether it holds literally what was asked for, and whether the reranker was shown it.
type Group = (bool, bool);

const fn group(candidate: &Candidate) -> Group {
    (candidate.exact, candidate.reranked.is_some())
}

fn value(candidate: &Candidate) -> f32 {
    candidate.reranked.unwrap_or(candidate.fused)
}

/// The candidates that make a page of `top_k`, in their order: of `ordered` the best, or the best of each document.
pub(crate) fn page(ordered: &[Candidate], group_by: GroupBy, top_k: usize) -> Vec<Candidate> {
    match group_by {
        GroupBy::Chunk => spread(ordered, top_k),
        GroupBy::Document => {
            let mut seen = HashSet::new();
            let first = ordered.iter().filter(|candidate| seen.insert(candidate.origin.doc_id));
            first.take(top_k).cloned().collect()
        }
    }
}

/// `count` candidates of which no more than two thirds are of one document, as long as there are others; in their
/// order.
///
/// They are chosen one by one, each time the best whose document has room, so that a larger count has all that a
/// smaller one has, and the largest has everything.
fn spread(ordered: &[Candidate], count: usize) -> Vec<Candidate> {
    let mut left: Vec<usize> = (0..ordered.len()).collect();
    let mut of_document: HashMap<DocId, usize> = HashMap::new();
    let mut chosen = Vec::new();
    while chosen.len() < count && !left.is_empty() {
        let room = (2 * (chosen.len() + 1)).div_ceil(3);
        let has_room = |&at: &usize| {
            let taken =
                |candidate: &Candidate| of_document.get(&candidate.origin.doc_id).copied().unwrap_or(0);
            ordered.get(at).is_some_and(|candidate| taken(candidate) < room)
        };
        let at = left.remove(left.iter().position(has_room).unwrap_or(0));
        if let Some(candidate) = ordered.get(at) {
            *of_document.entry(candidate.origin.doc_id).or_default() += 1;
        }
        chosen.push(at);
    }
    chosen.sort_unstable();
    chosen.into_iter().filter_map(|at| ordered.get(at).cloned()).collect()
}

/// The document, with its revision, that takes more than two thirds of the chunks of a page of `top_k`: there are no
/// others among `ordered`.
pub(crate) fn filling(ordered: &[Candidate], top_k: usize) -> Option<(DocId, u64)> {
    let page = spread(ordered, top_k);
    let mut counts: HashMap<(DocId, u64), usize> = HashMap::new();
    for Candidate { origin, .. } in &page {
        *counts.entry((origin.doc_id, origin.revision)).or_default() += 1;
    }
    let room = (2 * page.len()).div_ceil(3);
    counts.into_iter().find_map(|(document, count)| (count > room).then_some(document))
}

/// Which of `ordered` are worth a closer look: what makes the page as they are, the best `depth`, and `also`.
pub(crate) fn shortlist(
    ordered: &[Candidate],
    (group_by, top_k): (GroupBy, usize),
    depth: usize,
    also: &[PointId],
) -> Vec<Candidate> {
    let page = page(ordered, group_by, top_k).into_iter().map(|candidate| candidate.id);
    let deep = spread(ordered, depth).into_iter().map(|candidate| candidate.id);
    let chosen: HashSet<PointId> = page.chain(deep).chain(also.iter().copied()).collect();
    ordered.iter().filter(|candidate| chosen.contains(&candidate.id)).cloned().collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use lkr_vectors::PointOrigin;
    use proptest::prelude::*;

    use super::*;
    use crate::Scores;

    pub(crate) fn candidate(n: u16, document: u8, fused: f32) -> Candidate {
        let mut id = [0; 16];
        id[..2].copy_from_slice(&n.to_be_bytes());
        let origin = PointOrigin {
            doc_id: DocId::from_bytes([document; 16]),
            revision: 1,
            ordinal: 0,
            l2: None,
            l3: None,
        };
        let scores = Scores::default();
        Candidate {
            id: PointId::from_bytes(id),
            origin,
            fused,
            above: 0.0,
            heading: 0.0,
            exact: false,
            reranked: None,
            score: fused,
            scores,
        }
    }

    /// Candidates of so many documents, one for each score, in order.
    fn candidates() -> impl Strategy<Value = Vec<Candidate>> {
        prop::collection::vec((0_u8..5, 0.0_f32..0.05), 0..60).prop_map(|given| {
            let numbered = given.into_iter().zip(0_u16..);
            let mut all: Vec<_> = numbered.map(|((doc, fused), n)| candidate(n, doc, fused)).collect();
            order(&mut all);
            all
        })
    }

    fn ids(candidates: &[Candidate]) -> Vec<PointId> {
        candidates.iter().map(|candidate| candidate.id).collect()
    }

    fn documents(candidates: &[Candidate]) -> Vec<u8> {
        candidates.iter().map(|candidate| candidate.origin.doc_id.as_bytes()[0]).collect()
    }

    #[test]
    fn literal_matches_come_first_then_what_was_reranked() {
        let mut all = [
            candidate(1, 1, 0.04),
            Candidate { reranked: Some(-3.0), ..candidate(2, 1, 0.03) },
            Candidate { reranked: Some(0.9), ..candidate(3, 1, 0.01) },
            Candidate { exact: true, ..candidate(4, 1, 0.01) },
            Candidate { exact: true, reranked: Some(-5.0), ..candidate(5, 1, 0.02) },
        ];
        order(&mut all);
        assert_eq!(
            all.each_ref().map(|c| u16::from_be_bytes([c.id.as_bytes()[0], c.id.as_bytes()[1]])),
            [5, 4, 3, 2, 1]
        );
        assert!(all.is_sorted_by(|a, b| a.score > b.score));
        assert_eq!(all[4].score, 0.04, "the last ones keep their score");
        assert!((all[2].score - all[3].score - 3.9).abs() < 1e-6, "the reranker's distances stay");
    }

    #[test]
    fn a_page_has_room_for_others() {
        let mut all: Vec<_> = (0..20).map(|n| candidate(n, 1, 0.05)).collect();
        all.extend((20..24).map(|n| candidate(n, 2, 0.01)));
        assert_eq!(documents(&spread(&all, 3)), [1, 1, 2]);
        assert_eq!(documents(&spread(&all, 10)), [1, 1, 1, 1, 1, 1, 1, 2, 2, 2]);
        assert_eq!(documents(&spread(&all, 1)), [1]);
        assert_eq!(documents(&spread(&all[..20], 10)), [1; 10], "where there are no others");
        assert_eq!(filling(&all[..20], 10), Some((DocId::from_bytes([1; 16]), 1)));
        assert_eq!((filling(&all, 10), filling(&all[..20], 2), filling(&[], 5)), (None, None, None));
        assert_eq!(ids(&spread(&all, 24)), ids(&all));
    }

    #[test]
    fn a_document_stands_once_by_its_best() {
        let all = [candidate(1, 1, 0.5), candidate(2, 1, 0.4), candidate(3, 2, 0.3), candidate(4, 3, 0.2)];
        assert_eq!(ids(&page(&all, GroupBy::Document, 2)), ids(&[all[0].clone(), all[2].clone()]));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_at_deeper_pages(all in candidates()) {
            let mut before: HashSet<PointId> = HashSet::new();
            for count in 0..=all.len() {
                let page = page(&all, GroupBy::Chunk, count);
                prop_assert_eq!(page.len(), count);
                prop_assert!(page.is_sorted_by(|a, b| a.score > b.score || (a.score == b.score && a.id < b.id)));
                let now: HashSet<PointId> = ids(&page).into_iter().collect();
                prop_assert!(before.is_subset(&now));
                before = now;
            }
            prop_assert_eq!(ids(&page(&all, GroupBy::Chunk, all.len() + 1)), ids(&all));
        }

        #[test]
        fn no_document_fills_a_page_while_there_are_others(all in candidates(), count in 1_usize..40) {
            let page = page(&all, GroupBy::Chunk, count);
            for document in 0_u8..5 {
                let own = documents(&page).iter().filter(|of| **of == document).count();
                let others_left = documents(&all).iter().filter(|of| **of != document).count() + own > page.len();
                prop_assert!(own <= (2 * page.len()).div_ceil(3) || !others_left);
            }
        }

        #[test]
        fn the_order_is_total_and_shown_by_the_scores(
            all in candidates(), marks in prop::collection::vec((any::<bool>(), prop::option::of(-9.0_f32..9.0)), 60),
        ) {
            let mut all: Vec<_> = all.into_iter().zip(marks)
                .map(|(candidate, (exact, reranked))| Candidate { exact, reranked, ..candidate }).collect();
            order(&mut all);
            let mut turned: Vec<_> = all.iter().rev().cloned().collect();
            order(&mut turned);
            prop_assert_eq!(ids(&all), ids(&turned));
            prop_assert!(all.is_sorted_by(|a, b| a.score >= b.score));
            prop_assert!(all.is_sorted_by(|a, b| a.exact >= b.exact));
        }

        #[test]
        fn a_shortlist_makes_the_same_page(all in candidates(), top_k in 1_usize..20, depth in 0_usize..30) {
            for group_by in [GroupBy::Chunk, GroupBy::Document] {
                let short = shortlist(&all, (group_by, top_k), depth, &[]);
                prop_assert_eq!(ids(&page(&short, group_by, top_k)), ids(&page(&all, group_by, top_k)));
            }
        }
    }
}
