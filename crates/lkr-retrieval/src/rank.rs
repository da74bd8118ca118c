//! Ranking: fuses the hits of the legs into chunks sorted by score.

use lkr_domain::{DocId, Layer, PointId};
use lkr_vectors::PointOrigin;

use crate::{
    Fusion, LegKind, LegScores, Ranks, Scores,
    candidate::{self, Candidate},
    fusion::{self, FusedLegs, ParentScores, Ranking},
    ids::IdMap,
    legs::{Leg, Legs},
};

/// Sorted candidates, and the layers that they were ranked by.
#[derive(Debug)]
pub(crate) struct Ranked {
    /// At first all chunks that a leg listed, in the end those of the page.
    pub(crate) candidates: Vec<Candidate>,
    /// Every layer of the mode.
    pub(crate) layers: Vec<RankedLayer>,
}

/// A layer's two rankings and their fusion.
#[derive(Debug)]
pub(crate) struct RankedLayer {
    pub(crate) layer: Layer,
    dense: Ranking,
    sparse: Ranking,
    fused: FusedLegs,
    /// The weight of the layer in a chunk's score.
    factor: f64,
    /// Of L1, the listed points by document and revision. The id of a point that is not listed is not needed, and computing
    /// one takes a digest.
    documents: IdMap<(DocId, u64), PointId>,
}

/// The parameters of fusion.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FusionParams {
    pub(crate) fusion: Fusion,
    /// The factor of cosine distances in graded ranks, which depends on the model.
    pub(crate) cosine_scale: f32,
}

/// Fuses the legs, and sorts the chunks that they listed.
pub(crate) fn rank(legs: &Legs, params: FusionParams) -> Ranked {
    let layers: Vec<_> = Layer::ALL.into_iter().filter_map(|layer| rank_layer(legs, layer, params)).collect();
    let mut candidates = candidates(legs, &layers, params.fusion);
    candidate::sort(&mut candidates);
    Ranked { candidates, layers }
}

/// A listed node of an upper layer that contains a candidate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ParentNode {
    /// The node.
    pub(crate) id: PointId,
    /// Its document.
    pub(crate) doc_id: DocId,
    /// Its fused score within its layer.
    pub(crate) score: f32,
}

impl Ranked {
    /// Multiplies the weights of the upper layers by `share`.
    pub(crate) fn scale_parents(&mut self, share: f64) {
        let upper = self.layers.iter_mut().filter(|ranked| ranked.layer != Layer::Chunks);
        upper.for_each(|ranked| ranked.factor *= share);
    }

    /// The listed nodes of an upper layer that contain candidates, the best first, ties by id.
    pub(crate) fn parents(&self, layer: Layer) -> Vec<ParentNode> {
        let Some(ranked) = self.layers.iter().find(|ranked| ranked.layer == layer) else {
            return Vec::new();
        };
        let parent = |candidate: &Candidate| {
            let id = ranked.node_of(candidate.id, &candidate.origin)?;
            Some(ParentNode { id, doc_id: candidate.origin.doc_id, score: ranked.score(id)? as f32 })
        };
        let mut parents: Vec<_> = self.candidates.iter().filter_map(parent).collect();
        parents.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
        parents.dedup();
        parents
    }

    /// The ranks and scores of every candidate in every leg, in the order of the candidates.
    pub(crate) fn by_leg(&self) -> Vec<(Ranks, LegScores)> {
        let mut all = vec![(Ranks::default(), LegScores::default()); self.candidates.len()];
        for layer in &self.layers {
            for (candidate, (rank, score)) in self.candidates.iter().zip(&mut all) {
                let Some(node) = layer.node_of(candidate.id, &candidate.origin) else { continue };
                for (kind, ranking) in [(LegKind::Dense, &layer.dense), (LegKind::Sparse, &layer.sparse)] {
                    let hit = ranking.get(node);
                    *rank.leg_mut(layer.layer, kind) = hit.map(|hit| hit.rank);
                    *score.leg_mut(layer.layer, kind) = hit.map(|hit| hit.score);
                }
            }
        }
        all
    }
}

