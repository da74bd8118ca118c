use std::{collections::HashMap, hash::Hash};

use serde::{Deserialize, Serialize};

/// How many results nDCG and MRR look at.
const CUT: usize = 10;
/// How many results the wider recall looks at.
const WIDE: usize = 100;

/// How good a ranking is, or the mean of several, from 0 to 1 each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Measures {
    /// Normalised discounted cumulative gain at 10.
    pub ndcg_at_10: f64,
    /// The reciprocal rank of the first relevant item among 10.
    pub mrr_at_10: f64,
    /// The share of the relevant items that are among the first 10.
    pub recall_at_10: f64,
    /// The share of the relevant items that are among the first 100.
    pub recall_at_100: f64,
}

impl Measures {
    /// Of a ranking that lists each item once, by the gains of what was judged. What has no gain above 0 is not
    /// relevant; where nothing is, all measures are 0.
    #[must_use]
    pub fn of<T: Eq + Hash>(ranking: &[T], gains: &HashMap<T, f64>) -> Self {
        let found: Vec<f64> =
            ranking.iter().map(|item| gains.get(item).copied().unwrap_or(0.0).max(0.0)).collect();
        let relevant = gains.values().filter(|&&gain| gain > 0.0).count();
        Self {
            ndcg_at_10: ndcg(&found, gains.values().copied()),
            mrr_at_10: reciprocal_rank(&found),
            recall_at_10: recall(&found, CUT, relevant),
            recall_at_100: recall(&found, WIDE, relevant),
        }
    }

    /// The means; zeros of nothing.
    #[must_use]
    pub fn mean(all: &[Self]) -> Self {
        let of = |measure: fn(&Self) -> f64| {
            if all.is_empty() { 0.0 } else { all.iter().map(measure).sum::<f64>() / all.len() as f64 }
        };
        Self {
            ndcg_at_10: of(|m| m.ndcg_at_10),
            mrr_at_10: of(|m| m.mrr_at_10),
            recall_at_10: of(|m| m.recall_at_10),
            recall_at_100: of(|m| m.recall_at_100),
        }
    }
}

fn ndcg(found: &[f64], gains: impl Iterator<Item = f64>) -> f64 {
    let mut ideal: Vec<f64> = gains.filter(|&gain| gain > 0.0).collect();
    ideal.sort_by(|a, b| b.total_cmp(a));
    let best = dcg(&ideal);
    if best > 0.0 { dcg(found) / best } else { 0.0 }
}

fn dcg(gains: &[f64]) -> f64 {
    gains.iter().take(CUT).zip(2_u32..).map(|(gain, discount)| gain / f64::from(discount).log2()).sum()
}

fn reciprocal_rank(found: &[f64]) -> f64 {
    let first = found.iter().take(CUT).position(|&gain| gain > 0.0);
    first.map_or(0.0, |place| 1.0 / (place + 1) as f64)
}

