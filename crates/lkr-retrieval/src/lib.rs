#![doc = include_str!("../README.md")]

mod answering;
mod assemble;
mod cache;
mod encoded_query;
mod error;
mod find;
mod fusion;
mod headings;
mod legs;
mod live;
mod look;
mod options;
mod order;
mod rank;
mod request;
mod response;
mod searcher;
mod second;
mod summary;
mod warning;

/// The crates whose types one meets here, so that a program needs no further dependency to search.
pub use {
    lkr_catalog as catalog, lkr_domain as domain, lkr_layers as layers, lkr_models as models,
    lkr_state as state, lkr_vectors as vectors,
};

pub use cache::{CacheKey, CacheStatus, MemoryCache, SearchCache};
pub use error::{Error, ErrorKind, Result};
pub use options::SearchOptions;
pub use request::{Fusion, GroupBy, Mode, SearchFilters, SearchRequest};
pub use response::{
    Citation, Explain, ExplainedResult, LayerHit, Layers, LegKind, LegReport, LegScores, PerLeg, Ranks,
    RerankReport, Scores, SearchResponse, SearchResult, Summary, SummaryKind,
};
pub use searcher::{SearchOutcome, Searcher, StreamedSearch};
pub use summary::{SummaryPart, SummaryStream};
