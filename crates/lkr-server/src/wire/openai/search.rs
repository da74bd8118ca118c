//! Searching a vector store.

use lkr::{SearchFilters, SearchRequest};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{filter::filter_expr, filter_schema::AttributeFilter, vector_stores::TextContent};
use crate::{
    error::ApiError,
    http::optional_object,
    scored_search::ScoredResult,
    wire::{
        attributes::chunk_attributes,
        filter_expr::FilterExprJson,
        formats::{QueryList, QueryText},
        score_threshold::score_threshold,
    },
};

/// The most results of a search.
const MAX_RESULTS: usize = 50;

/// The most queries of a search, each of which is a search of its own. Chosen, not measured.
const MAX_QUERIES: usize = 10;

/// A search in a vector store.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct VectorSearchInput {
    /// The query, or 1 to 10 queries: each 1 to 2,000 characters, not counting surrounding white space.
    query: QueryInput,
    /// The maximum number of results.
    #[schema(minimum = 1, maximum = 50, default = 10)]
    max_num_results: Option<u32>,
    /// Restricts the documents to search by their attributes.
    #[serde(default)]
    #[schema(value_type = Option<AttributeFilter>)]
    filters: Option<FilterExprJson>,
    /// How results are ranked, and which are left out.
    #[serde(default, deserialize_with = "optional_object")]
    ranking_options: Option<RankingOptionsInput>,
    /// Accepted and without effect: a query is searched for as it is, which search_query shows.
    #[expect(dead_code, reason = "lkr rewrites no query")]
    rewrite_query: Option<bool>,
}

/// A query, or several.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a string or a list of strings")]
pub(crate) enum QueryInput {
    /// A query.
    #[schema(value_type = QueryText)]
    One(String),
    /// Several queries.
    #[schema(value_type = QueryList)]
    Several(Vec<String>),
}

/// How results are ranked.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RankingOptionsInput {
    /// none: results are not reranked; auto, or another name that begins with default-: they are if a reranker is configured.
    ranker: Option<String>,
    /// The least score of a result.
    #[schema(minimum = 0, maximum = 1, default = 0)]
    score_threshold: Option<f32>,
}

/// A checked search in a vector store.
#[derive(Debug)]
pub(crate) struct VectorSearch {
    /// The queries, one search each.
    pub(crate) queries: Vec<String>,
    /// The search, without its query and its scope.
    pub(crate) request: SearchRequest,
    /// The least score of a result.
    pub(crate) threshold: f32,
}

impl VectorSearchInput {
    /// Checks the request.
    ///
    /// # Errors
    /// `Invalid`, with the part that is wrong.
    pub(crate) fn check(self) -> Result<VectorSearch, ApiError> {
        let default = SearchRequest::default();
        let limit = self.max_num_results.map_or(default.top_k, |limit| limit as usize);
        if !(1..=MAX_RESULTS).contains(&limit) {
            let message = format!("{limit} is out of bounds, 1 to {MAX_RESULTS} are allowed");
            return Err(ApiError::invalid_parameter("max_num_results", message));
        }
        let options = self.ranking_options.unwrap_or_default();
        let filter_expr = self.filters.map(|json| filter_expr(json.as_value())).transpose()?;
        let request = SearchRequest {
            top_k: limit,
            filters: SearchFilters { filter_expr, ..SearchFilters::default() },
            rerank: rerank(options.ranker.as_deref())?,
            ..default
        };
        let queries = queries(self.query)?;
        for query in &queries {
            let request = SearchRequest { query: query.clone(), ..request.clone() };
            request.validate().map_err(|error| ApiError::invalid_parameter("query", error))?;
        }
        let threshold = score_threshold("ranking_options.score_threshold", options.score_threshold)?;
        Ok(VectorSearch { queries, request, threshold })
    }
}

/// Whether a ranker reranks; `None` if the configuration decides.
fn rerank(ranker: Option<&str>) -> Result<Option<bool>, ApiError> {
    match ranker {
        Some("none") => Ok(Some(false)),
        None | Some("auto") => Ok(None),
        Some(dated) if dated.starts_with("default-") => Ok(None),
        Some(other) => {
            let message = format!("unknown ranker {other:?}, expected none, auto or default- and a date");
            Err(ApiError::invalid_parameter("ranking_options.ranker", message))
        }
    }
}

