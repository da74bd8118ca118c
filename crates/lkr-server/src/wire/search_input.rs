use std::collections::BTreeMap;

use lkr::{DocId, Fusion, GroupBy, Mode, SearchFilters, SearchRequest};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::{
    error::ApiError,
    http::{object, texts},
};

/// What is searched for, and how.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchInput {
    /// 1 to 2,000 characters, white space around them not counted.
    #[schema(min_length = 1, max_length = 2000)]
    query: String,
    /// How many results at the most.
    #[schema(minimum = 1, maximum = 100, default = 10)]
    top_k: Option<u32>,
    /// Whether a summary of the results is wanted.
    #[schema(default = false)]
    summarize: Option<bool>,
    /// Which documents count.
    #[serde(default, deserialize_with = "object")]
    filters: Option<FiltersInput>,
    /// layered, or flat for chunks alone
    #[schema(default = "layered")]
    mode: Option<ModeInput>,
    /// chunk, of which no document has more than two thirds while there are others; or document for each document
    /// once, by its best chunk
    #[schema(default = "chunk")]
    group_by: Option<GroupByInput>,
    /// Whether legs and ranks are to be reported.
    #[schema(default = false)]
    explain: Option<bool>,
    /// How the evidence of the legs is added up: by graded evidence, or by plain reciprocal ranks.
    #[schema(default = "graded")]
    fusion: Option<FusionInput>,
    /// Whether the best candidates are ranked again by a reranker; by default where there is one. Where there is none,
    /// or it fails, a warning says so.
    rerank: Option<bool>,
}

/// Which documents count. What is given must hold together.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FiltersInput {
    /// The category's name; empty for documents without one.
    category: Option<String>,
    /// The source, whole.
    source: Option<String>,
    /// At most 1,000 documents.
    #[schema(value_type = Option<Vec<String>>)]
    doc_ids: Option<Vec<DocId>>,
    /// ISO 639-1.
    language: Option<String>,
    /// Metadata keys and their values, at most 64.
    #[serde(default, deserialize_with = "texts")]
    metadata: Option<BTreeMap<String, String>>,
}

impl SearchInput {
    pub(crate) fn check(self) -> Result<SearchRequest, ApiError> {
        let default = SearchRequest::default();
        let request = SearchRequest {
            query: self.query,
            top_k: self.top_k.map_or(default.top_k, |top_k| top_k as usize),
            summarize: self.summarize.unwrap_or(default.summarize),
            filters: self.filters.unwrap_or_default().into(),
            mode: self.mode.map_or(default.mode, Into::into),
            group_by: self.group_by.map_or(default.group_by, Into::into),
            explain: self.explain.unwrap_or(default.explain),
            fusion: self.fusion.map_or(default.fusion, Into::into),
            rerank: self.rerank,
        };
        request.validate().map_err(|error| ApiError::invalid(error.to_string()))?;
        Ok(request)
    }
}

/// Declares what a choice is called in a body.
macro_rules! names {
    ($(#[$doc:meta])* $input:ident for $of:ident: $($name:literal = $choice:ident),+) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
        #[serde(try_from = "String")]
        enum $input { $(#[schema(rename = $name)] $choice),+ }

        // Derived, it would take an object for a name as well.
        impl TryFrom<String> for $input {
            type Error = String;

            fn try_from(name: String) -> Result<Self, String> {
                match name.as_str() {
                    $($name => Ok(Self::$choice),)+
                    _ => Err(format!("{name:?}, expected {}", [$($name),+].join(" or "))),
                }
            }
        }

        impl From<$input> for $of {
            fn from(input: $input) -> Self {
                match input { $($input::$choice => Self::$choice),+ }
            }
        }
    };
}

names! {
    /// Which layers take part.
    ModeInput for Mode: "layered" = Layered, "flat" = Flat
}
names! {
    /// What a result is.
    GroupByInput for GroupBy: "chunk" = Chunk, "document" = Document
}
names! {
    /// How legs are fused.
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
        }
    }
}
