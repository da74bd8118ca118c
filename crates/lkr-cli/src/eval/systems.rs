//! What is evaluated in this process: one searcher for each way to search.

use std::time::{Duration, Instant};

use anyhow::Result;
use lkr::{
    CharSpan, Fusion, GroupBy, Mode, SearchOptions, SearchRequest, SearchResult,
    retrieval::{LegKind, Ranks, Searcher},
};

use crate::local_kb::LocalKnowledgeBase;

/// How many results are asked for: as far as recall is measured.
const RESULTS: usize = 100;

/// The one whose layers are looked at, and those that it is compared with.
pub(super) const LAYERED: &str = "layered-graded";
pub(super) const FLAT: &str = "flat-graded";
pub(super) const LAYERED_RRF: &str = "layered-rrf";
pub(super) const FLAT_RRF: &str = "flat-rrf";

/// A way to search.
#[derive(Debug)]
pub(super) struct System {
    pub(super) name: &'static str,
    searcher: Searcher,
    mode: Mode,
    fusion: Fusion,
}

/// What a system found for a query.
#[derive(Debug)]
pub(super) struct Found {
    /// The best documents, each by its best chunk.
    pub(super) documents: Vec<Hit>,
    /// The best chunks.
    pub(super) chunks: Vec<Hit>,
    /// How long the search for chunks took.
    pub(super) took: Duration,
}

/// A result, as far as it is looked at.
#[derive(Debug, Clone)]
pub(super) struct Hit {
    pub(super) chunk_id: String,
    pub(super) source: String,
    pub(super) span: CharSpan,
    pub(super) text: String,
    pub(super) ranks: Ranks,
}

/// All ways to search: each kind of legs alone over the chunks, then flat and layered with both kinds of fusion.
pub(super) fn systems(local_kb: &LocalKnowledgeBase, second_round: bool) -> Vec<System> {
    let both = [
        (FLAT, Mode::Flat, Fusion::Graded),
        (FLAT_RRF, Mode::Flat, Fusion::Rrf),
        (LAYERED, Mode::Layered, Fusion::Graded),
        (LAYERED_RRF, Mode::Layered, Fusion::Rrf),
    ];
    let alone = [("sparse", LegKind::Sparse), ("dense", LegKind::Dense)];
    let alone = alone.map(|(name, kind)| (name, Mode::Flat, Fusion::Graded, Some(kind)));
    let both = both.map(|(name, mode, fusion)| (name, mode, fusion, None));
    let system = |(name, mode, fusion, only)| {
        let options = SearchOptions { second_round, only, ..SearchOptions::default() };
        System { name, searcher: local_kb.searcher(options), mode, fusion }
    };
    let has_voice = |only| local_kb.embedder.is_some() || only != Some(LegKind::Dense);
    alone.into_iter().chain(both).filter(|(.., only)| has_voice(*only)).map(system).collect()
}

impl System {
    /// Asks for documents and for chunks. A blank query, of which collections have some, finds nothing.
    pub(super) async fn find(&self, query: &str) -> Result<Found> {
        if query.trim().is_empty() {
            return Ok(Found { documents: Vec::new(), chunks: Vec::new(), took: Duration::ZERO });
        }
        let documents = self.ask(query, GroupBy::Document).await?;
        let started = Instant::now();
        let chunks = self.ask(query, GroupBy::Chunk).await?;
        Ok(Found { documents, chunks, took: started.elapsed() })
    }

    async fn ask(&self, query: &str, group_by: GroupBy) -> Result<Vec<Hit>> {
        let request = SearchRequest {
            top_k: RESULTS,
            mode: self.mode,
            fusion: self.fusion,
            group_by,
            explain: true,
            ..SearchRequest::new(query)
        };
        let response = self.searcher.search(&request).await?.response;
        let ranks = response.explain.iter().flat_map(|explain| &explain.results).map(|result| result.ranks);
        Ok(response.results.iter().zip(ranks).map(|(result, ranks)| Hit::new(result, ranks)).collect())
    }
}

impl Hit {
    fn new(result: &SearchResult, ranks: Ranks) -> Self {
        Self {
            chunk_id: result.chunk_id.to_string(),
            source: result.source.clone(),
            span: CharSpan { start: result.char_start, end: result.char_end },
            text: result.text.clone(),
            ranks,
        }
    }
}
