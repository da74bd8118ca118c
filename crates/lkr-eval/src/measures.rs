use std::{collections::HashMap, hash::Hash};

use serde::{Deserialize, Serialize};

/// The cut-off rank of nDCG, MRR and the narrow recall.
const CUTOFF: usize = 10;
/// The cut-off rank of the wide recall.
const WIDE_CUTOFF: usize = 100;

/// The measures of a ranking, or their means over several rankings; each from 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Measures {
    /// Normalised discounted cumulative gain at 10 (Järvelin and Kekäläinen 2002).
    pub ndcg_at_10: f64,
    /// The reciprocal rank of the first relevant item among the first 10 (Voorhees 1999).
    pub mrr_at_10: f64,
    /// The share of the relevant items that are among the first 10.
    pub recall_at_10: f64,
    /// The share of the relevant items that are among the first 100.
    pub recall_at_100: f64,
}

impl Measures {
    /// The measures of a ranking without duplicates, by the gains of judged items. Items without a gain above 0 are not
    /// relevant. If no item is relevant, all measures are 0.
    #[must_use]
    pub fn of<T: Eq + Hash>(ranking: &[T], gains: &HashMap<T, f64>) -> Self {
        let ranked: Vec<f64> =
            ranking.iter().map(|item| gains.get(item).copied().unwrap_or(0.0).max(0.0)).collect();
        let relevant = gains.values().filter(|&&gain| gain > 0.0).count();
        Self {
            ndcg_at_10: ndcg(&ranked, gains.values().copied()),
            mrr_at_10: reciprocal_rank(&ranked),
            recall_at_10: recall(&ranked, CUTOFF, relevant),
            recall_at_100: recall(&ranked, WIDE_CUTOFF, relevant),
        }
    }

    /// The means; zeros without rankings.
    #[must_use]
    pub fn mean(all: &[Self]) -> Self {
        let mean = |measure: fn(&Self) -> f64| {
            if all.is_empty() { 0.0 } else { all.iter().map(measure).sum::<f64>() / all.len() as f64 }
        };
        Self {
            ndcg_at_10: mean(|m| m.ndcg_at_10),
            mrr_at_10: mean(|m| m.mrr_at_10),
            recall_at_10: mean(|m| m.recall_at_10),
            recall_at_100: mean(|m| m.recall_at_100),
        }
    }
}

fn ndcg(ranked: &[f64], gains: impl Iterator<Item = f64>) -> f64 {
    let mut ideal: Vec<f64> = gains.filter(|&gain| gain > 0.0).collect();
    ideal.sort_by(|a, b| b.total_cmp(a));
    let best = dcg(&ideal);
    if best > 0.0 { dcg(ranked) / best } else { 0.0 }
}

fn dcg(gains: &[f64]) -> f64 {
    let discounted = |(gain, discount): (&f64, u32)| gain / f64::from(discount).log2();
    // The sum of no numbers is -0.0 in Rust, which shows.
    gains.iter().take(CUTOFF).zip(2_u32..).map(discounted).fold(0.0, |sum, gain| sum + gain)
}

fn reciprocal_rank(ranked: &[f64]) -> f64 {
    let first = ranked.iter().take(CUTOFF).position(|&gain| gain > 0.0);
    first.map_or(0.0, |index| 1.0 / (index + 1) as f64)
}

fn recall(ranked: &[f64], cutoff: usize, relevant: usize) -> f64 {
    let hits = ranked.iter().take(cutoff).filter(|&&gain| gain > 0.0).count();
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
    fn measures_of_graded_gains_match_hand_calculation() {
        // Ranked are b (1) at 1, x at 2, a (3) at 3: 1/1 + 3/2 = 2.5; ideal: 3/1 + 1/log2(3) + 0 with c = 0.
        let measures = of(&["b", "x", "a"], &[("a", 3.0), ("b", 1.0), ("c", 0.0)]);
        assert!(close(measures.ndcg_at_10, 2.5 / (3.0 + 1.0 / 3.0_f64.log2())), "{measures:?}");
        assert!(close(measures.mrr_at_10, 1.0) && close(measures.recall_at_10, 1.0));
    }

    #[test]
    fn items_beyond_rank_10_count_only_for_recall_at_100() {
        let ranking: Vec<String> = (1..=12).map(|n| format!("x{n}")).collect();
        let judged = gains(&[("x10", 1.0), ("x11", 1.0), ("away", 1.0), ("bad", -1.0)]);
        let measures = Measures::of(&ranking, &judged);
        // x10 has rank 10: 1/log2(11); ideal of three: 1 + 1/log2(3) + 1/2.
        let ideal = 1.0 + 1.0 / 3.0_f64.log2() + 0.5;
        assert!(close(measures.ndcg_at_10, 1.0 / 11.0_f64.log2() / ideal));
        assert!(close(measures.mrr_at_10, 0.1));
        assert!(close(measures.recall_at_10, 1.0 / 3.0) && close(measures.recall_at_100, 2.0 / 3.0));
    }

    #[test]
    fn perfect_ranking_has_measures_of_one_and_empty_ranking_of_zero() {
        let judged = [("a", 2.0), ("b", 1.0)];
        let perfect = of(&["a", "b", "x"], &judged);
        assert_eq!((perfect.ndcg_at_10, perfect.mrr_at_10, perfect.recall_at_10), (1.0, 1.0, 1.0));
        assert_eq!(of(&[], &judged), Measures::default());
        assert_eq!(of(&["a"], &[]), Measures::default());
        assert_eq!(Measures::mean(&[]), Measures::default());
        assert_eq!(Measures::mean(&[perfect, Measures::default()]).ndcg_at_10, 0.5);
        assert!(of(&[], &[("a", 1.0)]).ndcg_at_10.is_sign_positive(), "it is printed without a sign");
    }

    /// A ranking of some of thirty items, and the gains of some of them.
    fn judged_ranking() -> impl Strategy<Value = (Vec<u8>, HashMap<u8, f64>)> {
        let ranking = prop::collection::vec(0_u8..30, 0..30).prop_map(crate::distinct);
        let gains = prop::collection::hash_map(0_u8..30, (0_u8..4).prop_map(f64::from), 0..12);
        (ranking, gains)
    }

    proptest! {
        #[test]
        fn measures_are_between_zero_and_one((ranking, gains) in judged_ranking()) {
            let m = Measures::of(&ranking, &gains);
            for value in [m.ndcg_at_10, m.mrr_at_10, m.recall_at_10, m.recall_at_100] {
                prop_assert!((0.0..=1.0 + 1e-12).contains(&value), "{m:?}");
            }
            prop_assert!(m.recall_at_10 <= m.recall_at_100);
        }

        #[test]
        fn moving_a_relevant_item_up_never_lowers_a_measure((ranking, gains) in judged_ranking(), at in 1_usize..29) {
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
        fn ideal_ranking_has_ndcg_one((_, gains) in judged_ranking()) {
            let mut best: Vec<u8> = gains.keys().copied().collect();
            best.sort_by(|a, b| gains[b].total_cmp(&gains[a]));
            let expected = if gains.values().any(|&gain| gain > 0.0) { 1.0 } else { 0.0 };
            prop_assert!(close(Measures::of(&best, &gains).ndcg_at_10, expected));
        }

        #[test]
        fn appended_unjudged_items_change_no_measure((ranking, gains) in judged_ranking()) {
            let longer: Vec<u8> = ranking.iter().copied().chain(100..200).collect();
            prop_assert_eq!(Measures::of(&longer, &gains), Measures::of(&ranking, &gains));
        }
    }
}
