//! Fusion of ranked lists, as pure functions. The constants were tuned by experiment on 20 collections, see docs.

use std::collections::HashMap;

use lkr_domain::{Layer, PointId};
use lkr_text::Overlap;

use crate::LegKind;

/// The constant of reciprocal-rank fusion: the larger, the less the first ranks stand out.
const K: f64 = 60.0;
/// How many ranks it is from the best keyword score down to 0: 61 × .2.
const SPARSE_SCALE: f64 = 12.2;
/// How many hits of a leg are told apart by their scores, however many it lists: what stands behind them is graded like
/// the last of these, so that the first results do not depend on how many are asked for.
const DEPTH: usize = 100;
/// The rank at which a leg's separation is measured.
const SEPARATION_RANK: usize = 10;
/// The least separation that a keyword leg is credited with.
const MIN_SPARSE_SEPARATION: f64 = 0.05;
/// How much louder one leg may speak than the other.
const MAX_WEIGHT_RATIO: f64 = 4.0;
/// What the two legs of a layer weigh together, as in plain fusion.
const TOTAL_WEIGHT: f64 = 2.0;

/// How much of the evidence of the layers above is left out where all of the best chunks stand under headings: these
/// stand in every chunk's indexed text already, and so say most of what the nodes would.
const HEADED: f64 = 0.75;
/// What a heading that says all that is asked for counts, as the weight of a leg that has it at rank 1.
const HEADING_WEIGHT: f64 = 0.122;
/// The least share of a heading's words that must be asked for: most of what it names is something else below it.
const MIN_NAMED: f64 = 0.5;

/// What a layer's evidence counts beside the chunk's own.
///
/// Chosen on the collections that may be tuned on: the nearest node says most, where texts have no headings above all;
/// L2, whose headings stand in every chunk's text already, says least.
pub(crate) const fn lambda(layer: Layer) -> f64 {
    match layer {
        Layer::L1 => 0.1,
        Layer::L2 => 0.05,
        Layer::L3 => 0.2,
        Layer::Chunks => 1.0,
    }
}

/// What one leg listed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ranking {
    hits: Vec<(PointId, f32)>,
    full: bool,
}

impl Ranking {
    /// The ranking of `hits`, whatever their order: by score, ties by id. `full` tells whether as many were listed as
    /// asked for, so that more may exist.
    pub(crate) fn new(mut hits: Vec<(PointId, f32)>, full: bool) -> Self {
        hits.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        Self { hits, full }
    }

    /// The score of each point.
    pub(crate) fn scores(&self) -> HashMap<PointId, f32> {
        self.hits.iter().copied().collect()
    }

    /// The rank of each point, counted from 1.
    pub(crate) fn ranks(&self) -> HashMap<PointId, u32> {
        self.hits.iter().zip(1..).map(|(&(id, _), rank)| (id, rank)).collect()
    }

    fn best(&self) -> Option<f64> {
        self.hits.first().map(|hit| f64::from(hit.1))
    }

    fn last(&self) -> f64 {
        self.hits.last().map_or(0.0, |hit| f64::from(hit.1))
    }

    /// The least score that is told apart: that of rank 100, or of the last hit where there are fewer.
    fn floor(&self) -> f64 {
        self.hits.get(DEPTH - 1).map_or_else(|| self.last(), |hit| f64::from(hit.1))
    }

    /// [`floor`](Self::floor) of a keyword leg: 0 where it listed all that there is, which is fewer.
    fn keyword_floor(&self) -> f64 {
        if self.full || self.hits.len() >= DEPTH { self.floor() } else { 0.0 }
    }

    fn at_separation_rank(&self) -> Option<f64> {
        self.hits.get(SEPARATION_RANK - 1).map(|hit| f64::from(hit.1))
    }
}

/// The fused scores of a layer's points, and how loud its legs spoke.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Fused {
    /// The score of every point that a leg listed.
    pub(crate) scores: HashMap<PointId, f64>,
    /// The dense leg's weight.
    pub(crate) dense_weight: f64,
    /// The sparse leg's weight.
    pub(crate) sparse_weight: f64,
}

