use std::time::Duration;

use crate::LegKind;

/// How a searcher works, whatever it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchOptions {
    /// How many candidates each leg lists; twice the results asked for where that is more.
    pub candidates: usize,
    /// Whether a layered search asks its dense legs a second time, with the query moved towards what the first round
    /// showed.
    pub second_round: bool,
    /// The one kind of legs that is asked, to see what it does alone: by meaning then whatever the language. `None` for
    /// both.
    pub only: Option<LegKind>,
    /// How many searches run at once. Answers from the cache do not count.
    pub max_concurrent: usize,
    /// How long a search waits for its turn before it is refused.
    pub admission_wait: Duration,
    /// How long a search waits for the cache before it goes on without.
    pub cache_wait: Duration,
    /// How long a search waits for its embedding model before it goes on by words alone.
    pub embed_wait: Duration,
    /// How long a search waits for its reranker before it goes on without.
    pub rerank_wait: Duration,
    /// How long a reranker that was waited for in vain is not asked again: else all searches that are allowed at once
    /// might be waiting for it.
    pub rerank_pause: Duration,
    /// How long a search waits for the language model that writes its summary before it goes on without, or with as much
    /// as was written.
    pub summary_wait: Duration,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self {
            candidates: 100,
            second_round: false,
            only: None,
            max_concurrent: 64,
            admission_wait: Duration::from_millis(500),
            cache_wait: Duration::from_millis(50),
            embed_wait: Duration::from_secs(10),
            rerank_wait: Duration::from_secs(5),
            rerank_pause: Duration::from_secs(15),
            summary_wait: Duration::from_secs(30),
        }
    }
}
