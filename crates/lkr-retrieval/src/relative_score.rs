//! Scores between 0 and 1, for clients that expect them.

use crate::{ExplainedResult, fusion};

/// The scores of the results of a layered search with graded fusion, from 0 to 1 and falling from the first to the last.
///
/// A score is the reranker's if all reranked results have one from 0 to 1, and otherwise the share of the highest fused
/// score that there can be: 1 if every leg of every layer ranks the result first and its heading names the query. It is no
/// probability, and it compares results of one query alone. Where the order has other reasons, scores follow it: a literal
/// match gets no less than the first result without one, and a result that was not reranked no more than the last that was.
#[must_use]
pub fn relative_scores(results: &[ExplainedResult]) -> Vec<f32> {
    let is_share = |score: &f32| (0.0..=1.0).contains(score);
    let uses_reranker = results.iter().filter_map(|result| result.reranked.as_ref()).all(is_share);
    let best = fusion::best_graded_score() as f32;
    let own_score = |result: &ExplainedResult| {
        let reranked = result.reranked.filter(|_| uses_reranker);
        reranked.unwrap_or(result.fused / best).clamp(0.0, 1.0)
    };
    let mut scores: Vec<f32> = results.iter().map(own_score).collect();
    let literal = results.iter().take_while(|result| result.exact).count();
    let (literal, others) = scores.split_at_mut(literal);
    let mut highest = 1.0_f32;
    for score in others.iter_mut() {
        *score = score.min(highest);
        highest = *score;
    }
    let mut lowest = others.first().copied().unwrap_or_default();
    for score in literal.iter_mut().rev() {
        *score = score.max(lowest);
        lowest = *score;
    }
    scores
}

#[cfg(test)]
mod tests {
    use lkr_domain::PointId;
    use proptest::prelude::*;

    use super::*;
    use crate::{LegScores, Ranks};

    fn result(fused: f32, exact: bool, reranked: Option<f32>) -> ExplainedResult {
        ExplainedResult {
            chunk_id: PointId::from_bytes([0; 16]),
            ranks: Ranks::default(),
            scores: LegScores::default(),
            fused,
            heading: 0.0,
            exact,
            reranked,
        }
    }

    #[test]
    fn best_fused_score_is_one_and_half_of_it_a_half() {
        let best = fusion::best_graded_score() as f32;
        let scores = relative_scores(&[result(best, false, None), result(best / 2.0, false, None)]);
        assert_eq!(scores, [1.0, 0.5]);
    }

    #[test]
    fn probabilities_of_a_reranker_are_kept_and_other_scores_are_not() {
        let reranked =
            [result(0.01, false, Some(0.9)), result(0.02, false, Some(0.2)), result(0.04, false, None)];
        assert_eq!(relative_scores(&reranked), [0.9, 0.2, 0.2]);
        let logits = [result(0.02, false, Some(7.5)), result(0.01, false, Some(-3.0))];
        let fused = [result(0.02, false, None), result(0.01, false, None)];
        assert_eq!(relative_scores(&logits), relative_scores(&fused));
    }

    #[test]
    fn literal_match_scores_no_less_than_what_follows() {
        let scores = relative_scores(&[result(0.001, true, None), result(0.03, false, None)]);
        assert_eq!(scores[0], scores[1]);
    }

    proptest! {
        #[test]
        fn scores_are_shares_that_fall(
            all in prop::collection::vec((0.0_f32..0.1, any::<bool>(), prop::option::of(-2.0_f32..2.0)), 0..40),
        ) {
            let mut all: Vec<_> = all.into_iter().map(|(fused, exact, score)| result(fused, exact, score)).collect();
            all.sort_by_key(|result| !result.exact);
            let scores = relative_scores(&all);
            prop_assert_eq!(scores.len(), all.len());
            prop_assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)));
            prop_assert!(scores.is_sorted_by(|a, b| a >= b));
        }
    }
}