impl Fused {
    /// The weight of one of the legs.
    pub(crate) const fn weight(&self, kind: LegKind) -> f64 {
        match kind {
            LegKind::Dense => self.dense_weight,
            LegKind::Sparse => self.sparse_weight,
        }
    }
}

/// Fuses the two legs of a layer by their graded ranks: `G = w_s/(k + ρ_s) + w_d/(k + ρ_d)` with
/// `ρ_s = 1 + 12.2·(1 − s/s₁)`, `ρ_d = 1 + cosine_scale·(c₁ − cos)` and `k = 60`.
///
/// A point that a leg did not list stands at the leg's last listed score, or at score 0 where the sparse list was not
/// full; so does one that it lists behind rank 100 where the other leg has it among its first 100. What neither has there
/// follows by its own scores. A leg that lists nothing has no vote.
pub(crate) fn graded(dense: &Ranking, sparse: &Ranking, cosine_scale: f32) -> Fused {
    let (dense_weight, sparse_weight) = weights(dense, sparse);
    let (cosines, keywords) = (dense.scores(), sparse.scores());
    let (best_cosine, best_keyword) = (dense.best().unwrap_or(0.0), sparse.best().unwrap_or(0.0));
    let absent_keyword = if sparse.full { sparse.last() } else { 0.0 };
    let (least_cosine, least_keyword) = (dense.floor(), sparse.keyword_floor());
    let score = |id: PointId| {
        let cosine = cosines.get(&id).map(|&score| f64::from(score));
        let keyword = keywords.get(&id).map(|&score| f64::from(score));
        let near = cosine.is_some_and(|cosine| cosine >= least_cosine)
            || keyword.is_some_and(|keyword| keyword >= least_keyword);
        let (mut cosine, mut keyword) = (cosine.unwrap_or(dense.last()), keyword.unwrap_or(absent_keyword));
        if near {
            (cosine, keyword) = (cosine.max(least_cosine), keyword.max(least_keyword));
        }
        let sparse_rank = 1.0 + SPARSE_SCALE * fraction_below(best_keyword, keyword);
        let dense_rank = 1.0 + f64::from(cosine_scale) * (best_cosine - cosine);
        sparse_weight / (K + sparse_rank) + dense_weight / (K + dense_rank)
    };
    let scores = listed([dense, sparse]).map(|id| (id, score(id))).collect();
    Fused { scores, dense_weight, sparse_weight }
}

/// Fuses the two legs of a layer by plain reciprocal ranks: the sum of `1/(60 + rank)`.
pub(crate) fn reciprocal(dense: &Ranking, sparse: &Ranking) -> Fused {
    let weight = |ranking: &Ranking| if ranking.hits.is_empty() { 0.0 } else { 1.0 };
    let (by_dense, by_sparse) = (dense.ranks(), sparse.ranks());
    let share = |rank: Option<&u32>| rank.map_or(0.0, |&rank| 1.0 / (K + f64::from(rank)));
    let score = |id: PointId| share(by_sparse.get(&id)) + share(by_dense.get(&id));
    let scores = listed([dense, sparse]).map(|id| (id, score(id))).collect();
    Fused { scores, dense_weight: weight(dense), sparse_weight: weight(sparse) }
}

/// The fused scores of the nodes that a chunk lies in; `None` for those that no leg listed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Parents {
    pub(crate) l1: Option<f64>,
    pub(crate) l2: Option<f64>,
    pub(crate) l3: Option<f64>,
}

/// A chunk's score with the evidence of the layers above: `F = G(chunk) + .2·G(L3) + .05·G(L2) + .1·G(L1)`. Nodes that
/// were not listed add 0, so that a chunk never falls below its own score.
pub(crate) fn with_parents(chunk: f64, parents: Parents) -> f64 {
    let [l1, l2, l3] = [parents.l1, parents.l2, parents.l3].map(Option::unwrap_or_default);
    chunk + lambda(Layer::L1) * l1 + lambda(Layer::L2) * l2 + lambda(Layer::L3) * l3
}

