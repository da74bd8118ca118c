use lkr::{
    CharSpan, DocId, EvaluateResult, SearchQuality,
    evaluation::{GoldQuery, GoldSet, Relevant},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::ApiError;

/// Queries with their relevant documents.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GoldSetInput {
    #[schema(min_items = 1, max_items = 10_000)]
    queries: Vec<GoldQueryInput>,
}

/// A query with its relevant documents.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GoldQueryInput {
    /// 1 to 2,000 characters, not counting surrounding white space.
    #[schema(min_length = 1, max_length = 2000)]
    text: String,
    /// The relevant documents, or parts of them.
    #[schema(min_items = 1, max_items = 1000)]
    relevant: Vec<RelevantInput>,
}

/// A relevant document, or a part of its extracted text. The part is given by both offsets or by neither.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RelevantInput {
    #[schema(value_type = String)]
    doc_id: DocId,
    /// The position of the first code point of the part.
    char_start: Option<u32>,
    /// The position after its last code point.
    char_end: Option<u32>,
}

impl GoldSetInput {
    /// Checks the gold set.
    pub(crate) fn check(self) -> Result<GoldSet, ApiError> {
        let query = |(at, input): (usize, GoldQueryInput)| {
            let relevant = input.relevant.into_iter().enumerate();
            let relevant = relevant.map(|(n, relevant)| {
                let located = |reason| ApiError::invalid(format!("queries[{at}].relevant[{n}]: {reason}"));
                relevant.check().map_err(located)
            });
            Ok::<_, ApiError>(GoldQuery { text: input.text, relevant: relevant.collect::<Result<_, _>>()? })
        };
        let queries = self.queries.into_iter().enumerate().map(query).collect::<Result<_, _>>()?;
        let gold = GoldSet { queries };
        match gold.fault() {
            Some(fault) => Err(ApiError::invalid(fault)),
            None => Ok(gold),
        }
    }
}

impl RelevantInput {
    fn check(self) -> Result<Relevant, &'static str> {
        let span = match (self.char_start, self.char_end) {
            (Some(start), Some(end)) => Some(CharSpan { start, end }),
            (None, None) => None,
            (Some(_), None) => return Err("char_start is given without char_end"),
            (None, Some(_)) => return Err("char_end is given without char_start"),
        };
        Ok(Relevant { doc_id: self.doc_id, span })
    }
}

/// The quality of searches by a gold set.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EvaluateResultItem {
    flat: SearchQualityItem,
    layered: SearchQualityItem,
    elapsed_ms: u64,
}

/// The quality of searches in one mode: means over the queries.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FiguresItem)]
pub(crate) struct SearchQualityItem {
    queries: u64,
    ndcg_at_10: f64,
    recall_at_10: f64,
    mrr_at_10: f64,
}

impl From<EvaluateResult> for EvaluateResultItem {
    fn from(result: EvaluateResult) -> Self {
        let EvaluateResult { flat, layered, elapsed_ms } = result;
        Self { flat: flat.into(), layered: layered.into(), elapsed_ms }
    }
}

impl From<SearchQuality> for SearchQualityItem {
    fn from(quality: SearchQuality) -> Self {
        let SearchQuality { queries, ndcg_at_10, recall_at_10, mrr_at_10 } = quality;
        Self { queries, ndcg_at_10, recall_at_10, mrr_at_10 }
    }
}
