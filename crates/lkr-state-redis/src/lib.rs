#![doc = include_str!("../README.md")]

mod address;
mod client;
mod clock;
mod config;
mod dump;
mod durability;
mod error;
mod keys;
mod link;
mod queue;
mod reply;
mod restore;
mod script;
mod snapshot;
mod state;
mod step;
mod store;
mod wake;

pub use config::RedisConfig;
pub use queue::RedisQueue;
pub use state::RedisState;
pub use store::{Opened, RedisStore};
