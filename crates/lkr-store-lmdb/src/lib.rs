#![doc = include_str!("../README.md")]

mod clock;
mod codec;
mod config;
mod env;
mod error;
mod graph;
mod lock;
mod mount;
mod queue;
mod shared;
mod state;
mod store;
mod vectors;
mod writer;

pub use config::LmdbOptions;
pub use error::{Error, ErrorKind, Result};
pub use queue::LmdbQueue;
pub use state::LmdbState;
pub use store::LmdbStore;
pub use vectors::LmdbVectors;
