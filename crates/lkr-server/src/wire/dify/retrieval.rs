//! Retrieval for Dify.

use lkr::{SearchFilters, SearchRequest, SpaceName};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::condition::MetadataConditionInput;
use crate::{
    error::ApiError,
    http::{named_space, optional_object},
    scored_search::ScoredResult,
    wire::{attributes::chunk_attributes, formats::QueryText, score_threshold::score_threshold},
};

/// A retrieval of chunks.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RetrievalInput {
    /// The name of a space.
    knowledge_id: String,
    /// The query: 1 to 2,000 characters, not counting surrounding white space.
    #[schema(value_type = QueryText)]
    query: String,
    /// How many chunks are retrieved, and how good ones.
    #[serde(default, deserialize_with = "optional_object")]
    retrieval_setting: Option<RetrievalSettingInput>,
    /// Which documents are searched.
    #[serde(default, deserialize_with = "optional_object")]
    metadata_condition: Option<MetadataConditionInput>,
}

/// How many chunks are retrieved, and how good ones.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RetrievalSettingInput {
    /// The maximum number of records.
    #[schema(minimum = 1, maximum = 100, default = 10)]
    top_k: Option<u32>,
    /// The least score of a record.
    #[schema(minimum = 0, maximum = 1, default = 0)]
    score_threshold: Option<f32>,
}

/// A checked retrieval.
#[derive(Debug)]
pub(crate) struct Retrieval {
    pub(crate) space: SpaceName,
    /// The search, without its scope.
    pub(crate) request: SearchRequest,
    /// The least score of a record.
    pub(crate) threshold: f32,
}

impl RetrievalInput {
    /// Checks the request.
    ///
    /// # Errors
    /// `Invalid`, with the part that is wrong; not found for a malformed name of a space.
    pub(crate) fn check(self) -> Result<Retrieval, ApiError> {
        let setting = self.retrieval_setting.unwrap_or_default();
        let filter_expr = self.metadata_condition.map(MetadataConditionInput::check).transpose()?.flatten();
        let default = SearchRequest::default();
        let request = SearchRequest {
            query: self.query,
            top_k: setting.top_k.map_or(default.top_k, |top_k| top_k as usize),
            filters: SearchFilters { filter_expr, ..SearchFilters::default() },
            ..default
        };
        request.validate().map_err(|error| ApiError::invalid(error.to_string()))?;
        let threshold = score_threshold("retrieval_setting.score_threshold", setting.score_threshold)?;
        Ok(Retrieval { space: named_space(self.knowledge_id)?, request, threshold })
    }
}

/// The retrieved chunks.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RetrievalAnswer {
    /// The best first.
    records: Vec<RecordItem>,
}

/// A chunk.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RecordItem {
    /// The text of the chunk.
    content: String,
    /// From 0 to 1, falling from the first record to the last. It is no probability: see docs/search.md#scores-from-0-to-1.
    score: f32,
    /// The title of the document.
    title: String,
    /// The metadata of the document, and other fields under names that begin with `lkr.`.
    #[schema(value_type = std::collections::BTreeMap<String, Value>)]
    metadata: Map<String, Value>,
}

impl RetrievalAnswer {
    pub(crate) fn new(results: &[ScoredResult]) -> Self {
        Self { records: results.iter().map(RecordItem::from).collect() }
    }
}

impl From<&ScoredResult> for RecordItem {
    fn from(ScoredResult { result, document, score }: &ScoredResult) -> Self {
        Self {
            content: result.text.clone(),
            score: *score,
            title: document.title.clone(),
            metadata: chunk_attributes(document, result),
        }
    }
}
