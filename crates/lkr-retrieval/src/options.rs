use std::time::Duration;

use crate::LegKind;

/// Settings of a searcher that apply to every request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchOptions {
    /// How many candidates each leg lists; at least twice the requested number of results.
    /// Default 100. See docs/studies.md#graded-fusion.
    pub candidates: usize,
    /// Whether a layered search asks its dense legs a second time with a query moved towards the first results
    /// (pseudo-relevance feedback). Off by default. See docs/studies.md#second-round.
    pub second_round: bool,
    /// Restricts a search to one kind of legs, to measure that kind alone; dense legs are then asked in every language.
    /// `None` for both kinds.
    pub only: Option<LegKind>,
    /// How many searches run at once. Responses from the cache do not count.
    pub max_concurrent: usize,
    /// How long a search waits for one of these permits before it is refused.
    pub admission_timeout: Duration,
    /// How long a search waits for the cache before it continues without it.
    pub cache_timeout: Duration,
    /// How long a search waits for its embedding model before it continues by keyword only.
    pub embed_timeout: Duration,
    /// How long a search waits for its reranker before it continues without it. See docs/studies.md#reranking.
    pub rerank_timeout: Duration,
    /// How long a reranker that timed out is not called again. Otherwise all permitted searches could be waiting for
    /// it.
    pub rerank_cooldown: Duration,
    /// How long a search waits for the language model that writes its summary. After that the summary is extractive, or
    /// ends with what was written so far. Up to a minute for which the reader of a streamed summary asks for nothing does not
    /// count.
    pub summary_timeout: Duration,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self {
            candidates: 100,
            second_round: false,
            only: None,
            max_concurrent: 64,
            admission_timeout: Duration::from_millis(500),
            cache_timeout: Duration::from_millis(50),
            embed_timeout: Duration::from_secs(10),
            rerank_timeout: Duration::from_secs(5),
            rerank_cooldown: Duration::from_secs(15),
            summary_timeout: Duration::from_secs(30),
        }
    }
}