fn recall(found: &[f64], cut: usize, relevant: usize) -> f64 {
    let hits = found.iter().take(cut).filter(|&&gain| gain > 0.0).count();
    if relevant == 0 { 0.0 } else { hits as f64 / relevant as f64 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn gains(judged: &[(&str, f64)]) -> HashMap<String, f64> {
        judged.iter().map(|&(id, gain)| (id.to_owned(), gain)).collect()
    }

    fn of(ranking: &[&str], judged: &[(&str, f64)]) -> Measures {
        Measures::of(&ranking.iter().map(|&item| item.to_owned()).collect::<Vec<_>>(), &gains(judged))
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn graded_gains_by_hand() {
        // found: b (1) at 1, x at 2, a (3) at 3: 1/1 + 3/2 = 2.5; ideal: 3/1 + 1/log2(3) + 0 with c = 0.
        let measures = of(&["b", "x", "a"], &[("a", 3.0), ("b", 1.0), ("c", 0.0)]);
        assert!(close(measures.ndcg_at_10, 2.5 / (3.0 + 1.0 / 3.0_f64.log2())), "{measures:?}");
        assert!(close(measures.mrr_at_10, 1.0) && close(measures.recall_at_10, 1.0));
    }

    #[test]
    fn ranks_beyond_the_cut_count_for_wide_recall_alone() {
        let ranking: Vec<String> = (1..=12).map(|n| format!("x{n}")).collect();
        let judged = gains(&[("x10", 1.0), ("x11", 1.0), ("away", 1.0), ("bad", -1.0)]);
        let measures = Measures::of(&ranking, &judged);
        // x10 stands at 10: 1/log2(11); ideal of three: 1 + 1/log2(3) + 1/2.
        let ideal = 1.0 + 1.0 / 3.0_f64.log2() + 0.5;
        assert!(close(measures.ndcg_at_10, 1.0 / 11.0_f64.log2() / ideal));
        assert!(close(measures.mrr_at_10, 0.1));
        assert!(close(measures.recall_at_10, 1.0 / 3.0) && close(measures.recall_at_100, 2.0 / 3.0));
    }

    #[test]
    fn perfect_and_empty_rankings() {
        let judged = [("a", 2.0), ("b", 1.0)];
        let perfect = of(&["a", "b", "x"], &judged);
        assert_eq!((perfect.ndcg_at_10, perfect.mrr_at_10, perfect.recall_at_10), (1.0, 1.0, 1.0));
        assert_eq!(of(&[], &judged), Measures::default());
        assert_eq!(of(&["a"], &[]), Measures::default());
        assert_eq!(Measures::mean(&[]), Measures::default());
        assert_eq!(Measures::mean(&[perfect, Measures::default()]).ndcg_at_10, 0.5);
    }

    /// A ranking of some of thirty items, and gains of some.
    fn judged_ranking() -> impl Strategy<Value = (Vec<u8>, HashMap<u8, f64>)> {
        let ranking = prop::collection::vec(0_u8..30, 0..30).prop_map(crate::distinct);
        let gains = prop::collection::hash_map(0_u8..30, (0_u8..4).prop_map(f64::from), 0..12);
        (ranking, gains)
    }

    proptest! {
        #[test]
        fn measures_lie_between_0_and_1((ranking, gains) in judged_ranking()) {
            let m = Measures::of(&ranking, &gains);
            for value in [m.ndcg_at_10, m.mrr_at_10, m.recall_at_10, m.recall_at_100] {
                prop_assert!((0.0..=1.0 + 1e-12).contains(&value), "{m:?}");
            }
            prop_assert!(m.recall_at_10 <= m.recall_at_100);
        }

        #[test]
        fn a_relevant_item_that_moves_up_is_never_worse((ranking, gains) in judged_ranking(), at in 1_usize..29) {
            let mut better = ranking.clone();
            prop_assume!(at < ranking.len());
            let gain = |item: &u8| gains.get(item).copied().unwrap_or(0.0);
            if gain(&ranking[at]) > gain(&ranking[at - 1]) {
                better.swap(at, at - 1);
            }
            let (before, after) = (Measures::of(&ranking, &gains), Measures::of(&better, &gains));
            prop_assert!(after.ndcg_at_10 >= before.ndcg_at_10 - 1e-12);
            prop_assert!(after.mrr_at_10 >= before.mrr_at_10 && after.recall_at_10 >= before.recall_at_10);
        }

        #[test]
        fn the_best_order_there_is_has_ndcg_1((_, gains) in judged_ranking()) {
            let mut best: Vec<u8> = gains.keys().copied().collect();
            best.sort_by(|a, b| gains[b].total_cmp(&gains[a]));
            let expected = if gains.values().any(|&gain| gain > 0.0) { 1.0 } else { 0.0 };
            prop_assert!(close(Measures::of(&best, &gains).ndcg_at_10, expected));
        }

        #[test]
        fn what_was_not_judged_changes_nothing_behind_the_cut((ranking, gains) in judged_ranking()) {
            let longer: Vec<u8> = ranking.iter().copied().chain(100..200).collect();
            prop_assert_eq!(Measures::of(&longer, &gains), Measures::of(&ranking, &gains));
        }
    }
}
