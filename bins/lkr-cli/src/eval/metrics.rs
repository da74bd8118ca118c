//! Measures of a ranking.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

/// How many results nDCG and MRR look at.
const CUT: usize = 10;

/// How many results the wider recall looks at.
const WIDE: usize = 100;

/// How good one ranking is, from 0 to 1 each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Scores {
    /// Normalised discounted cumulative gain at 10.
    pub(crate) ndcg_at_10: f64,
    /// The reciprocal rank of the first relevant result among 10.
    pub(crate) mrr_at_10: f64,
    /// The share of the relevant ones that are among the first 10.
    pub(crate) recall_at_10: f64,
    /// The share of the relevant ones that are among the first 100.
    pub(crate) recall_at_100: f64,
}

impl Scores {
    /// Of a ranking without repetitions, by the gains of what was judged. What has no gain above 0 is not relevant.
    pub(crate) fn of(ranking: &[&str], gains: &HashMap<String, f64>) -> Self {
        let found: Vec<f64> =
            ranking.iter().map(|&item| gains.get(item).copied().unwrap_or(0.0).max(0.0)).collect();
        let relevant = gains.values().filter(|&&gain| gain > 0.0).count();
        Self {
            ndcg_at_10: ndcg(&found, gains),
            mrr_at_10: found
                .iter()
                .take(CUT)
                .position(|&gain| gain > 0.0)
                .map_or(0.0, |rank| 1.0 / (rank + 1) as f64),
            recall_at_10: recall(&found, CUT, relevant),
            recall_at_100: recall(&found, WIDE, relevant),
        }
    }
}

/// The items of a ranking, each where it stands first.
pub(crate) fn distinct<'a>(ranking: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = HashSet::new();
    ranking.filter(|item| seen.insert(*item)).collect()
}

/// As in trec_eval: the gain of rank i, counted from 1, is divided by log2(i + 1), and the sum by that of the best
/// ranking there could be.
fn ndcg(found: &[f64], gains: &HashMap<String, f64>) -> f64 {
    let mut ideal: Vec<f64> = gains.values().copied().filter(|&gain| gain > 0.0).collect();
    ideal.sort_by(|a, b| b.total_cmp(a));
    let best = dcg(&ideal);
    if best > 0.0 { dcg(found) / best } else { 0.0 }
}

fn dcg(gains: &[f64]) -> f64 {
    gains.iter().take(CUT).zip(2_u32..).map(|(gain, discount)| gain / f64::from(discount).log2()).sum()
}

fn recall(found: &[f64], cut: usize, relevant: usize) -> f64 {
    let hits = found.iter().take(cut).filter(|&&gain| gain > 0.0).count();
    if relevant == 0 { 0.0 } else { hits as f64 / relevant as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gains(judged: &[(&str, f64)]) -> HashMap<String, f64> {
        judged.iter().map(|&(id, gain)| (id.to_owned(), gain)).collect()
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn graded_gains_by_hand() {
        // found: b (1) at 1, x at 2, a (3) at 3: 1/1 + 3/2 = 2.5; ideal: 3/1 + 1/log2(3) + 0 with c = 0.
        let scores = Scores::of(&["b", "x", "a"], &gains(&[("a", 3.0), ("b", 1.0), ("c", 0.0)]));
        assert!(close(scores.ndcg_at_10, 2.5 / (3.0 + 1.0 / 3.0_f64.log2())), "{scores:?}");
        assert!(close(scores.mrr_at_10, 1.0) && close(scores.recall_at_10, 1.0));
    }

    #[test]
    fn ranks_beyond_the_cut_count_for_wide_recall_alone() {
        let names: Vec<String> = (1..=12).map(|n| format!("x{n}")).collect();
        let ranking: Vec<&str> = names.iter().map(String::as_str).collect();
        let scores =
            Scores::of(&ranking, &gains(&[("x10", 1.0), ("x11", 1.0), ("away", 1.0), ("bad", -1.0)]));
        // x10 stands at 10: 1/log2(11); ideal of three: 1 + 1/log2(3) + 1/2.
        let ideal = 1.0 + 1.0 / 3.0_f64.log2() + 0.5;
        assert!(close(scores.ndcg_at_10, 1.0 / 11.0_f64.log2() / ideal));
        assert!(close(scores.mrr_at_10, 0.1));
        assert!(close(scores.recall_at_10, 1.0 / 3.0) && close(scores.recall_at_100, 2.0 / 3.0));
    }

    #[test]
    fn perfect_and_empty_rankings() {
        let judged = gains(&[("a", 2.0), ("b", 1.0)]);
        let perfect = Scores::of(&["a", "b", "x"], &judged);
        assert_eq!((perfect.ndcg_at_10, perfect.mrr_at_10, perfect.recall_at_10), (1.0, 1.0, 1.0));
        assert_eq!(Scores::of(&[], &judged), Scores::default());
        assert_eq!(Scores::of(&["a"], &gains(&[])), Scores::default());
    }

    #[test]
    fn items_count_where_they_stand_first() {
        assert_eq!(distinct(["a", "b", "a", "c", "b"].into_iter()), ["a", "b", "c"]);
    }
}
