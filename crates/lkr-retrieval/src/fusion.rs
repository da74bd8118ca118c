//! Fusion of ranked lists. Pure functions.
//!
//! Graded fusion is reciprocal-rank fusion (Cormack, Clarke and Büttcher 2009) over ranks that are derived from score
//! distances; the grading, the leg weights and the layer weights are this project's own.
//! See docs/studies.md#graded-fusion.

use lkr_domain::{Layer, PointId};
use lkr_text::Overlap;

use crate::{LegKind, ids::IdMap};

/// The constant of reciprocal-rank fusion, as in Cormack, Clarke and Büttcher 2009. The larger it is, the less the
/// first ranks stand out. See docs/studies.md#graded-fusion.
const K: f64 = 60.0;
/// The graded rank distance between the best sparse score and score 0: 61 × 0.2. See docs/studies.md#graded-fusion.
const SPARSE_SCALE: f64 = 12.2;
/// The number of hits of a leg that are graded by their own scores. Hits behind them are graded like the last of them,
/// so that the first results do not depend on the requested number. See docs/studies.md#graded-fusion.
const GRADED_DEPTH: usize = 100;
/// The rank at which a leg's separation is measured. See docs/studies.md#leg-weights.
const SEPARATION_RANK: usize = 10;
/// The least separation of a sparse leg in the ratio of the leg weights. See docs/studies.md#leg-weights.
const MIN_SPARSE_SEPARATION: f64 = 0.05;
/// The largest ratio between the weights of the two legs. See docs/studies.md#leg-weights.
const MAX_WEIGHT_RATIO: f64 = 4.0;
/// The sum of the weights of a layer's two legs, as in plain fusion. See docs/studies.md#leg-weights.
const TOTAL_WEIGHT: f64 = 2.0;

/// The share of the upper layers' evidence that is dropped if all of the best chunks are below headings. Headings are
/// part of every chunk's indexed text, so the layers add little. See docs/studies.md#headings-as-evidence.
const HEADED_DISCOUNT: f64 = 0.75;
/// The weight of a heading that names the whole query, in the unit of a leg that ranks the chunk first.
/// See docs/studies.md#headings-as-evidence.
const HEADING_WEIGHT: f64 = 0.122;
/// The least share of a heading's words that the query must contain; below it, the heading is mostly about something
/// else. See docs/studies.md#headings-as-evidence.
const MIN_HEADING_COVERAGE: f64 = 0.5;

/// The weight λ of a layer's evidence beside the chunk's own. L3, the nearest node, says most; L2 says least, because
/// its headings are part of every chunk's indexed text. See docs/studies.md#layer-weights.
pub(crate) const fn layer_weight(layer: Layer) -> f64 {
    match layer {
        Layer::L1 => 0.1,
        Layer::L2 => 0.05,
        Layer::L3 => 0.2,
        Layer::Chunks => 1.0,
    }
}

/// The scored hits of one leg.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ranking {
    hits: Vec<(PointId, f32)>,
    by_id: IdMap<PointId, RankedHit>,
    full: bool,
}

/// The place of a hit in its leg.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RankedHit {
    /// Counted from 1.
    pub(crate) rank: u32,
    pub(crate) score: f32,
}

impl Ranking {
    /// Ranks `hits`, once each, by score, ties by id. `full` says whether the leg reached its limit, so that more hits may
    /// exist.
    pub(crate) fn new(mut hits: Vec<(PointId, f32)>, full: bool) -> Self {
        hits.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let by_id =
            hits.iter().zip(1..).map(|(&(id, score), rank)| (id, RankedHit { rank, score })).collect();
        Self { hits, by_id, full }
    }

    /// The place of a point, if the leg listed it.
    pub(crate) fn get(&self, id: PointId) -> Option<RankedHit> {
        self.by_id.get(&id).copied()
    }

    /// The score of a point, if the leg listed it.
    pub(crate) fn score(&self, id: PointId) -> Option<f32> {
        self.get(id).map(|hit| hit.score)
    }

    fn best(&self) -> Option<f64> {
        self.hits.first().map(|hit| f64::from(hit.1))
    }

    fn last(&self) -> f64 {
        self.hits.last().map_or(0.0, |hit| f64::from(hit.1))
    }

    /// The least score that is graded: that of rank 100, or of the last hit if there are fewer.
    fn floor(&self) -> f64 {
        self.hits.get(GRADED_DEPTH - 1).map_or_else(|| self.last(), |hit| f64::from(hit.1))
    }