/// How far a heading names what is asked for: the share of the query's words that it has, where at least half of its
/// own are among them; else 0.
pub(crate) fn named(Overlap { of_query, of_text }: Overlap) -> f64 {
    if of_text >= MIN_NAMED { of_query } else { 0.0 }
}

/// What a heading adds to the score of the chunks right under it: `.122·h/(k + 1)`, where it names the share `h` of what
/// is asked for.
pub(crate) fn heading(named: f64) -> f64 {
    HEADING_WEIGHT * named / (K + 1.0)
}

/// The share of the evidence of the layers above that counts, where so many of the best chunks stand under headings:
/// `1 − ¾·φ`.
pub(crate) fn counts_above(headed: f64) -> f64 {
    1.0 - HEADED * headed
}

/// A chunk's score where all legs of all layers count alike.
pub(crate) fn alike_with_parents(chunk: f64, parents: Parents) -> f64 {
    let [l1, l2, l3] = [parents.l1, parents.l2, parents.l3].map(Option::unwrap_or_default);
    chunk + l3 + l2 + l1
}

/// The weights of a dense and a sparse leg: `w_d/w_s = (2·Δ_d / max(Δ_s, .05))^¼` within ¼ and 4, both together 2. A
/// leg that lists nothing weighs 0 and leaves its share to the other.
///
/// `Δ_d = c₁ − c₁₀` and `Δ_s = (s₁ − s₁₀)/s₁`. A list that ends before rank 10 is measured at its last hit; a sparse
/// one that is not full, at score 0, because what follows has that score.
fn weights(dense: &Ranking, sparse: &Ranking) -> (f64, f64) {
    let (Some(best_cosine), Some(best_keyword)) = (dense.best(), sparse.best()) else {
        let share = |ranking: &Ranking| {
            if ranking.hits.is_empty() { 0.0 } else { TOTAL_WEIGHT }
        };
        return (share(dense), share(sparse));
    };
    let tenth_keyword =
        sparse.at_separation_rank().unwrap_or_else(|| if sparse.full { sparse.last() } else { 0.0 });
    let tenth_cosine = dense.at_separation_rank().unwrap_or_else(|| dense.last());
    let separation_sparse = fraction_below(best_keyword, tenth_keyword).max(MIN_SPARSE_SEPARATION);
    let separation_dense = (best_cosine - tenth_cosine).max(0.0);
    let ratio = (2.0 * separation_dense / separation_sparse)
        .powf(0.25)
        .clamp(MAX_WEIGHT_RATIO.recip(), MAX_WEIGHT_RATIO);
    let sparse_weight = TOTAL_WEIGHT / (1.0 + ratio);
    (TOTAL_WEIGHT - sparse_weight, sparse_weight)
}

/// How far `score` lies below `best`, as a fraction of it: 0 at the best, 1 at score 0.
fn fraction_below(best: f64, score: f64) -> f64 {
    if best > 0.0 { (1.0 - score / best).clamp(0.0, 1.0) } else { 0.0 }
}

