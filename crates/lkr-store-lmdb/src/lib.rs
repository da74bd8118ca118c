#![doc = include_str!("../README.md")]

mod clock;
mod clusters;
mod codec;
mod config;
mod env;
mod error;
mod file_system;
mod lock;
mod memory_limit;
mod open_files;
mod open_marker;
mod packing;
mod page_check;
mod queue;
mod shared;
mod state;
mod store;
mod store_check;
mod vectors;
mod verify;
mod writer;

pub use config::LmdbOptions;
pub use error::{Error, ErrorKind, Result};
pub use lock::FolderLock;
pub use open_files::OpenFile;
pub use queue::LmdbQueue;
pub use state::LmdbState;
pub use store::LmdbStore;
pub use store_check::StoreCheck;
pub use vectors::LmdbVectors;
pub use verify::Finding;
