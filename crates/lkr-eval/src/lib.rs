#![doc = include_str!("../README.md")]

mod comparison;
mod gold;
mod measures;
mod units;

pub use comparison::Comparison;
pub use gold::{FoundChunk, GoldQuery, GoldSet, Relevant};
pub use measures::Measures;
pub use units::{distinct, most_overlapping};
