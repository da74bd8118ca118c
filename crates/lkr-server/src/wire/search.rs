use lkr_retrieval::{LayerHit, Layers, SearchResponse, SearchResult, Summary, SummaryKind};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    explain::ExplainItem,
    formats::{Id, SpaceText, SummaryKindName},
};

/// The response to a search.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SearchAnswer {
    /// The query, without surrounding white space.
    query: String,
    /// The results, best first.
    results: Vec<SearchResultItem>,
    /// The hits of the upper layers that contributed to the results.
    layers: LayersItem,
    /// Null unless `summarize` is true.
    #[schema(required)]
    summary: Option<SummaryItem>,
    /// What the response lacks, and why; empty if nothing.
    warnings: Vec<String>,
    /// How long it took, in milliseconds.
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
    /// The chunk.
    #[schema(value_type = Id)]
    chunk_id: String,
    /// The document.
    #[schema(value_type = Id)]
    doc_id: String,
    /// The title of the document.
    title: String,
    /// Where the document comes from.
    source: String,
    /// The space that contains the document.
    #[schema(value_type = SpaceText)]
    space: String,
    /// The category of the document; empty if there is none.
    category: String,
    /// The headings above the chunk, outermost first.
    path: Vec<String>,
    /// The first page, from 1; null if the document has no pages.
    #[schema(required)]
    page_start: Option<u32>,
    /// The last page; null if the document has no pages.
    #[schema(required)]
    page_end: Option<u32>,
    /// The position of the first code point in the document's extracted text.
    char_start: u32,
    /// The position after the last code point.
    char_end: u32,
    /// The extracted text cut at char_start and char_end.
    text: String,
    /// Ranges of `text`, in code points, that match words and phrases of the query.
    highlights: Vec<[u32; 2]>,
    /// The fused score, or the reranker's score. It decreases from the first result to the last; results with a literal
    /// match rank above the others.
    score: f32,
    /// The parts of the score.
    scores: ScoresItem,
}

/// The parts of a score; null if a leg did not list the chunk.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ScoresItem {
    /// The score of its L1 document.
    #[schema(required)]
    l1: Option<f32>,
    /// The score of its L2 section.
    #[schema(required)]
    l2: Option<f32>,
    /// The score of its L3 node.
    #[schema(required)]
    l3: Option<f32>,
    /// The cosine of its vector and that of the query.
    #[schema(required)]
    dense: Option<f32>,
    /// Its BM25 score.
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
    /// Documents.
    l1: Vec<LayerHitItem>,
    /// Sections.
    l2: Vec<LayerHitItem>,
    /// Subsections and passages.
    l3: Vec<LayerHitItem>,
}

/// A hit of an upper layer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LayerHitItem {
    /// The id of the document, section or passage.
    #[schema(value_type = Id)]
    id: String,
    /// Its document.
    #[schema(value_type = Id)]
    doc_id: String,
    /// Its title.
    title: String,
    /// Its summary.
    summary: String,
    /// Its score in the layer.
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
    /// The summary, with markers of citations.
    pub(crate) text: String,
    /// What the markers refer to.
    citations: Vec<CitationItem>,
    /// The language model that generated it; null for an extractive summary.
    #[schema(required)]
    model: Option<String>,
    /// generated or extractive
    #[schema(value_type = SummaryKindName)]
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
    /// The marker in the text: [1], [2], …
    marker: String,
    /// The id of the chunk.
    #[schema(value_type = Id)]
    chunk_id: String,
    /// The document of the chunk.
    #[schema(value_type = Id)]
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
