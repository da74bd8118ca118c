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
fn graded_rrf_matches_hand_calculation() {
    let dense = ranking(&[(1, 0.75), (2, 0.5)], false);
    let sparse = ranking(&[(2, 8.0), (3, 4.0)], true);
    let fused = graded_rrf(&dense, &sparse, SCALE);
    // Δ_d = 0.25 and Δ_s = 0.5, so the ratio is 1.
    close(fused.dense_weight, 1.0);
    close(fused.sparse_weight, 1.0);
    let half = 1.0 + SPARSE_SCALE / 2.0;
    let quarter = 1.0 + f64::from(SCALE) * 0.25;
    close(fused.scores[&id(2)], 1.0 / 61.0 + 1.0 / (K + quarter));
    // A point that one leg did not list gets that leg's last listed score.
    close(fused.scores[&id(1)], 1.0 / (K + half) + 1.0 / 61.0);
    close(fused.scores[&id(3)], 1.0 / (K + half) + 1.0 / (K + quarter));
}

#[test]
fn graded_rrf_gives_score_zero_to_points_missing_from_a_complete_sparse_list() {
    let dense = ranking(&[(1, 0.5), (2, 0.5)], false);
    let listed = [(2, 8.0), (3, 8.0)];
    let (full, short) = (
        graded_rrf(&dense, &ranking(&listed, true), SCALE),
        graded_rrf(&dense, &ranking(&listed, false), SCALE),
    );
    assert_eq!(full.scores[&id(1)], full.scores[&id(2)]);
    close(short.scores[&id(2)] - short.scores[&id(1)], short.sparse_weight * (1.0 / 61.0 - 1.0 / 73.2));
}

#[test]
fn graded_rrf_first_scores_are_independent_of_list_length() {
    let dense: Vec<_> = (0..240).map(|n: u8| (n, 0.9 - f32::from(n) / 400.0)).collect();
    let sparse: Vec<_> = (0..240).map(|n: u8| (239 - n, 20.0 - f32::from(n) / 16.0)).collect();
    let short = graded_rrf(&ranking(&dense[..100], true), &ranking(&sparse[..100], true), SCALE);
    let long = graded_rrf(&ranking(&dense, true), &ranking(&sparse, false), SCALE);
    assert_eq!((short.scores.len(), long.scores.len()), (200, 240));
    for (id, score) in &short.scores {
        assert_eq!(long.scores[id], *score);
    }
    // Points 100 to 139 are among the first 100 of neither leg.
    let least = short.scores.values().copied().fold(f64::MAX, f64::min);
    assert!((100..140).all(|n| long.scores[&id(n)] < least));
}

#[test]
fn leg_weights_favour_the_leg_that_separates_better() {
    let check = |dense: &[(u8, f32)], sparse: &[(u8, f32)], expected: f64| {
        let (dense, sparse) = leg_weights(&ranking(dense, true), &ranking(sparse, true));
        close(dense / sparse, expected);
        close(dense + sparse, TOTAL_WEIGHT);
    };
    check(&[(1, 0.75), (2, 0.25)], &[(1, 4.0), (2, 2.0)], 2_f64.powf(0.25));
    check(&[(1, 0.5), (2, 0.5)], &[(1, 4.0), (2, 2.0)], 0.25);
    check(&[(1, 1.0), (2, -1.0)], &[(1, 4.0), (2, 4.0)], 80_f64.powf(0.25));
    let ten: Vec<_> = (1..=12).map(|n| (n, 1.0 - f32::from(n) / 16.0)).collect();
    // Δ_d = 9/16 at rank 10, Δ_s = (15 − 6)/15.
    check(&ten, &ten, (2.0 * 0.5625 / 0.6_f64).powf(0.25));
    assert_eq!(leg_weights(&ranking(&[], false), &ranking(&[(1, 1.0)], false)), (0.0, 2.0));
    assert_eq!(leg_weights(&ranking(&[(1, 1.0)], false), &ranking(&[], false)), (2.0, 0.0));
    assert_eq!(leg_weights(&ranking(&[], false), &ranking(&[], false)), (0.0, 0.0));
}

#[test]
fn graded_rrf_ranks_a_single_keyword_hit_above_vague_dense_hits() {
    let dense: Vec<_> = (1..=100).map(|n| (n, 0.5 - f32::from(n) / 400.0)).collect();
    let fused = graded_rrf(&ranking(&dense, true), &ranking(&[(90, 7.0)], false), SCALE);
    assert!(fused.scores[&id(90)] > fused.scores[&id(1)]);
}

