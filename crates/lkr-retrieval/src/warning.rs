//! What responses warn of.

pub(crate) const NO_MODEL: &str = "no embedding model: keyword search only";
pub(crate) const MODEL_FAILED: &str = "the embedding model failed: keyword search only";
pub(crate) const NOT_EMBEDDED: &str =
    "the documents are not embedded by the present model yet: keyword search only where they are not";
pub(crate) const NO_WORDS: &str = "the query holds nothing that can be searched for";
pub(crate) const NO_RERANKER: &str = "no reranker is configured: the results are not reranked";
pub(crate) const RERANK_FAILED: &str = "the reranker failed or took too long: the results are not reranked";
pub(crate) const EXTRACTIVE: &str = "no language model configured: the summary is extractive";
