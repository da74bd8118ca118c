//! A chunk that a search may show, and the order of such candidates.

use lkr_domain::PointId;
use lkr_vectors::PointOrigin;

use crate::Scores;

/// The least score distance between two ranking groups, so that shown scores fall from the first result to the last.
const GROUP_DISTANCE: f32 = 1.0;

/// A chunk with the evidence for it.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    /// The chunk.
    pub(crate) id: PointId,
    /// The document, revision and nodes that contain it.
    pub(crate) origin: PointOrigin,
    /// The fused score with the evidence of all layers.
    pub(crate) fused: f32,
    /// The part of `fused` that upper layers contributed.
    pub(crate) parent_evidence: f32,
    /// The share of the query's words in its own heading, from 0 to 1; 0 if headings do not count.
    pub(crate) heading: f32,
    /// Whether it contains the literals of the query.
    pub(crate) exact: bool,
    /// The reranker's score, if the reranker scored it.
    pub(crate) reranked: Option<f32>,
    /// The score that the response shows.
    pub(crate) score: f32,
    /// The parts of the fused score.
    pub(crate) scores: Scores,
}

/// Sorts candidates into their final order and sets the scores that the response shows.
///
/// Literal matches come first, then reranked candidates. Within a group the reranker's score decides, else the fused
/// score; ties go by id. A shown score is that score, raised above the scores of the groups that follow.
pub(crate) fn sort(candidates: &mut [Candidate]) {
    candidates.sort_by(|a, b| {
        let by_group = group(b).cmp(&group(a));
        by_group.then(own_score(b).total_cmp(&own_score(a))).then(a.id.cmp(&b.id))
    });
    let mut below: Option<(Group, f32)> = None;
    let mut raise = 0.0;
    for candidate in candidates.iter_mut().rev() {
        if let Some((other, highest)) = below
            && other != group(candidate)
        {
            raise = (highest + GROUP_DISTANCE - own_score(candidate)).max(0.0);
        }
        candidate.score = own_score(candidate) + raise;
        below = Some((group(candidate), candidate.score));
    }
}

/// Whether a candidate is a literal match, and whether the reranker scored it.
type Group = (bool, bool);

const fn group(candidate: &Candidate) -> Group {
    (candidate.exact, candidate.reranked.is_some())
}

fn own_score(candidate: &Candidate) -> f32 {
    candidate.reranked.unwrap_or(candidate.fused)
}

#[cfg(test)]
pub(crate) mod tests {
    use lkr_domain::DocId;
    use proptest::prelude::*;

    use super::*;

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
            parent_evidence: 0.0,
            heading: 0.0,
            exact: false,
            reranked: None,
            score: fused,
            scores,
        }
    }

    /// Sorted candidates of up to five documents.
    pub(crate) fn sorted_candidates() -> impl Strategy<Value = Vec<Candidate>> {
        prop::collection::vec((0_u8..5, 0.0_f32..0.05), 0..60).prop_map(|scored| {
            let numbered = scored.into_iter().zip(0_u16..);
            let mut all: Vec<_> =
                numbered.map(|((document, fused), n)| candidate(n, document, fused)).collect();
            sort(&mut all);
            all
        })
    }

    pub(crate) fn ids(candidates: &[Candidate]) -> Vec<PointId> {
        candidates.iter().map(|candidate| candidate.id).collect()
    }

    #[test]
    fn sort_puts_literal_matches_first_then_reranked_candidates() {
        let mut all = [
            candidate(1, 1, 0.04),
            Candidate { reranked: Some(-3.0), ..candidate(2, 1, 0.03) },
            Candidate { reranked: Some(0.9), ..candidate(3, 1, 0.01) },
            Candidate { exact: true, ..candidate(4, 1, 0.01) },
            Candidate { exact: true, reranked: Some(-5.0), ..candidate(5, 1, 0.02) },
        ];
        sort(&mut all);
        assert_eq!(
            all.each_ref().map(|c| u16::from_be_bytes([c.id.as_bytes()[0], c.id.as_bytes()[1]])),
            [5, 4, 3, 2, 1]
        );
        assert!(all.is_sorted_by(|a, b| a.score > b.score));
        assert_eq!(all[4].score, 0.04, "the last group keeps its scores");
        assert!((all[2].score - all[3].score - 3.9).abs() < 1e-6, "the reranker's distances are preserved");
    }

    proptest! {
        #[test]
        fn sort_is_independent_of_input_order_and_scores_fall(
            all in sorted_candidates(),
            marks in prop::collection::vec((any::<bool>(), prop::option::of(-9.0_f32..9.0)), 60),
        ) {
            let mut all: Vec<_> = all.into_iter().zip(marks)
                .map(|(candidate, (exact, reranked))| Candidate { exact, reranked, ..candidate }).collect();
            sort(&mut all);
            let mut reversed: Vec<_> = all.iter().rev().cloned().collect();
            sort(&mut reversed);
            prop_assert_eq!(ids(&all), ids(&reversed));
            prop_assert!(all.is_sorted_by(|a, b| a.score >= b.score));
            prop_assert!(all.is_sorted_by(|a, b| a.exact >= b.exact));
        }
    }
}
