//! The warnings of responses.

pub(crate) const NO_MODEL: &str = "no embedding model: keyword search only";
pub(crate) const MODEL_FAILED: &str = "the embedding model failed: keyword search only";
pub(crate) const MODEL_MISMATCH: &str =
    "the documents are not yet embedded with the current model: keyword search only for those";
pub(crate) const NO_WORDS: &str = "the query contains no searchable words";
pub(crate) const STOP_WORDS: &str = "the query consists of words that are too frequent to search for";
pub(crate) const NO_QUOTED: &str = "no passage among the best matches contains the phrase in quotation marks";
pub(crate) const FEW_DOCUMENTS: &str =
    "a few documents have so many matching passages that others may be missing";
pub(crate) const NO_RERANKER: &str = "no reranker is configured: the results are not reranked";
pub(crate) const RERANK_FAILED: &str = "the reranker failed or took too long: the results are not reranked";
pub(crate) const EXTRACTIVE: &str = "no language model configured: the summary is extractive";
pub(crate) const CHAT_FAILED: &str = "the language model failed or took too long: the summary is extractive";
pub(crate) const CHAT_CUT_OFF: &str = "the language model stopped early: the summary is incomplete";
pub(crate) const CONTEXT_TOO_SMALL: &str =
    "the language model's context is too small for the results: the summary is extractive";
pub(crate) const NOT_GROUNDED: &str =
    "the results support nothing that the language model wrote: the summary is extractive";
pub(crate) const CONTEXT_BUDGET_TOO_SMALL: &str =
    "max_tokens is too small for a sentence of the best passages";
pub(crate) const NOT_MERGED: &str =
    "the extracted texts are unavailable: neighbouring passages are not merged";
