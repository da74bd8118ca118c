#![doc = include_str!("../README.md")]

mod assemble;
mod blocking;
mod cache;
mod candidate;
mod context;
mod encoded_query;
mod error;
mod feedback;
mod fusion;
mod headings;
mod ids;
mod legs;
mod live;
mod model_sources;
mod options;
mod page;
mod pipeline;
mod points;
mod prepare;
mod profile;
mod rank;
mod refine;
mod relative_score;
mod request;
mod rerank;
mod response;
mod retrieve;
mod searcher;
mod searcher_state;
mod summary;
mod validated_request;
mod warning;

/// The crates whose types appear in this API, so that a program needs no further dependency to search.
pub use {
    lkr_catalog as catalog, lkr_domain as domain, lkr_layers as layers, lkr_models as models,
    lkr_state as state, lkr_vectors as vectors,
};

pub use cache::{CacheKey, CacheSize, CacheStatus, MemoryCache, SearchCache};
pub use context::{ContextPassage, ContextRequest, ContextResponse};
pub use error::{Error, ErrorKind, Result};
pub use options::SearchOptions;
pub use profile::{LegCandidates, SearchProfile, SearchStage, StageTime};
pub use relative_score::relative_scores;
pub use request::{Fusion, GroupBy, Mode, SearchFilters, SearchRequest};
pub use response::{
    Citation, Explain, ExplainedResult, LayerHit, Layers, LegKind, LegReport, LegScores, PerLeg, Ranks,
    RerankReport, Scores, SearchResponse, SearchResult, Summary, SummaryKind,
};
pub use searcher::{SearchOutcome, Searcher, StreamedSearch};
pub use summary::{SummaryPart, SummaryStream};
