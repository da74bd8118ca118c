//! From what the legs listed to chunks in the order of their fused scores.

use std::collections::HashMap;

use lkr_catalog::l1_id;
use lkr_domain::{DocId, Layer, PointId};
use lkr_vectors::PointOrigin;

use crate::{
    Fusion, LegKind, LegScores, Ranks, Scores,
    fusion::{self, Fused, Parents, Ranking},
    legs::{Leg, Legs},
    order::order,
};

/// A chunk and what speaks for it.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    /// The chunk.
    pub(crate) id: PointId,
    /// Where it comes from.
    pub(crate) origin: PointOrigin,
    /// Its fused score with the evidence of all layers.
    pub(crate) fused: f32,
    /// What of that the layers above have added.
    pub(crate) above: f32,
    /// How far its heading names what is asked for, from 0 to 1; 0 where headings do not count.
    pub(crate) heading: f32,
    /// Whether it holds what was asked for as it stands.
    pub(crate) exact: bool,
    /// The reranker's score, where it was shown to it.
    pub(crate) reranked: Option<f32>,
    /// What it is shown with.
    pub(crate) score: f32,
    /// What the fused score is made of.
    pub(crate) scores: Scores,
}

/// Candidates in their order, and the layers that they were made of.
#[derive(Debug)]
pub(crate) struct Ranked {
    /// At first all chunks that were listed, in the end those that make the page.
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
    fused: Fused,
    /// What the layer's reciprocal ranks are multiplied by in a chunk's score.
    factor: f64,
}

/// How to rank.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    pub(crate) fusion: Fusion,
    /// How far the cosines of the model spread.
    pub(crate) cosine_scale: f32,
}

/// Fuses the legs and ranks the chunks that they listed.
pub(crate) fn rank(legs: &Legs, rule: Rule) -> Ranked {
    let layers: Vec<_> = Layer::ALL.into_iter().filter_map(|layer| rank_layer(legs, layer, rule)).collect();
    let mut candidates = candidates(legs, &layers, rule.fusion);
    order(&mut candidates);
    Ranked { candidates, layers }
}

/// A listed node that a candidate lies in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Lead {
    /// The node.
    pub(crate) id: PointId,
    /// Its document.
    pub(crate) doc_id: DocId,
    /// Its fused score within its layer.
    pub(crate) score: f32,
}

impl Ranked {
    /// Takes note that of the layers above only this share counts.
    pub(crate) fn count_above(&mut self, share: f64) {
        let above = self.layers.iter_mut().filter(|ranked| ranked.layer != Layer::Chunks);
        above.for_each(|ranked| ranked.factor *= share);
    }

    /// The listed nodes of an upper layer that the candidates lie in, the best first, ties by id.
    pub(crate) fn led_from(&self, layer: Layer) -> Vec<Lead> {
        let Some(ranked) = self.layers.iter().find(|ranked| ranked.layer == layer) else {
            return Vec::new();
        };
        let lead = |candidate: &Candidate| {
            let id = node_in(layer, candidate.id, &candidate.origin)?;
            Some(Lead { id, doc_id: candidate.origin.doc_id, score: ranked.score(id)? as f32 })
        };
        let mut leads: Vec<_> = self.candidates.iter().filter_map(lead).collect();
        leads.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
        leads.dedup();
        leads
    }

    /// The ranks and scores of every candidate in every leg, in the order of the candidates.
    pub(crate) fn by_leg(&self) -> Vec<(Ranks, LegScores)> {
        let mut all = vec![(Ranks::default(), LegScores::default()); self.candidates.len()];
        for layer in &self.layers {
            for (kind, ranking) in [(LegKind::Dense, &layer.dense), (LegKind::Sparse, &layer.sparse)] {
                let (ranks, scores) = (ranking.ranks(), ranking.scores());
                for (candidate, (rank, score)) in self.candidates.iter().zip(&mut all) {
                    let node = node_in(layer.layer, candidate.id, &candidate.origin);
                    *rank.of(layer.layer, kind) = node.and_then(|id| ranks.get(&id).copied());
                    *score.of(layer.layer, kind) = node.and_then(|id| scores.get(&id).copied());
                }
            }
        }
        all
    }
}

impl RankedLayer {
    /// The fused score of a point that was listed.
    fn score(&self, id: PointId) -> Option<f64> {
        self.fused.scores.get(&id).copied()
    }

    /// The factor of a leg's reciprocal ranks in a chunk's score.
    pub(crate) fn weight(&self, kind: LegKind) -> f32 {
        (self.factor * self.fused.weight(kind)) as f32
    }
}

/// The point of `layer` that is the chunk `id` or that it lies in.
fn node_in(layer: Layer, id: PointId, origin: &PointOrigin) -> Option<PointId> {
    match layer {
        Layer::L1 => Some(l1_id(origin.doc_id, origin.revision)),
        Layer::L2 => origin.l2,
        Layer::L3 => origin.l3,
        Layer::Chunks => Some(id),
    }
}

fn rank_layer(legs: &Legs, layer: Layer, rule: Rule) -> Option<RankedLayer> {
    let ranking = |kind| {
        let leg = legs.all.iter().find(|leg| leg.layer == layer && leg.kind == kind)?;
        Some(Ranking::new(leg.hits.iter().map(|hit| (hit.id, hit.score)).collect(), leg.full))
    };
    let (dense, sparse) = (ranking(LegKind::Dense)?, ranking(LegKind::Sparse)?);
    let (fused, factor) = match rule.fusion {
        Fusion::Graded => (fusion::graded(&dense, &sparse, rule.cosine_scale), fusion::lambda(layer)),
        Fusion::Rrf => (fusion::reciprocal(&dense, &sparse), 1.0),
    };
    Some(RankedLayer { layer, dense, sparse, fused, factor })
}

fn candidates(legs: &Legs, layers: &[RankedLayer], fusion: Fusion) -> Vec<Candidate> {
    let Some(chunks) = layers.iter().find(|ranked| ranked.layer == Layer::Chunks) else {
        return Vec::new();
    };
    let (cosines, keywords) = (chunks.dense.scores(), chunks.sparse.scores());
    let candidate = |(id, origin): (PointId, PointOrigin)| {
        let parent = |layer| {
            let ranked = layers.iter().find(|ranked| ranked.layer == layer)?;
            ranked.score(node_in(layer, id, &origin)?)
        };
        let parents = Parents { l1: parent(Layer::L1), l2: parent(Layer::L2), l3: parent(Layer::L3) };
        let own = chunks.score(id)?;
        let score = match fusion {
            Fusion::Graded => fusion::with_parents(own, parents),
            Fusion::Rrf => fusion::alike_with_parents(own, parents),
        };
        let small = |score: Option<f64>| score.map(|score| score as f32);
        let scores = Scores {
            l1: small(parents.l1),
            l2: small(parents.l2),
            l3: small(parents.l3),
            dense: cosines.get(&id).copied(),
            sparse: keywords.get(&id).copied(),
        };
        let (fused, above) = (score as f32, (score - own) as f32);
        let plain = Candidate {
            id,
            origin,
            fused,
            above,
            heading: 0.0,
            exact: false,
            reranked: None,
            score: fused,
            scores,
        };
        Some(plain)
    };
    origins(legs).into_iter().filter_map(candidate).collect()
}

/// The chunks that were listed, once each.
fn origins(legs: &Legs) -> HashMap<PointId, PointOrigin> {
    let chunks = legs.all.iter().filter(|leg: &&Leg| leg.layer == Layer::Chunks);
    chunks.flat_map(|leg| &leg.hits).map(|hit| (hit.id, hit.origin)).collect()
}
