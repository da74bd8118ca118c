#![doc = include_str!("../README.md")]

mod chunk;
mod coverage;
mod front_matter;
mod indexed;
mod keyword;
mod layer;
mod offsets;
mod outline;
mod passages;
mod piece;
mod plain;
mod section;
mod summary;
mod table;
mod terms;
mod title;
mod topic;
mod unit;

pub use coverage::{WordCoverage, word_coverage};
pub use indexed::{indexed_chunk, indexed_text};
pub use layer::{LayerOptions, layer, layer_with_terms};
pub use passages::{SummarySentence, summarize_passages};