impl RankedLayer {
    /// The point of the layer that contains the chunk `id`, or the chunk itself; `None` if there is none, or if it is an L1
    /// point that no leg listed.
    fn node_of(&self, id: PointId, origin: &PointOrigin) -> Option<PointId> {
        match self.layer {
            Layer::L1 => self.documents.get(&(origin.doc_id, origin.revision)).copied(),
            Layer::L2 => origin.l2,
            Layer::L3 => origin.l3,
            Layer::Chunks => Some(id),
        }
    }

    /// The fused score of a listed point.
    fn score(&self, id: PointId) -> Option<f64> {
        self.fused.scores.get(&id).copied()
    }

    /// The weight of a leg in a chunk's score.
    pub(crate) fn weight(&self, kind: LegKind) -> f32 {
        (self.factor * self.fused.weight(kind)) as f32
    }
}

fn rank_layer(legs: &Legs, layer: Layer, params: FusionParams) -> Option<RankedLayer> {
    let mut documents = IdMap::default();
    let mut ranking = |kind| {
        let leg = legs.all.iter().find(|leg| leg.layer == layer && leg.kind == kind)?;
        if layer == Layer::L1 {
            documents.extend(leg.hits.iter().map(|hit| ((hit.origin.doc_id, hit.origin.revision), hit.id)));
        }
        Some(Ranking::new(leg.hits.iter().map(|hit| (hit.id, hit.score)).collect(), leg.full))
    };
    let (dense, sparse) = (ranking(LegKind::Dense)?, ranking(LegKind::Sparse)?);
    let (fused, factor) = match params.fusion {
        Fusion::Graded => {
            (fusion::graded_rrf(&dense, &sparse, params.cosine_scale), fusion::layer_weight(layer))
        }
        Fusion::Rrf => (fusion::rrf(&dense, &sparse), 1.0),
    };
    Some(RankedLayer { layer, dense, sparse, fused, factor, documents })
}

fn candidates(legs: &Legs, layers: &[RankedLayer], fusion: Fusion) -> Vec<Candidate> {
    let Some(chunks) = layers.iter().find(|ranked| ranked.layer == Layer::Chunks) else {
        return Vec::new();
    };
    let to_candidate = |(id, origin): (PointId, PointOrigin)| {
        let parent = |layer| {
            let ranked = layers.iter().find(|ranked| ranked.layer == layer)?;
            ranked.score(ranked.node_of(id, &origin)?)
        };
        let parents = ParentScores { l1: parent(Layer::L1), l2: parent(Layer::L2), l3: parent(Layer::L3) };
        let chunk_score = chunks.score(id)?;
        let score = match fusion {
            Fusion::Graded => fusion::with_weighted_parents(chunk_score, parents),
            Fusion::Rrf => fusion::with_equal_parents(chunk_score, parents),
        };
        let to_f32 = |score: Option<f64>| score.map(|score| score as f32);
        let scores = Scores {
            l1: to_f32(parents.l1),
            l2: to_f32(parents.l2),
            l3: to_f32(parents.l3),
            dense: chunks.dense.score(id),
            sparse: chunks.sparse.score(id),
        };
        let (fused, parent_evidence) = (score as f32, (score - chunk_score) as f32);
        let candidate = Candidate {
            id,
            origin,
            fused,
            parent_evidence,
            heading: 0.0,
            exact: false,
            reranked: None,
            score: fused,
            scores,
        };
        Some(candidate)
    };
    origins(legs).into_iter().filter_map(to_candidate).collect()
}

/// The chunks that a leg listed, once each.
fn origins(legs: &Legs) -> IdMap<PointId, PointOrigin> {
    let mut origins = IdMap::default();
    for leg in legs.all.iter().filter(|leg: &&Leg| leg.layer == Layer::Chunks) {
        origins.extend(leg.hits.iter().map(|hit| (hit.id, hit.origin)));
    }
    origins
}
