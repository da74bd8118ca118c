#![doc = include_str!("../README.md")]

mod document;
mod error;
mod id;
mod layer;
mod sparse;
mod structure;

pub use document::{Counts, Document, Metadata, NewDocument, RESERVED_METADATA, SPACE_DEFAULT};
pub use id::{DocId, ParseIdError, PointId, TaskId};
pub use layer::Layer;
pub use sparse::SparseVector;
pub use structure::{Block, BlockKind, CharSpan, Chunk, Layered, Node, PageSpan, Parsed, Root};
