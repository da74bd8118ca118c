use lkr_domain::{DocId, PointId};
use lkr_retrieval::{LayerHit, Layers, SearchResponse, SearchResult, Summary, SummaryKind};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    explain::ExplainItem,
    formats::{Id, SpaceText, SummaryKindName},
};

/// The response to a search.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SearchAnswer<'a> {
    /// The query, without surrounding white space.
    query: &'a str,
    /// The results, best first.
    results: Vec<SearchResultItem<'a>>,
    /// The hits of the upper layers that contributed to the results.
    layers: LayersItem<'a>,
    /// Null unless `summarize` is true.
    #[schema(required)]
    summary: Option<SummaryItem>,
    /// What the response lacks, and why; empty if nothing.
    warnings: &'a [String],
    /// How long it took, in milliseconds.
    took_ms: u64,
    /// Present if `explain` is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    explain: Option<ExplainItem>,
}

impl<'a> From<&'a SearchResponse> for SearchAnswer<'a> {
    fn from(response: &'a SearchResponse) -> Self {
        Self {
            query: &response.query,
            results: response.results.iter().map(SearchResultItem::from).collect(),
            layers: LayersItem::from(&response.layers),
            summary: response.summary.as_ref().map(SummaryItem::from),
            warnings: &response.warnings,
            took_ms: response.took_ms,
            explain: response.explain.as_ref().map(ExplainItem::from),
        }
    }
}

/// A chunk that matches the query.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SearchResultItem<'a> {
    /// The chunk.
    #[schema(value_type = Id)]
    chunk_id: PointId,
    /// The document.
    #[schema(value_type = Id)]
    doc_id: DocId,
    /// The title of the document.
    title: &'a str,
    /// Where the document comes from.
    source: &'a str,
    /// The space that contains the document.
    #[schema(value_type = SpaceText)]
    space: &'a str,
    /// The category of the document; empty if there is none.
    category: &'a str,
    /// The headings above the chunk, outermost first.
    path: &'a [String],
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
    text: &'a str,
    /// Ranges of `text`, in code points, that match words and phrases of the query.
    #[schema(value_type = Vec<[u32; 2]>)]
    highlights: &'a [(u32, u32)],
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

impl<'a> From<&'a SearchResult> for SearchResultItem<'a> {
    fn from(result: &'a SearchResult) -> Self {
        let scores = result.scores;
        Self {
            chunk_id: result.chunk_id,
            doc_id: result.doc_id,
            title: &result.title,
            source: &result.source,
            space: result.space.as_str(),
            category: &result.category,
            path: &result.path,
            page_start: result.page_start,
            page_end: result.page_end,
            char_start: result.char_start,
            char_end: result.char_end,
            text: &result.text,
            highlights: &result.highlights,
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
pub(crate) struct LayersItem<'a> {
    /// Documents.
    l1: Vec<LayerHitItem<'a>>,
    /// Sections.
    l2: Vec<LayerHitItem<'a>>,
    /// Subsections and passages.
    l3: Vec<LayerHitItem<'a>>,
}

/// A hit of an upper layer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LayerHitItem<'a> {
    /// The id of the document, section or passage.
    #[schema(value_type = Id)]
    id: PointId,
    /// Its document.
    #[schema(value_type = Id)]
    doc_id: DocId,
    /// Its title.
    title: &'a str,
    /// Its summary.
    summary: &'a str,
    /// Its score in the layer.
    score: f32,
}

impl<'a> From<&'a Layers> for LayersItem<'a> {
    fn from(layers: &'a Layers) -> Self {
        let items = |hits: &'a [LayerHit]| hits.iter().map(LayerHitItem::from).collect();
        Self { l1: items(&layers.l1), l2: items(&layers.l2), l3: items(&layers.l3) }
    }
}

impl<'a> From<&'a LayerHit> for LayerHitItem<'a> {
    fn from(hit: &'a LayerHit) -> Self {
        Self { id: hit.id, doc_id: hit.doc_id, title: &hit.title, summary: &hit.summary, score: hit.score }
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