fn listed(rankings: [&Ranking; 2]) -> impl Iterator<Item = PointId> {
    rankings.into_iter().flat_map(|ranking| ranking.hits.iter().map(|hit| hit.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SCALE: f32 = 30.5;

    fn id(n: u8) -> PointId {
        PointId::from_bytes([n; 16])
    }

    fn ranking(hits: &[(u8, f32)], full: bool) -> Ranking {
        Ranking::new(hits.iter().map(|&(n, score)| (id(n), score)).collect(), full)
    }

    #[track_caller]
    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a} {b}");
    }

    #[test]
    fn graded_ranks_by_hand() {
        let dense = ranking(&[(1, 0.75), (2, 0.5)], false);
        let sparse = ranking(&[(2, 8.0), (3, 4.0)], true);
        let fused = graded(&dense, &sparse, SCALE);
        // Δ_d = .25, Δ_s = .5, so that the ratio is 1.
        close(fused.dense_weight, 1.0);
        close(fused.sparse_weight, 1.0);
        let half = 1.0 + SPARSE_SCALE / 2.0;
        let quarter = 1.0 + f64::from(SCALE) * 0.25;
        close(fused.scores[&id(2)], 1.0 / 61.0 + 1.0 / (K + quarter));
        // Not listed by one of the legs: at its last listed score.
        close(fused.scores[&id(1)], 1.0 / (K + half) + 1.0 / 61.0);
        close(fused.scores[&id(3)], 1.0 / (K + half) + 1.0 / (K + quarter));
    }

    #[test]
    fn what_a_short_keyword_list_leaves_out_has_score_zero() {
        let dense = ranking(&[(1, 0.5), (2, 0.5)], false);
        let listed = [(2, 8.0), (3, 8.0)];
        let (full, short) =
            (graded(&dense, &ranking(&listed, true), SCALE), graded(&dense, &ranking(&listed, false), SCALE));
        assert_eq!(full.scores[&id(1)], full.scores[&id(2)]);
        close(short.scores[&id(2)] - short.scores[&id(1)], short.sparse_weight * (1.0 / 61.0 - 1.0 / 73.2));
    }

    #[test]
    fn the_first_do_not_depend_on_how_many_are_listed() {
        let dense: Vec<_> = (0..240).map(|n: u8| (n, 0.9 - f32::from(n) / 400.0)).collect();
        let sparse: Vec<_> = (0..240).map(|n: u8| (239 - n, 20.0 - f32::from(n) / 16.0)).collect();
        let short = graded(&ranking(&dense[..100], true), &ranking(&sparse[..100], true), SCALE);
        let long = graded(&ranking(&dense, true), &ranking(&sparse, false), SCALE);
        assert_eq!((short.scores.len(), long.scores.len()), (200, 240));
        for (id, score) in &short.scores {
            assert_eq!(long.scores[id], *score);
        }
        // Those in the middle are in neither leg's first hundred.
        let least = short.scores.values().copied().fold(f64::MAX, f64::min);
        assert!((100..140).all(|n| long.scores[&id(n)] < least));
    }

    #[test]
    fn the_leg_that_separates_better_speaks_louder() {
        let check = |dense: &[(u8, f32)], sparse: &[(u8, f32)], expected: f64| {
            let (dense, sparse) = weights(&ranking(dense, true), &ranking(sparse, true));
            close(dense / sparse, expected);
            close(dense + sparse, TOTAL_WEIGHT);
        };
        check(&[(1, 0.75), (2, 0.25)], &[(1, 4.0), (2, 2.0)], 2_f64.powf(0.25));
        check(&[(1, 0.5), (2, 0.5)], &[(1, 4.0), (2, 2.0)], 0.25);
        check(&[(1, 1.0), (2, -1.0)], &[(1, 4.0), (2, 4.0)], 80_f64.powf(0.25));
        let ten: Vec<_> = (1..=12).map(|n| (n, 1.0 - f32::from(n) / 16.0)).collect();
        // Δ_d = 9/16 over rank 10, Δ_s = (15 − 6)/15.
        check(&ten, &ten, (2.0 * 0.5625 / 0.6_f64).powf(0.25));
        assert_eq!(weights(&ranking(&[], false), &ranking(&[(1, 1.0)], false)), (0.0, 2.0));
        assert_eq!(weights(&ranking(&[(1, 1.0)], false), &ranking(&[], false)), (2.0, 0.0));
        assert_eq!(weights(&ranking(&[], false), &ranking(&[], false)), (0.0, 0.0));
    }

    #[test]
    fn a_lone_exact_match_outweighs_a_vague_neighbour() {
        let dense: Vec<_> = (1..=100).map(|n| (n, 0.5 - f32::from(n) / 400.0)).collect();
        let fused = graded(&ranking(&dense, true), &ranking(&[(90, 7.0)], false), SCALE);
        assert!(fused.scores[&id(90)] > fused.scores[&id(1)]);
    }

    #[test]
    fn plain_ranks_by_hand() {
        let fused = reciprocal(&ranking(&[(1, 0.9), (2, 0.1)], true), &ranking(&[(2, 5.0)], false));
        close(fused.scores[&id(1)], 1.0 / 61.0);
        close(fused.scores[&id(2)], 1.0 / 61.0 + 1.0 / 62.0);
    }

    #[test]
    fn ties_go_by_id() {
        let turned = ranking(&[(3, 1.0), (1, 1.0), (2, 1.0)], false);
        assert_eq!(turned.hits.iter().map(|hit| hit.0).collect::<Vec<_>>(), [id(1), id(2), id(3)]);
        assert_eq!(turned.ranks()[&id(3)], 3);
    }

    #[test]
    fn lesson_15_layers_add_evidence_and_take_none() {
        let parents = Parents { l1: Some(0.03), l2: Some(0.02), l3: Some(0.01) };
        close(with_parents(0.01, parents), 0.01 + 0.1 * 0.03 + 0.05 * 0.02 + 0.2 * 0.01);
        close(alike_with_parents(0.01, parents), 0.07);
        assert_eq!(with_parents(0.01, Parents::default()), 0.01);
        assert_eq!(alike_with_parents(0.01, Parents::default()), 0.01);
    }

    fn hits() -> impl Strategy<Value = Vec<(u8, f32)>> {
        prop::collection::btree_map(0_u8..24, -1.0_f32..1.0, 0..16).prop_map(|map| map.into_iter().collect())
    }

    fn keyword_hits() -> impl Strategy<Value = Vec<(u8, f32)>> {
        prop::collection::btree_map(0_u8..24, 0.01_f32..30.0, 0..16).prop_map(|map| map.into_iter().collect())
    }

    fn turned(hits: &[(u8, f32)]) -> Vec<(u8, f32)> {
        hits.iter().rev().copied().collect()
    }

    proptest! {
        #[test]
        fn the_order_of_hits_does_not_matter(dense in hits(), sparse in keyword_hits(), full: bool) {
            for fuse in [|d: &Ranking, s: &Ranking| graded(d, s, SCALE), |d: &Ranking, s: &Ranking| reciprocal(d, s)] {
                let one = fuse(&ranking(&dense, full), &ranking(&sparse, full));
                let other = fuse(&ranking(&turned(&dense), full), &ranking(&turned(&sparse), full));
                prop_assert_eq!(one, other);
            }
        }

        #[test]
        fn a_leg_that_lists_nothing_changes_no_order(sparse in keyword_hits(), full: bool) {
            let sparse = ranking(&sparse, true);
            let fused = graded(&ranking(&[], full), &sparse, SCALE);
            prop_assert_eq!(fused.dense_weight, 0.0);
            for pair in sparse.hits.windows(2) {
                let [(above, _), (below, _)] = [pair[0], pair[1]];
                prop_assert!(fused.scores[&above] >= fused.scores[&below]);
            }
            let plain = reciprocal(&ranking(&[], full), &sparse);
            for (hit, rank) in sparse.hits.iter().zip(1_u8..) {
                prop_assert_eq!(plain.scores[&hit.0], 1.0 / (K + f64::from(rank)));
            }
        }

        #[test]
        fn better_in_both_legs_is_never_worse(dense in hits(), sparse in keyword_hits(), full: bool) {
            let (dense, sparse) = (ranking(&dense, full), ranking(&sparse, full));
            let fused = graded(&dense, &sparse, SCALE);
            let (cosines, keywords) = (dense.scores(), sparse.scores());
            let at = |scores: &HashMap<PointId, f32>, id| scores.get(id).copied().unwrap_or(f32::MIN);
            for (a, score_a) in &fused.scores {
                for (b, score_b) in &fused.scores {
                    if at(&cosines, a) >= at(&cosines, b) && at(&keywords, a) >= at(&keywords, b) {
                        prop_assert!(score_a >= score_b);
                    }
                }
            }
        }

        #[test]
        fn every_listed_point_has_a_finite_score(dense in hits(), sparse in keyword_hits(), full: bool) {
            let (dense, sparse) = (ranking(&dense, full), ranking(&sparse, full));
            let fused = graded(&dense, &sparse, SCALE);
            for (id, _) in dense.hits.iter().chain(&sparse.hits) {
                let score = fused.scores[id];
                prop_assert!(score > 0.0 && score <= TOTAL_WEIGHT / 61.0 + 1e-12, "{}", score);
            }
        }
    }
}