#[test]
fn rrf_matches_hand_calculation() {
    let fused = rrf(&ranking(&[(1, 0.9), (2, 0.1)], true), &ranking(&[(2, 5.0)], false));
    close(fused.scores[&id(1)], 1.0 / 61.0);
    close(fused.scores[&id(2)], 1.0 / 61.0 + 1.0 / 62.0);
}

#[test]
fn ranking_breaks_ties_by_id() {
    let tied = ranking(&[(3, 1.0), (1, 1.0), (2, 1.0)], false);
    assert_eq!(tied.hits.iter().map(|hit| hit.0).collect::<Vec<_>>(), [id(1), id(2), id(3)]);
    assert_eq!(tied.get(id(3)).unwrap().rank, 3);
}

#[test]
fn lesson_15_parents_never_lower_a_score() {
    let parents = ParentScores { l1: Some(0.03), l2: Some(0.02), l3: Some(0.01) };
    close(with_weighted_parents(0.01, parents), 0.01 + 0.1 * 0.03 + 0.05 * 0.02 + 0.2 * 0.01);
    close(with_equal_parents(0.01, parents), 0.07);
    assert_eq!(with_weighted_parents(0.01, ParentScores::default()), 0.01);
    assert_eq!(with_equal_parents(0.01, ParentScores::default()), 0.01);
}

fn hits() -> impl Strategy<Value = Vec<(u8, f32)>> {
    prop::collection::btree_map(0_u8..24, -1.0_f32..1.0, 0..16).prop_map(|map| map.into_iter().collect())
}

fn sparse_hits() -> impl Strategy<Value = Vec<(u8, f32)>> {
    let score = (1_u16..3_000).prop_map(|hundredths| f32::from(hundredths) / 100.0);
    prop::collection::btree_map(0_u8..24, score, 0..16).prop_map(|map| map.into_iter().collect())
}

fn reversed(hits: &[(u8, f32)]) -> Vec<(u8, f32)> {
    hits.iter().rev().copied().collect()
}

proptest! {
    #[test]
    fn fusion_is_independent_of_the_order_of_hits(dense in hits(), sparse in sparse_hits(), full: bool) {
        for fuse in [|d: &Ranking, s: &Ranking| graded_rrf(d, s, SCALE), |d: &Ranking, s: &Ranking| rrf(d, s)] {
            let one = fuse(&ranking(&dense, full), &ranking(&sparse, full));
            let other = fuse(&ranking(&reversed(&dense), full), &ranking(&reversed(&sparse), full));
            prop_assert_eq!(one, other);
        }
    }

    #[test]
    fn leg_without_hits_changes_no_order(sparse in sparse_hits(), full: bool) {
        let sparse = ranking(&sparse, true);
        let fused = graded_rrf(&ranking(&[], full), &sparse, SCALE);
        prop_assert_eq!(fused.dense_weight, 0.0);
        for pair in sparse.hits.windows(2) {
            let [(above, _), (below, _)] = [pair[0], pair[1]];
            prop_assert!(fused.scores[&above] >= fused.scores[&below]);
        }
        let plain = rrf(&ranking(&[], full), &sparse);
        for (hit, rank) in sparse.hits.iter().zip(1_u8..) {
            prop_assert_eq!(plain.scores[&hit.0], 1.0 / (K + f64::from(rank)));
        }
    }

    #[test]
    fn graded_rrf_is_monotonic_in_the_scores_of_both_legs(dense in hits(), sparse in sparse_hits(), full: bool) {
        let (dense, sparse) = (ranking(&dense, full), ranking(&sparse, full));
        let fused = graded_rrf(&dense, &sparse, SCALE);
        let at = |ranking: &Ranking, id: &PointId| ranking.score(*id).unwrap_or(f32::MIN);
        for (a, score_a) in &fused.scores {
            for (b, score_b) in &fused.scores {
                if at(&dense, a) >= at(&dense, b) && at(&sparse, a) >= at(&sparse, b) {
                    prop_assert!(score_a >= score_b);
                }
            }
        }
    }

    #[test]
    fn graded_rrf_scores_every_listed_point_within_bounds(dense in hits(), sparse in sparse_hits(), full: bool) {
        let (dense, sparse) = (ranking(&dense, full), ranking(&sparse, full));
        let fused = graded_rrf(&dense, &sparse, SCALE);
        for (id, _) in dense.hits.iter().chain(&sparse.hits) {
            let score = fused.scores[id];
            prop_assert!(score > 0.0 && score <= TOTAL_WEIGHT / 61.0 + 1e-12, "{}", score);
        }
    }
}
