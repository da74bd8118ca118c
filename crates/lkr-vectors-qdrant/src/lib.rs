#![doc = include_str!("../README.md")]

mod breaker;
mod collections;
mod connection;
mod error;
mod filter;
mod indexes;
mod metadata;
mod names;
mod options;
mod point;
mod read;
mod search;
mod shared;
mod snapshot;
mod store;
mod sums;
mod tag_fields;
mod token;
mod value;
mod value_filter;
mod write;

pub use options::{QdrantOptions, Quantization, ReadConsistency};
pub use store::QdrantVectors;
