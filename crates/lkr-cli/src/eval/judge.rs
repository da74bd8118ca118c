//! Turns search results into rankings of judged items.

use std::collections::{HashMap, HashSet};

use lkr::{CharSpan, retrieval::Ranks};
use lkr_eval::{distinct, most_overlapping};
use serde::{Deserialize, Serialize};

use crate::{
    collection::{Gold, Query},
    eval::systems::{Hit, SystemResults},
};

/// The unit of judgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Target {
    /// Documents, each ranked by its best chunk.
    Documents,
    /// Sections, ranked by the chunks that overlap them most.
    Passages,
    /// Spans that contain the answer, ranked by the chunks that overlap them most.
    Spans,
}

impl Target {
    pub(crate) const ALL: [Self; 3] = [Self::Documents, Self::Passages, Self::Spans];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Documents => "documents",
            Self::Passages => "passages",
            Self::Spans => "spans",
        }
    }
}

/// The judgements of a collection.
#[derive(Debug)]
pub(super) struct Judge<'a> {
    /// The prefix of the sources of its documents.
    pub(super) prefix: String,
    pub(super) gold: &'a Gold,
}

/// A ranking of distinct items.
#[derive(Debug)]
pub(super) struct Ranking {
    pub(super) items: Vec<String>,
    pub(super) gains: HashMap<String, f64>,
}

impl Judge<'_> {
    /// The ranking of a target; `None` if the query has no judgement of it.
    pub(super) fn ranking(&self, target: Target, query: &Query, found: &SystemResults) -> Option<Ranking> {
        let gains = gains(target, query);
        let items = distinct(hits(target, found).iter().map(|hit| self.item(target, query, hit)));
        (!gains.is_empty()).then_some(Ranking { items, gains })
    }

    /// The share of the relevant items that a leg of the layer ranks among its first `cut`, among the results.
    pub(super) fn recall(
        &self,
        target: Target,
        query: &Query,
        found: &SystemResults,
        layer: &str,
        cut: u32,
    ) -> Option<f64> {
        let gains = gains(target, query);
        let relevant = gains.values().filter(|&&gain| gain > 0.0).count();
        let listed = hits(target, found).iter().filter(|hit| best_rank(&hit.ranks, layer) <= Some(cut));
        let listed: HashSet<String> = listed
            .filter(|hit| best_rank(&hit.ranks, layer).is_some())
            .map(|hit| self.item(target, query, hit))
            .filter(|item| gains.get(item).is_some_and(|&gain| gain > 0.0))
            .collect();
        (relevant > 0).then(|| listed.len() as f64 / relevant as f64)
    }

    /// The results in the order of one leg; `None` if the query has no judgement of the target.
    pub(super) fn ranking_by(
        &self,
        target: Target,
        query: &Query,
        found: &SystemResults,
        leg: &str,
    ) -> Option<Ranking> {
        let gains = gains(target, query);
        let ranked = hits(target, found).iter().filter_map(|hit| Some((rank_in(&hit.ranks, leg)?, hit)));
        let mut ranked: Vec<_> = ranked.collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        let items = distinct(ranked.into_iter().map(|(_, hit)| self.item(target, query, hit)));
        (!gains.is_empty()).then_some(Ranking { items, gains })
    }

    fn item(&self, target: Target, query: &Query, hit: &Hit) -> String {
        let document = hit.source.strip_prefix(&self.prefix).unwrap_or(&hit.source);
        let unit = match target {
            Target::Documents => Some(document.to_owned()),
            Target::Passages => self.section(document, query, hit.span),
            Target::Spans => most_overlapping(hit.span, &units(document, query)).cloned(),
        };
        unit.unwrap_or_else(|| hit.chunk_id.clone())
    }

    /// The judged section that a chunk overlaps most. Without one, the section without a gain that it overlaps most.
    fn section(&self, document: &str, query: &Query, chunk: CharSpan) -> Option<String> {
        let sections = self.gold.sections.get(document)?;
        let judged: Vec<_> =
            sections.iter().filter(|(_, id)| query.passages.contains_key(id)).cloned().collect();
        most_overlapping(chunk, &judged).or_else(|| most_overlapping(chunk, sections)).cloned()
    }
}

