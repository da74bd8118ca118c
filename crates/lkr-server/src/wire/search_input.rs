use std::collections::BTreeMap;

use lkr::{ContextRequest, DocId, Fusion, GroupBy, Mode, Scope, SearchFilters, SearchRequest, SpaceName};
use serde::Deserialize;
use utoipa::ToSchema;

use super::formats::{Id, SpaceText};
use crate::{
    error::ApiError,
    http::{optional_object, space_names, string_map},
    wire::{filter_expr::FilterExprJson, filter_expr_schema::FilterExprInput, formats::QueryText},
};

/// A search request.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchInput {
    /// The query: 1 to 2,000 characters, not counting surrounding white space.
    #[schema(value_type = QueryText)]
    query: String,
    /// The maximum number of results.
    #[schema(minimum = 1, maximum = 100, default = 10)]
    top_k: Option<u32>,
    /// Whether to summarize the results.
    #[schema(default = false)]
    summarize: Option<bool>,
    /// The spaces to search: 1 to 100 names. Absent: all that the caller may read.
    #[schema(value_type = Option<Vec<SpaceText>>, min_items = 1, max_items = 100)]
    spaces: Option<Vec<String>>,
    /// Restricts the documents to search.
    #[serde(default, deserialize_with = "optional_object")]
    filters: Option<FiltersInput>,
    /// An expression over the fields of documents, which must match besides `filters`.
    #[serde(default, rename = "where")]
    #[schema(value_type = Option<FilterExprInput>)]
    filter_expr: Option<FilterExprJson>,
    /// layered, or flat to search chunks alone
    #[schema(default = "layered")]
    mode: Option<ModeInput>,
    /// chunk: at most two thirds of the results come from one document while others match; or document: one result
    /// for each document, its best chunk
    #[schema(default = "chunk")]
    group_by: Option<GroupByInput>,
    /// Whether to report legs and ranks.
    #[schema(default = false)]
    explain: Option<bool>,
    /// How the legs are fused: graded fusion, or plain reciprocal-rank fusion (rrf).
    #[schema(default = "graded")]
    fusion: Option<FusionInput>,
    /// Whether to rerank the best candidates. The default is true if a reranker is configured. If it is missing or
    /// fails, the response has a warning.
    rerank: Option<bool>,
}

/// Restricts the documents to search. A document must match all given filters.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FiltersInput {
    /// The category; empty for documents without one.
    category: Option<String>,
    /// The exact source.
    source: Option<String>,
    /// The ids of at most 1,000 documents.
    #[schema(value_type = Option<Vec<Id>>, max_items = 1000)]
    doc_ids: Option<Vec<DocId>>,
    /// The language as ISO 639-1 code.
    language: Option<String>,
    /// Metadata keys with their exact values, at most 64.
    #[serde(default, deserialize_with = "string_map")]
    metadata: Option<BTreeMap<String, String>>,
}

impl SearchInput {
    /// Checks the request. Returns it without its scope, and the names of the spaces.
    pub(crate) fn check(self) -> Result<(SearchRequest, Option<Vec<SpaceName>>), ApiError> {
        let spaces = self.spaces.map(space_names).transpose()?;
        let default = SearchRequest::default();
        let filters = search_filters(self.filters, self.filter_expr)?;
        let request = SearchRequest {
            scope: Scope::All,
            query: self.query,
            top_k: self.top_k.map_or(default.top_k, |top_k| top_k as usize),
            summarize: self.summarize.unwrap_or(default.summarize),
            filters,
            mode: self.mode.map_or(default.mode, Into::into),
            group_by: self.group_by.map_or(default.group_by, Into::into),
            explain: self.explain.unwrap_or(default.explain),
            fusion: self.fusion.map_or(default.fusion, Into::into),
            rerank: self.rerank,
        };
        request.validate().map_err(|error| ApiError::invalid(error.to_string()))?;
        Ok((request, spaces))
    }
}

