use lkr::{
    CharSpan, DocId, EvaluateResult, MAX_GOLD_BYTES, SearchQuality,
    evaluation::{GoldQuery, GoldSet, Relevant},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::formats::Id;
use crate::{error::ApiError, http::objects};

/// Queries with their relevant documents: at most 1 MiB as JSON.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GoldSetInput {
    /// The queries.
    #[serde(deserialize_with = "objects")]
    #[schema(min_items = 1, max_items = 10_000)]
    queries: Vec<GoldQueryInput>,
}

/// A query with its relevant documents.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GoldQueryInput {
    /// 1 to 2,000 characters, not counting surrounding white space.
    #[schema(min_length = 1, max_length = 2000, pattern = "\\S")]
    text: String,
    /// The relevant documents, or parts of them.
    #[serde(deserialize_with = "objects")]
    #[schema(min_items = 1, max_items = 1000)]
    relevant: Vec<RelevantInput>,
}

/// A relevant document, or a part of its extracted text. The part is given by both offsets or by neither.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RelevantInput {
    /// The document.
    #[schema(value_type = Id)]
    doc_id: DocId,
    /// The position of the first code point of the part.
    #[schema(maximum = 4_294_967_295_u64)]
    char_start: Option<u32>,
    /// The position after its last code point.
    #[schema(maximum = 4_294_967_295_u64)]
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
        match gold.violation() {
            Some(fault) => Err(ApiError::invalid(fault)),
            None => check_size(&gold).map(|()| gold),
        }
    }
}

/// Refuses a gold set that cannot be stored.
fn check_size(gold: &GoldSet) -> Result<(), ApiError> {
    let bytes = serde_json::to_vec(gold).map_err(|error| ApiError::internal(&error))?.len();
    if bytes > MAX_GOLD_BYTES {
        let reason =
            format!("queries have {bytes} bytes as they are stored, at most {MAX_GOLD_BYTES} are possible");
        return Err(ApiError::too_large(reason));
    }
    Ok(())
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
    /// The quality of flat searches.
    flat: SearchQualityItem,
    /// The quality of layered searches.
    layered: SearchQualityItem,
    /// How long the last attempt took, in milliseconds.
    elapsed_ms: u64,
}

/// The quality of searches in one mode: means over the queries.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FiguresItem)]
pub(crate) struct SearchQualityItem {
    /// The number of queries.
    queries: u64,
    /// Normalised discounted cumulative gain of the first 10 results.
    ndcg_at_10: f64,
    /// The share of relevant documents or parts among the first 10 results.
    recall_at_10: f64,
    /// The mean reciprocal rank of the first relevant result among the first 10.
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