    /// [`floor`](Self::floor) of a sparse leg: 0 if it listed all hits and these are fewer than 100.
    fn sparse_floor(&self) -> f64 {
        if self.full || self.hits.len() >= GRADED_DEPTH { self.floor() } else { 0.0 }
    }

    fn at_separation_rank(&self) -> Option<f64> {
        self.hits.get(SEPARATION_RANK - 1).map(|hit| f64::from(hit.1))
    }
}

/// The fused scores of a layer's points, and the weights of its legs.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FusedLegs {
    /// The score of every listed point.
    pub(crate) scores: IdMap<PointId, f64>,
    /// The dense leg's weight.
    pub(crate) dense_weight: f64,
    /// The sparse leg's weight.
    pub(crate) sparse_weight: f64,
}

impl FusedLegs {
    /// The weight of one of the legs.
    pub(crate) const fn weight(&self, kind: LegKind) -> f64 {
        match kind {
            LegKind::Dense => self.dense_weight,
            LegKind::Sparse => self.sparse_weight,
        }
    }
}

/// Fuses the two legs of a layer by graded ranks: `G = w_s/(k + ρ_s) + w_d/(k + ρ_d)` with `ρ_s = 1 + 12.2·(1 − s/s₁)`,
/// `ρ_d = 1 + cosine_scale·(c₁ − cos)` and `k = 60`, where `s₁` and `c₁` are the best scores of the legs. See
/// docs/studies.md#graded-fusion.
///
/// A point that a leg did not list gets the leg's last listed score, or score 0 if the sparse leg listed all its hits.
/// A point that one leg lists behind rank 100 is graded there like rank 100 if the other leg lists it among its first
/// 100. Points that neither leg lists among its first 100 follow by their own scores. A leg without hits has no vote.
pub(crate) fn graded_rrf(dense: &Ranking, sparse: &Ranking, cosine_scale: f32) -> FusedLegs {
    let (dense_weight, sparse_weight) = leg_weights(dense, sparse);
    let (dense_best, sparse_best) = (dense.best().unwrap_or(0.0), sparse.best().unwrap_or(0.0));
    let sparse_default = if sparse.full { sparse.last() } else { 0.0 };
    let (dense_floor, sparse_floor) = (dense.floor(), sparse.sparse_floor());
    let score = |id: PointId| {
        let (dense_score, sparse_score) = (dense.score(id).map(f64::from), sparse.score(id).map(f64::from));
        let is_graded = dense_score.is_some_and(|score| score >= dense_floor)
            || sparse_score.is_some_and(|score| score >= sparse_floor);
        let mut dense_score = dense_score.unwrap_or(dense.last());
        let mut sparse_score = sparse_score.unwrap_or(sparse_default);
        if is_graded {
            (dense_score, sparse_score) = (dense_score.max(dense_floor), sparse_score.max(sparse_floor));
        }
        let sparse_rank = 1.0 + SPARSE_SCALE * relative_distance(sparse_best, sparse_score);
        let dense_rank = 1.0 + f64::from(cosine_scale) * (dense_best - dense_score);
        sparse_weight / (K + sparse_rank) + dense_weight / (K + dense_rank)
    };
    let scores = listed([dense, sparse]).map(|id| (id, score(id))).collect();
    FusedLegs { scores, dense_weight, sparse_weight }
}

/// Fuses the two legs of a layer by plain reciprocal-rank fusion, the sum of `1/(60 + rank)` (Cormack, Clarke and
/// Büttcher 2009).
pub(crate) fn rrf(dense: &Ranking, sparse: &Ranking) -> FusedLegs {
    let weight = |ranking: &Ranking| if ranking.hits.is_empty() { 0.0 } else { 1.0 };
    let share = |hit: Option<RankedHit>| hit.map_or(0.0, |hit| 1.0 / (K + f64::from(hit.rank)));
    let score = |id: PointId| share(sparse.get(id)) + share(dense.get(id));
    let scores = listed([dense, sparse]).map(|id| (id, score(id))).collect();
    FusedLegs { scores, dense_weight: weight(dense), sparse_weight: weight(sparse) }
}

/// The fused scores of the nodes that contain a chunk; `None` for nodes that no leg listed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct ParentScores {
    pub(crate) l1: Option<f64>,
    pub(crate) l2: Option<f64>,
    pub(crate) l3: Option<f64>,
}

