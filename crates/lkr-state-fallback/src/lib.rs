#![doc = include_str!("../README.md")]

mod applied;
mod config;
mod journal;
mod limits;
mod merge;
mod mirror;
mod receipt;
mod records;
mod recovery;
mod shared;
mod status;
mod store;
mod version;

pub use config::FallbackConfig;
pub use status::FallbackStatus;
pub use store::FallbackState;
