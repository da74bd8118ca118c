use std::collections::BTreeMap;

use lkr_retrieval::{
    Explain, ExplainedResult, LayerHit, Layers, LegReport, RerankReport, SearchResponse, SearchResult,
    Summary, SummaryKind,
};
use serde::Serialize;
use utoipa::ToSchema;

/// The response to a search.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SearchAnswer {
    query: String,
    /// The results, best first.
    results: Vec<SearchResultItem>,
    layers: LayersItem,
    /// Null unless `summarize` is true.
    #[schema(required)]
    summary: Option<SummaryItem>,
    warnings: Vec<String>,
    took_ms: u64,
    /// Present if `explain` is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    explain: Option<ExplainItem>,
}

impl From<&SearchResponse> for SearchAnswer {
    fn from(response: &SearchResponse) -> Self {
        Self {
            query: response.query.clone(),
            results: response.results.iter().map(SearchResultItem::from).collect(),
            layers: LayersItem::from(&response.layers),
            summary: response.summary.as_ref().map(SummaryItem::from),
            warnings: response.warnings.clone(),
            took_ms: response.took_ms,
            explain: response.explain.as_ref().map(ExplainItem::from),
        }
    }
}

/// A chunk that matches the query.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SearchResultItem {
    chunk_id: String,
    doc_id: String,
    title: String,
    source: String,
    space: String,
    category: String,
    /// The headings above the chunk, outermost first.
    path: Vec<String>,
    #[schema(required)]
    page_start: Option<u32>,
    #[schema(required)]
    page_end: Option<u32>,
    /// The position of the first code point in the document's extracted text.
    char_start: u32,
    char_end: u32,
    text: String,
    /// Ranges of `text`, in code points, that match words and phrases of the query.
    highlights: Vec<[u32; 2]>,
    /// The fused score, or the reranker's score. It decreases from the first result to the last; results with a literal
    /// match rank above the others.
    score: f32,
    scores: ScoresItem,
}

/// The parts of a score; null if a leg did not list the chunk.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ScoresItem {
    #[schema(required)]
    l1: Option<f32>,
    #[schema(required)]
    l2: Option<f32>,
    #[schema(required)]
    l3: Option<f32>,
    #[schema(required)]
    dense: Option<f32>,
    #[schema(required)]
    sparse: Option<f32>,
}

impl From<&SearchResult> for SearchResultItem {
    fn from(result: &SearchResult) -> Self {
        let scores = result.scores;
        Self {
            chunk_id: result.chunk_id.to_string(),
            doc_id: result.doc_id.to_string(),
            title: result.title.clone(),
            source: result.source.clone(),
            space: result.space.to_string(),
            category: result.category.clone(),
            path: result.path.clone(),
            page_start: result.page_start,
            page_end: result.page_end,
            char_start: result.char_start,
            char_end: result.char_end,
            text: result.text.clone(),
            highlights: result.highlights.iter().map(|&(start, end)| [start, end]).collect(),
            score: result.score,
            scores: ScoresItem {
                l1: scores.l1,
                l2: scores.l2,
                l3: scores.l3,
                dense: scores.dense,
                sparse: scores.sparse,
            },
        }
    }
}

/// The hits of the upper layers that contributed to the results.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LayersItem {
    l1: Vec<LayerHitItem>,
    l2: Vec<LayerHitItem>,
    l3: Vec<LayerHitItem>,
}

/// A hit of an upper layer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LayerHitItem {
    id: String,
    doc_id: String,
    title: String,
    summary: String,
    score: f32,
}

impl From<&Layers> for LayersItem {
    fn from(layers: &Layers) -> Self {
        let items = |hits: &[LayerHit]| hits.iter().map(LayerHitItem::from).collect();
        Self { l1: items(&layers.l1), l2: items(&layers.l2), l3: items(&layers.l3) }
    }
}

impl From<&LayerHit> for LayerHitItem {
    fn from(hit: &LayerHit) -> Self {
        Self {
            id: hit.id.to_string(),
            doc_id: hit.doc_id.to_string(),
            title: hit.title.clone(),
            summary: hit.summary.clone(),
            score: hit.score,
        }
    }
}

/// A summary of the results.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SummaryItem {
    pub(crate) text: String,
    citations: Vec<CitationItem>,
    /// The language model that generated it; null for an extractive summary.
    #[schema(required)]
    model: Option<String>,
    /// generated or extractive
    kind: &'static str,
}

/// The end of a streamed summary: the whole summary, and warnings about it.
#[derive(Debug, Serialize)]
pub(crate) struct SummaryDone<'a> {
    #[serde(flatten)]
    pub(crate) summary: SummaryItem,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) warnings: Option<&'a [String]>,
}

/// The chunk that a citation marker refers to.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CitationItem {
    marker: String,
    chunk_id: String,
    doc_id: String,
}

impl From<&Summary> for SummaryItem {
    fn from(summary: &Summary) -> Self {
        let citations = summary.citations.iter().map(|citation| CitationItem {
            marker: citation.marker.clone(),
            chunk_id: citation.chunk_id.to_string(),
            doc_id: citation.doc_id.to_string(),
        });
        Self {
            text: summary.text.clone(),
            citations: citations.collect(),
            model: summary.model.clone(),
            kind: match summary.kind {
                SummaryKind::Generated => "generated",
                SummaryKind::Extractive => "extractive",
            },
        }
    }
}

/// How the results were ranked.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExplainItem {
    legs: Vec<LegItem>,
    /// Null if no reranker was used.
    #[schema(required)]
    rerank: Option<RerankItem>,
    results: Vec<ExplainedItem>,
}

/// The work of a reranker.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RerankItem {
    model: String,
    /// The number of candidates that it scored.
    candidates: usize,
    ms: f64,
}

/// The contribution of a leg.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LegItem {
    /// l1, l2, l3 or chunks
    layer: &'static str,
    /// dense or sparse
    kind: &'static str,
    weight: f32,
    candidates: usize,
    ms: f64,
}

/// The ranking of a result: its rank and score in each leg (`l1_dense`, …), null if a leg did not list it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExplainedItem {
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