/// A chunk's score with the weighted evidence of the upper layers: `F = G(chunk) + 0.2·G(L3) + 0.05·G(L2) + 0.1·G(L1)`.
/// Nodes that were not listed add 0, so a chunk never falls below its own score. See docs/studies.md#layer-weights.
pub(crate) fn with_weighted_parents(chunk: f64, parents: ParentScores) -> f64 {
    let [l1, l2, l3] = [parents.l1, parents.l2, parents.l3].map(Option::unwrap_or_default);
    chunk + layer_weight(Layer::L1) * l1 + layer_weight(Layer::L2) * l2 + layer_weight(Layer::L3) * l3
}

/// A chunk's score with the upper layers at equal weights, for plain fusion.
pub(crate) fn with_equal_parents(chunk: f64, parents: ParentScores) -> f64 {
    let [l1, l2, l3] = [parents.l1, parents.l2, parents.l3].map(Option::unwrap_or_default);
    chunk + l3 + l2 + l1
}

/// The share of the query's words in a heading; 0 if the query contains less than half of the heading's own words.
/// See docs/studies.md#headings-as-evidence.
pub(crate) fn heading_share(Overlap { of_query, of_text }: Overlap) -> f64 {
    if of_text >= MIN_HEADING_COVERAGE { of_query } else { 0.0 }
}

/// What a heading adds to the score of the chunks right below it: `0.122·h/(k + 1)`, where `h` is the share of the
/// query in it. See docs/studies.md#headings-as-evidence.
pub(crate) fn heading_evidence(share: f64) -> f64 {
    HEADING_WEIGHT * share / (K + 1.0)
}

/// The highest score of layered search with graded fusion: every leg of every layer ranks first, and the heading names the
/// whole query.
pub(crate) const fn best_graded_score() -> f64 {
    let layers = layer_weight(Layer::L1) + layer_weight(Layer::L2) + layer_weight(Layer::L3);
    (TOTAL_WEIGHT * (layer_weight(Layer::Chunks) + layers) + HEADING_WEIGHT) / (K + 1.0)
}

/// The share of the upper layers' evidence that counts: `1 − ¾·φ`, where `φ` is the share of the best chunks that are
/// below headings. See docs/studies.md#headings-as-evidence.
pub(crate) fn parent_share(headed: f64) -> f64 {
    1.0 - HEADED_DISCOUNT * headed
}

/// The weights of a dense and a sparse leg: `w_d/w_s = (2·Δ_d / max(Δ_s, 0.05))^¼` between ¼ and 4, in sum 2. A leg
/// without hits has weight 0, and the other leg gets its share. See docs/studies.md#leg-weights.
///
/// `Δ_d = c₁ − c₁₀` and `Δ_s = (s₁ − s₁₀)/s₁`. A list that ends before rank 10 is measured at its last hit; a sparse
/// list that is not full at score 0, because all further points have that score.
fn leg_weights(dense: &Ranking, sparse: &Ranking) -> (f64, f64) {
    let (Some(dense_best), Some(sparse_best)) = (dense.best(), sparse.best()) else {
        let share = |ranking: &Ranking| {
            if ranking.hits.is_empty() { 0.0 } else { TOTAL_WEIGHT }
        };
        return (share(dense), share(sparse));
    };
    let sparse_tenth =
        sparse.at_separation_rank().unwrap_or_else(|| if sparse.full { sparse.last() } else { 0.0 });
    let dense_tenth = dense.at_separation_rank().unwrap_or_else(|| dense.last());
    let sparse_separation = relative_distance(sparse_best, sparse_tenth).max(MIN_SPARSE_SEPARATION);
    let dense_separation = (dense_best - dense_tenth).max(0.0);
    let ratio = (2.0 * dense_separation / sparse_separation)
        .powf(0.25)
        .clamp(MAX_WEIGHT_RATIO.recip(), MAX_WEIGHT_RATIO);
    let sparse_weight = TOTAL_WEIGHT / (1.0 + ratio);
    (TOTAL_WEIGHT - sparse_weight, sparse_weight)
}

/// The distance of `score` below `best` as a fraction of `best`: 0 at the best score, 1 at score 0.
fn relative_distance(best: f64, score: f64) -> f64 {
    if best > 0.0 { (1.0 - score / best).clamp(0.0, 1.0) } else { 0.0 }
}

fn listed(rankings: [&Ranking; 2]) -> impl Iterator<Item = PointId> {
    let [first, second] = rankings;
    // The length of a chain is known, so a map of the ids gets its room at once.
    first.hits.iter().chain(&second.hits).map(|hit| hit.0)
}

#[cfg(test)]
mod tests;
