//! What responses warn of.

pub(crate) const NO_MODEL: &str = "no embedding model: keyword search only";
pub(crate) const MODEL_FAILED: &str = "the embedding model failed: keyword search only";
pub(crate) const NOT_EMBEDDED: &str =
    "the documents are not embedded by the present model yet: keyword search only where they are not";
pub(crate) const NO_WORDS: &str = "the query holds nothing that can be searched for";
pub(crate) const NO_RERANKER: &str = "no reranker is configured: the results are not reranked";
pub(crate) const RERANK_FAILED: &str = "the reranker failed or took too long: the results are not reranked";
pub(crate) const EXTRACTIVE: &str = "no language model configured: the summary is extractive";
pub(crate) const CHAT_FAILED: &str = "the language model failed or took too long: the summary is extractive";
pub(crate) const CHAT_BROKE_OFF: &str = "the language model broke off: the summary ends early";
pub(crate) const CHAT_TOO_SMALL: &str =
    "the language model takes too little at a time: the summary is extractive";
pub(crate) const NOT_BORNE_OUT: &str =
    "nothing that the language model wrote is borne out by the results: the summary is extractive";
