use std::collections::BTreeMap;

use lkr_retrieval::{Explain, ExplainedResult, LegReport, RerankReport};
use serde::Serialize;
use utoipa::ToSchema;

use super::formats::Id;

/// How the results were ranked.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExplainItem {
    /// The legs that were searched.
    legs: Vec<LegItem>,
    /// Null if no reranker was used.
    #[schema(required)]
    rerank: Option<RerankItem>,
    /// The ranking of each result, in the order of the results.
    results: Vec<ExplainedItem>,
}

/// The work of a reranker.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RerankItem {
    /// The model.
    model: String,
    /// The number of candidates that it scored.
    candidates: usize,
    /// How long it took, in milliseconds.
    ms: f64,
}

/// The contribution of a leg.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LegItem {
    /// l1, l2, l3 or chunks
    #[schema(pattern = "^(l1|l2|l3|chunks)$")]
    layer: &'static str,
    /// dense or sparse
    #[schema(pattern = "^(dense|sparse)$")]
    kind: &'static str,
    /// Its weight in the fusion.
    weight: f32,
    /// The number of candidates that it listed.
    candidates: usize,
    /// How long it took, in milliseconds.
    ms: f64,
}

/// The ranking of a result: its rank and score in each leg (`l1_dense`, …), null if a leg did not list it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExplainedItem {
    /// The chunk of the result.
    #[schema(value_type = Id)]
    chunk_id: String,
    /// Ranks, from 1.
    #[schema(value_type = BTreeMap<String, Option<u32>>)]
    ranks: BTreeMap<&'static str, Option<u32>>,
    /// Cosines of dense legs and BM25 scores of sparse legs.
    #[schema(value_type = BTreeMap<String, Option<f32>>)]
    scores: BTreeMap<&'static str, Option<f32>>,
    /// The score after the fusion of the legs.
    fused: f32,
    /// How well the nearest heading above matches the query, from 0 to 1; 0 if headings do not count.
    heading: f32,
    /// Whether it ranks first because of a literal match: a phrase in quotation marks, an identifier, or the whole
    /// query.
    exact: bool,
    /// The reranker's score; null if it was not reranked.
    #[schema(required)]
    reranked: Option<f32>,
}

impl From<&Explain> for ExplainItem {
    fn from(explain: &Explain) -> Self {
        Self {
            legs: explain.legs.iter().map(LegItem::from).collect(),
            rerank: explain.rerank.as_ref().map(RerankItem::from),
            results: explain.results.iter().map(ExplainedItem::from).collect(),
        }
    }
}

impl From<&LegReport> for LegItem {
    fn from(leg: &LegReport) -> Self {
        Self {
            layer: leg.layer.name(),
            kind: leg.kind.name(),
            weight: leg.weight,
            candidates: leg.candidates,
            ms: leg.ms,
        }
    }
}

impl From<&RerankReport> for RerankItem {
    fn from(report: &RerankReport) -> Self {
        Self { model: report.model.clone(), candidates: report.candidates, ms: report.ms }
    }
}

impl From<&ExplainedResult> for ExplainedItem {
    fn from(result: &ExplainedResult) -> Self {
        Self {
            chunk_id: result.chunk_id.to_string(),
            ranks: BTreeMap::from(result.ranks.named()),
            scores: BTreeMap::from(result.scores.named()),
            fused: result.fused,
            heading: result.heading,
            exact: result.exact,
            reranked: result.reranked,
        }
    }
}