fn hits(target: Target, found: &SystemResults) -> &[Hit] {
    match target {
        Target::Documents => &found.documents,
        Target::Passages | Target::Spans => &found.chunks,
    }
}

fn gains(target: Target, query: &Query) -> HashMap<String, f64> {
    match target {
        Target::Documents => query.documents.clone(),
        Target::Passages => query.passages.clone(),
        Target::Spans => {
            let spans = query.spans.keys().flat_map(|document| units(document, query));
            spans.map(|(_, unit)| (unit, 1.0)).collect()
        }
    }
}

/// The judged spans of a document with their names.
fn units(document: &str, query: &Query) -> Vec<(CharSpan, String)> {
    let spans = query.spans.get(document).into_iter().flatten();
    spans.map(|&span| (span, format!("{document} {} to {}", span.start, span.end))).collect()
}

fn rank_in(ranks: &Ranks, leg: &str) -> Option<u32> {
    ranks.named().into_iter().find_map(|(name, rank)| rank.filter(|_| name == leg))
}

/// The better rank of the two legs of a layer.
fn best_rank(ranks: &Ranks, layer: &str) -> Option<u32> {
    let of_layer = ranks.named().into_iter().filter(|(name, _)| name.starts_with(layer));
    of_layer.filter_map(|(_, rank)| rank).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(chunk: &str, source: &str, start: u32, end: u32) -> Hit {
        let ranks = Ranks { l1_sparse: Some(12), chunks_dense: Some(3), ..Ranks::default() };
        Hit {
            chunk_id: chunk.to_owned(),
            source: source.to_owned(),
            span: CharSpan { start, end },
            text: String::new(),
            ranks,
        }
    }

    #[test]
    fn chunks_count_for_the_judged_items_that_they_overlap() {
        let span = |start, end| CharSpan { start, end };
        let sections =
            [("d".to_owned(), vec![(span(0, 10), "d#0".to_owned()), (span(10, 30), "d#1".to_owned())])];
        let query = Query {
            id: "q".to_owned(),
            text: "what".to_owned(),
            documents: HashMap::from([("d".to_owned(), 1.0)]),
            passages: HashMap::from([("d#1".to_owned(), 1.0)]),
            spans: HashMap::from([("d".to_owned(), vec![span(12, 14)])]),
        };
        let gold = Gold { queries: vec![query.clone()], sections: sections.into() };
        let judge = Judge { prefix: "c:".to_owned(), gold: &gold };
        let chunks = vec![
            hit("1", "c:e", 0, 5),
            hit("2", "c:d", 4, 13),
            hit("3", "c:d", 14, 30),
            hit("4", "c:d", 0, 8),
        ];
        let found = SystemResults { documents: chunks.clone(), chunks, took: std::time::Duration::ZERO };
        let items = |target| judge.ranking(target, &query, &found).unwrap().items;
        assert_eq!(items(Target::Documents), ["e", "d"]);
        assert_eq!(items(Target::Passages), ["1", "d#1", "d#0"]);
        assert_eq!(items(Target::Spans), ["1", "d 12 to 14", "3", "4"]);

        let recall = |layer, cut| judge.recall(Target::Passages, &query, &found, layer, cut).unwrap();
        assert_eq!(
            (recall("l1", 10), recall("l1", 100), recall("l2", 100), recall("chunks", 10)),
            (0.0, 1.0, 0.0, 1.0)
        );
        let by = |leg| judge.ranking_by(Target::Documents, &query, &found, leg).unwrap().items;
        assert_eq!((by("l1_sparse"), by("l2_dense")), (vec!["e".to_owned(), "d".to_owned()], Vec::new()));
        let unjudged = Query { passages: HashMap::new(), ..query.clone() };
        assert!(judge.ranking(Target::Passages, &unjudged, &found).is_none());
    }
}