/// A request for context.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ContextInput {
    /// The question: 1 to 2,000 characters, not counting surrounding white space.
    #[schema(value_type = QueryText)]
    query: String,
    /// The most tokens of the text.
    #[schema(minimum = 50, maximum = 32000, default = 2000)]
    max_tokens: Option<u32>,
    /// The spaces to search: 1 to 100 names. Absent: all that the caller may read.
    #[schema(value_type = Option<Vec<SpaceText>>, min_items = 1, max_items = 100)]
    spaces: Option<Vec<String>>,
    /// Restricts the documents to search.
    #[serde(default, deserialize_with = "optional_object")]
    filters: Option<FiltersInput>,
    /// An expression over the fields of documents, which must match besides `filters`.
    #[serde(default, rename = "where")]
    #[schema(value_type = Option<FilterExprInput>)]
    filter_expr: Option<FilterExprJson>,
    /// layered, or flat to search chunks alone
    #[schema(default = "layered")]
    mode: Option<ModeInput>,
    /// How the legs are fused: graded fusion, or plain reciprocal-rank fusion (rrf).
    #[schema(default = "graded")]
    fusion: Option<FusionInput>,
    /// Whether to rerank the best candidates, as in a search.
    rerank: Option<bool>,
}

impl ContextInput {
    /// Checks the request. Returns it without its scope, and the names of the spaces.
    pub(crate) fn check(self) -> Result<(ContextRequest, Option<Vec<SpaceName>>), ApiError> {
        let spaces = self.spaces.map(space_names).transpose()?;
        let default = ContextRequest::default();
        let request = ContextRequest {
            query: self.query,
            max_tokens: self.max_tokens.map_or(default.max_tokens, |tokens| tokens as usize),
            scope: Scope::All,
            filters: search_filters(self.filters, self.filter_expr)?,
            mode: self.mode.map_or(default.mode, Into::into),
            fusion: self.fusion.map_or(default.fusion, Into::into),
            rerank: self.rerank,
        };
        request.validate().map_err(|error| ApiError::invalid(error.to_string()))?;
        Ok((request, spaces))
    }
}

fn search_filters(
    filters: Option<FiltersInput>,
    filter_expr: Option<FilterExprJson>,
) -> Result<SearchFilters, ApiError> {
    let filter_expr = filter_expr.map(|json| json.check()).transpose()?;
    Ok(SearchFilters { filter_expr, ..SearchFilters::from(filters.unwrap_or_default()) })
}

/// Declares an enum with its names in JSON.
macro_rules! names {
    ($(#[$doc:meta])* $input:ident for $target:ident: $($name:literal = $variant:ident),+) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
        #[serde(try_from = "String")]
        enum $input { $(#[schema(rename = $name)] $variant),+ }

        // A derived implementation would also accept an object.
        impl TryFrom<String> for $input {
            type Error = String;

            fn try_from(name: String) -> Result<Self, String> {
                match name.as_str() {
                    $($name => Ok(Self::$variant),)+
                    _ => Err(format!("{name:?}, expected {}", [$($name),+].join(" or "))),
                }
            }
        }

        impl From<$input> for $target {
            fn from(input: $input) -> Self {
                match input { $($input::$variant => Self::$variant),+ }
            }
        }
    };
}

names! {
    /// Which layers are searched.
    ModeInput for Mode: "layered" = Layered, "flat" = Flat
}
names! {
    /// What a result stands for.
    GroupByInput for GroupBy: "chunk" = Chunk, "document" = Document
}
names! {
    /// How the legs are fused.
    FusionInput for Fusion: "graded" = Graded, "rrf" = Rrf
}

impl From<FiltersInput> for SearchFilters {
    fn from(input: FiltersInput) -> Self {
        Self {
            category: input.category,
            source: input.source,
            doc_ids: input.doc_ids,
            language: input.language,
            metadata: input.metadata.unwrap_or_default(),
            filter_expr: None,
        }
    }
}
