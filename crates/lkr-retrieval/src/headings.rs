//! Headings as evidence. A node's own heading is evidence for its chunks that neither the vector nor the term weights
//! of its whole text preserve. Pure functions. See docs/studies.md#headings-as-evidence.

use std::collections::HashMap;

use lkr_domain::PointId;
use lkr_text::{Language, QueryTerm, QueryWords};

use crate::{GroupBy, candidate::Candidate, fusion, ids::IdSet, page::page};

/// How many of the best candidates get the evidence of their headings, whatever the requested number of results. See
/// docs/studies.md#headings-as-evidence.
pub(crate) const DEPTH: usize = 30;
/// How many of the best candidates decide how much the upper layers count. See docs/studies.md#headings-as-evidence.
const HEADED_DEPTH: usize = 10;

/// The shares of a query in headings. Of chunks that are below the same heading, it compares that once.
#[derive(Debug)]
pub(crate) struct HeadingShares<'q> {
    query: QueryWords<'q>,
    /// By language and heading.
    known: HashMap<String, HashMap<String, f64>>,
}

impl<'q> HeadingShares<'q> {
    pub(crate) fn new(query: &'q [QueryTerm]) -> Self {
        Self { query: QueryWords::new(query), known: HashMap::new() }
    }

    /// The share of the query in the heading right above a chunk in `language`, from 0 to 1; `None` without a heading.
    pub(crate) fn share(&mut self, path: &[String], language: &str) -> Option<f64> {
        let heading = path.last()?;
        if let Some(known) = self.known.get(language).and_then(|known| known.get(heading)) {
            return Some(*known);
        }
        let overlap = self.query.overlap(heading, Language::from_code(language));
        let share = fusion::heading_share(overlap);
        self.known.entry(language.to_owned()).or_default().insert(heading.clone(), share);
        Some(share)
    }
}

/// Adds the evidence of headings to the scores of the best of `candidates`, which are sorted, and reduces the evidence
/// of the upper layers of all of them by as much as headings cover it. `share` returns what [`HeadingShares::share`]
/// returned for a candidate. Returns the share of the upper layers' evidence that counts.
pub(crate) fn apply(candidates: &mut [Candidate], share: impl Fn(PointId) -> Option<f64>) -> f64 {
    let best: IdSet<PointId> = page(candidates, GroupBy::Chunk, DEPTH).iter().map(|best| best.id).collect();
    let first = candidates.iter().take(HEADED_DEPTH);
    let headed = first.clone().filter(|candidate| share(candidate.id).is_some()).count();
    let parent_share = fusion::parent_share(headed as f64 / first.len().max(1) as f64);
    for candidate in candidates {
        let heading = share(candidate.id).filter(|_| best.contains(&candidate.id)).unwrap_or(0.0);
        let reduction = (1.0 - parent_share) * f64::from(candidate.parent_evidence);
        candidate.heading = heading as f32;
        candidate.fused = (f64::from(candidate.fused) - reduction + fusion::heading_evidence(heading)) as f32;
    }
    parent_share
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::candidate::{self, tests::candidate};

    #[test]
    fn share_counts_the_query_words_in_the_nearest_heading() {
        let terms = lkr_text::query_terms("the maximum number of layers");
        let mut shares = HeadingShares::new(&terms);
        let mut share = |path: &[String]| shares.share(path, "en");
        let path = |headings: &[&str]| headings.iter().map(|&heading| heading.to_owned()).collect::<Vec<_>>();
        assert_eq!(share(&path(&["Training", "Layers"])), Some(1.0 / 3.0));
        assert_eq!(share(&path(&["Layers", "Training"])), Some(0.0), "only the nearest heading counts");
        assert_eq!(share(&path(&["Layers of the cake and its cream"])), Some(0.0), "mostly something else");
        assert_eq!(share(&[]), None);
        assert_eq!(share(&path(&["Training", "Layers"])), Some(1.0 / 3.0), "known by now");
        // Only English stems make one of these.
        assert_eq!(shares.share(&path(&["Layered"]), "en"), Some(1.0 / 3.0));
        assert_eq!(shares.share(&path(&["Layered"]), "pl"), Some(0.0));
    }

    #[test]
    fn apply_matches_hand_calculation() {
        let mut two = [candidate(1, 1, 0.034), candidate(2, 1, 0.033)];
        two[0].parent_evidence = 0.004;
        // Half of them are below headings, so 0.625 of the upper layers' evidence counts.
        let parent_share = apply(&mut two, |id| (id.as_bytes()[1] == 2).then_some(0.5));
        assert_eq!(parent_share, 0.625);
        assert!((two[0].fused - (0.034 - 0.375 * 0.004)).abs() < 1e-7);
        assert!((two[1].fused - (0.033 + 0.122 * 0.5 / 61.0)).abs() < 1e-7);
        assert_eq!((two[0].heading, two[1].heading), (0.0, 0.5));
    }

    proptest! {
        #[test]
        fn apply_without_headings_changes_nothing(scores in prop::collection::vec(0.0_f32..0.05, 0..40)) {
            let mut all: Vec<_> = scores.iter().zip(0..).map(|(&fused, n)| candidate(n, 1, fused)).collect();
            all.iter_mut().for_each(|candidate| candidate.parent_evidence = 0.1 * candidate.fused);
            let before: Vec<f32> = all.iter().map(|candidate| candidate.fused).collect();
            prop_assert_eq!(apply(&mut all, |_| None), 1.0);
            prop_assert_eq!(all.iter().map(|candidate| candidate.fused).collect::<Vec<_>>(), before);
        }

        #[test]
        fn apply_never_lowers_a_candidate_for_a_better_heading(
            scores in prop::collection::vec((0.0_f32..0.05, 0.0_f64..=1.0), 1..60), better in 0.0_f64..=1.0,
        ) {
            let mut all: Vec<_> = scores.iter().zip(0..).map(|(&(fused, _), n)| candidate(n, 1, fused)).collect();
            candidate::sort(&mut all);
            let share = |id: PointId| {
                let at = usize::from(u16::from_be_bytes([id.as_bytes()[0], id.as_bytes()[1]]));
                Some(scores[at].1)
            };
            let raised = all[0].id;
            let mut other = all.clone();
            apply(&mut all, share);
            apply(&mut other, |id| share(id).map(|own| if id == raised { own.max(better) } else { own }));
            for (one, other) in all.iter().zip(&other) {
                prop_assert!(one.id == other.id && (one.fused == other.fused || other.id == raised));
                prop_assert!(other.fused >= one.fused);
            }
        }
    }
}
