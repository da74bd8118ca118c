#![doc = include_str!("../README.md")]

mod body;
mod check;
mod client;
mod config;
mod error;
mod location;
mod store;
mod tls;

pub use check::check;
pub use config::S3Config;
pub use error::{Error, ErrorKind, Result};
pub use location::S3Location;
pub use store::open;
