#![doc = include_str!("../README.md")]

mod blocking;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod error;
#[cfg(any(test, feature = "conformance"))]
mod failing;
mod filter;
mod memory;
mod point;
mod store;
mod tags;
mod traced;

pub use blocking::{may_block, on_blocking_thread};
pub use error::{Error, ErrorKind, Result};
#[cfg(any(test, feature = "conformance"))]
pub use failing::FailingVectors;
pub use filter::{Condition, Filter};
pub use memory::MemoryVectors;
pub use point::{Collection, CollectionSpec, DenseSpec, Hit, Point, PointOrigin, SPACE_TAG, is_in_scope};
pub use store::{BegunBatch, Include, Page, Query, QueryVector, ScrollCursor, VectorStore};
pub use tags::Tags;
pub use traced::TracedVectors;
