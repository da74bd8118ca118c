//! The evaluated systems: one searcher for each way to search.

use std::time::{Duration, Instant};

use anyhow::Result;
use lkr::{
    CharSpan, Fusion, GroupBy, Mode, SearchOptions, SearchRequest, SearchResult,
    retrieval::{LegKind, Ranks, Searcher},
};

use crate::local_kb::LocalKnowledgeBase;

/// The number of results per search: the depth of recall@100.
const RESULTS: usize = 100;

/// The layered system, whose recall by layer is reported, and the systems that it is compared with.
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

/// The results of a system for a query.
#[derive(Debug)]
pub(super) struct SystemResults {
    /// The best documents, each by its best chunk.
    pub(super) documents: Vec<Hit>,
    /// The best chunks.
    pub(super) chunks: Vec<Hit>,
    /// The duration of the search for chunks.
    pub(super) took: Duration,
}

/// The parts of a result that are used.
#[derive(Debug, Clone)]
pub(super) struct Hit {
    pub(super) chunk_id: String,
    pub(super) source: String,
    pub(super) span: CharSpan,
    pub(super) text: String,
    pub(super) ranks: Ranks,
}

/// All systems: the dense and the sparse leg of chunks alone, then flat and layered with both kinds of fusion.
pub(super) fn systems(local_kb: &LocalKnowledgeBase, second_round: bool) -> Vec<System> {
    let fused = [
        (FLAT, Mode::Flat, Fusion::Graded),
        (FLAT_RRF, Mode::Flat, Fusion::Rrf),
        (LAYERED, Mode::Layered, Fusion::Graded),
        (LAYERED_RRF, Mode::Layered, Fusion::Rrf),
    ];
    let single_leg = [("sparse", LegKind::Sparse), ("dense", LegKind::Dense)];
    let single_leg = single_leg.map(|(name, kind)| (name, Mode::Flat, Fusion::Graded, Some(kind)));
    let fused = fused.map(|(name, mode, fusion)| (name, mode, fusion, None));
    let system = |(name, mode, fusion, only)| {
        let options = SearchOptions { second_round, only, ..SearchOptions::default() };
        System { name, searcher: local_kb.searcher(options), mode, fusion }
    };
    let has_leg = |only| local_kb.embedder.is_some() || only != Some(LegKind::Dense);
    single_leg.into_iter().chain(fused).filter(|(.., only)| has_leg(*only)).map(system).collect()
}

impl System {
    /// Searches for documents and for chunks. Some collections have blank queries, which return nothing.
    pub(super) async fn find(&self, query: &str) -> Result<SystemResults> {
        if query.trim().is_empty() {
            return Ok(SystemResults { documents: Vec::new(), chunks: Vec::new(), took: Duration::ZERO });
        }
        let documents = self.search(query, GroupBy::Document).await?;
        let started = Instant::now();
        let chunks = self.search(query, GroupBy::Chunk).await?;
        Ok(SystemResults { documents, chunks, took: started.elapsed() })
    }

    async fn search(&self, query: &str, group_by: GroupBy) -> Result<Vec<Hit>> {
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
