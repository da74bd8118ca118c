#![doc = include_str!("../README.md")]

mod clock;
mod codec;
mod config;
mod env;
mod error;
mod examine;
mod graph;
mod lock;
mod mount;
mod pages;
mod queue;
mod shared;
mod state;
mod store;
mod unclean;
mod vectors;
mod verify;
mod writer;

pub use config::LmdbOptions;
pub use error::{Error, ErrorKind, Result};
pub use examine::StoreCheck;
pub use lock::FolderLock;
pub use queue::LmdbQueue;
pub use state::LmdbState;
pub use store::LmdbStore;
pub use vectors::LmdbVectors;
pub use verify::Finding;