fn queries(query: QueryInput) -> Result<Vec<String>, ApiError> {
    let list = match query {
        QueryInput::One(query) => vec![query],
        QueryInput::Several(list) => list,
    };
    if (1..=MAX_QUERIES).contains(&list.len()) {
        return Ok(list);
    }
    let message = format!("{} queries, 1 to {MAX_QUERIES} are allowed", list.len());
    Err(ApiError::invalid_parameter("query", message))
}

/// The results of a search in a vector store.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VectorSearchPage {
    /// vector_store.search_results.page
    object: &'static str,
    /// The queries as they were searched for.
    search_query: Vec<String>,
    /// The results, best first.
    data: Vec<VectorSearchItem>,
    /// false: a search has one page.
    has_more: bool,
    /// Null.
    #[schema(value_type = Option<String>, required)]
    next_page: (),
}

/// A chunk that matches a query.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VectorSearchItem {
    /// The id of its document.
    file_id: String,
    /// The name of the stored original; without one, the title of the document.
    filename: String,
    /// From 0 to 1, falling from the first result to the last. It is no probability: see docs/search.md#scores-from-0-to-1.
    score: f32,
    /// The metadata, and other fields under names that begin with `lkr.`.
    #[schema(value_type = std::collections::BTreeMap<String, Value>)]
    attributes: Map<String, Value>,
    /// One part, which is the text of the chunk.
    content: [TextContent; 1],
}

impl VectorSearchPage {
    pub(crate) fn new(search_query: Vec<String>, results: &[ScoredResult]) -> Self {
        Self {
            object: "vector_store.search_results.page",
            search_query,
            data: results.iter().map(VectorSearchItem::from).collect(),
            has_more: false,
            next_page: (),
        }
    }
}

impl From<&ScoredResult> for VectorSearchItem {
    fn from(scored: &ScoredResult) -> Self {
        let ScoredResult { result, document, score } = scored;
        let original = document.original.as_ref().map(|original| &original.file_name);
        Self {
            file_id: result.doc_id.to_string(),
            filename: original.unwrap_or(&document.title).clone(),
            score: *score,
            attributes: chunk_attributes(document, result),
            content: [TextContent::new(&result.text)],
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(body: Value) -> Result<VectorSearch, ApiError> {
        serde_json::from_value::<VectorSearchInput>(body).unwrap().check()
    }

    #[test]
    fn request_is_mapped_to_a_search() {
        let search = check(json!({
            "query": ["a", "b"],
            "max_num_results": 50,
            "filters": {"type": "eq", "key": "k", "value": "v"},
            "ranking_options": {"ranker": "none", "score_threshold": 0.5},
            "rewrite_query": true,
        }));
        let search = search.unwrap();
        assert_eq!((search.queries, search.request.top_k), (vec!["a".to_owned(), "b".to_owned()], 50));
        assert_eq!((search.request.rerank, search.threshold), (Some(false), 0.5));
        assert!(search.request.filters.filter_expr.is_some());
        let search =
            check(json!({"query": "a", "ranking_options": {"ranker": "default-2024-11-15"}})).unwrap();
        assert_eq!((search.request.top_k, search.request.rerank, search.threshold), (10, None, 0.0));
    }

    #[test]
    fn error_names_the_parameter() {
        for (body, name) in [
            (json!({"query": ""}), "query"),
            (json!({"query": []}), "query"),
            (json!({"query": vec!["a"; 11]}), "query"),
            (json!({"query": "x".repeat(2_001)}), "query"),
            (json!({"query": "a", "max_num_results": 0}), "max_num_results"),
            (json!({"query": "a", "max_num_results": 51}), "max_num_results"),
            (
                json!({"query": "a", "ranking_options": {"score_threshold": 1.5}}),
                "ranking_options.score_threshold",
            ),
            (json!({"query": "a", "ranking_options": {"ranker": "best"}}), "ranking_options.ranker"),
            (json!({"query": "a", "filters": {"type": "eq"}}), "filters.key"),
        ] {
            let error = check(body.clone()).unwrap_err();
            let expected = crate::error::ErrorSubject::Parameter(name.to_owned());
            assert_eq!(error.subject, Some(expected), "{body}: {}", error.message);
        }
    }
}
