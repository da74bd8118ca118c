//! What headings say of the best candidates. A node's own heading is the evidence of its layer that no vector and no
//! bag of words of its whole text holds. Pure functions.

use std::collections::HashSet;

use lkr_domain::PointId;
use lkr_text::{Language, QueryTerm, overlap};

use crate::{GroupBy, fusion, order::page, rank::Candidate};

/// How many of the best candidates have their headings looked at, however many are asked for.
pub(crate) const DEPTH: usize = 30;
/// Of how many of the best it is looked at whether they stand under headings.
const FIRST: usize = 10;

/// How far the heading right above a chunk, which is in `language`, names what is asked for, from 0 to 1; `None` where
/// there is none.
pub(crate) fn named(words: &[QueryTerm], path: &[String], language: &str) -> Option<f64> {
    let language = Language::from_code(language);
    path.last().map(|heading| fusion::named(overlap(words, heading, language)))
}

/// Adds what headings say to the scores of the best of `candidates`, which are in their order, and takes from all as much
/// of what the layers above said as headings say already. `named` is what [`named`] says of a candidate's heading.
/// Answers the share of the layers above that counts.
pub(crate) fn weigh(candidates: &mut [Candidate], named: impl Fn(PointId) -> Option<f64>) -> f64 {
    let best: HashSet<PointId> = page(candidates, GroupBy::Chunk, DEPTH).iter().map(|best| best.id).collect();
    let first = candidates.iter().take(FIRST);
    let headed = first.clone().filter(|candidate| named(candidate.id).is_some()).count();
    let counts = fusion::counts_above(headed as f64 / first.len().max(1) as f64);
    for candidate in candidates {
        let says = named(candidate.id).filter(|_| best.contains(&candidate.id)).unwrap_or(0.0);
        let less = (1.0 - counts) * f64::from(candidate.above);
        candidate.heading = says as f32;
        candidate.fused = (f64::from(candidate.fused) - less + fusion::heading(says)) as f32;
    }
    counts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::order::{order, tests::candidate};

    #[test]
    fn a_heading_that_is_asked_for_counts() {
        let words = lkr_text::query_terms("the maximum number of layers");
        let named = |path: &[String]| named(&words, path, "en");
        let path = |headings: &[&str]| headings.iter().map(|&heading| heading.to_owned()).collect::<Vec<_>>();
        assert_eq!(named(&path(&["Training", "Layers"])), Some(1.0 / 3.0));
        assert_eq!(named(&path(&["Layers", "Training"])), Some(0.0), "the one right above counts");
        assert_eq!(named(&path(&["Layers of the cake and its cream"])), Some(0.0), "mostly something else");
        assert_eq!(named(&[]), None);
    }

    #[test]
    fn scores_by_hand() {
        let mut two = [candidate(1, 1, 0.034), candidate(2, 1, 0.033)];
        two[0].above = 0.004;
        // Half of them stand under headings, so that .625 of what is above counts.
        let counts = weigh(&mut two, |id| (id.as_bytes()[1] == 2).then_some(0.5));
        assert_eq!(counts, 0.625);
        assert!((two[0].fused - (0.034 - 0.375 * 0.004)).abs() < 1e-7);
        assert!((two[1].fused - (0.033 + 0.122 * 0.5 / 61.0)).abs() < 1e-7);
        assert_eq!((two[0].heading, two[1].heading), (0.0, 0.5));
    }

    proptest! {
        #[test]
        fn without_headings_nothing_changes(scores in prop::collection::vec(0.0_f32..0.05, 0..40)) {
            let mut all: Vec<_> = scores.iter().zip(0..).map(|(&fused, n)| candidate(n, 1, fused)).collect();
            all.iter_mut().for_each(|candidate| candidate.above = 0.1 * candidate.fused);
            let before: Vec<f32> = all.iter().map(|candidate| candidate.fused).collect();
            prop_assert_eq!(weigh(&mut all, |_| None), 1.0);
            prop_assert_eq!(all.iter().map(|candidate| candidate.fused).collect::<Vec<_>>(), before);
        }

        #[test]
        fn a_better_heading_never_lowers(
            scores in prop::collection::vec((0.0_f32..0.05, 0.0_f64..=1.0), 1..60), better in 0.0_f64..=1.0,
        ) {
            let mut all: Vec<_> = scores.iter().zip(0..).map(|(&(fused, _), n)| candidate(n, 1, fused)).collect();
            order(&mut all);
            let says = |id: PointId| {
                let at = usize::from(u16::from_be_bytes([id.as_bytes()[0], id.as_bytes()[1]]));
                Some(scores[at].1)
            };
            let raised = all[0].id;
            let mut other = all.clone();
            weigh(&mut all, says);
            weigh(&mut other, |id| says(id).map(|own| if id == raised { own.max(better) } else { own }));
            for (one, other) in all.iter().zip(&other) {
                prop_assert!(one.id == other.id && (one.fused == other.fused || other.id == raised));
                prop_assert!(other.fused >= one.fused);
            }
        }
    }
}
