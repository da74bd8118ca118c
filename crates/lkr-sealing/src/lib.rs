#![doc = include_str!("../README.md")]

mod error;
mod hex;
mod key;
mod secret;

pub use error::{Error, ErrorKind, Result};
pub use key::SealingKey;
pub use secret::{MASK, Secret};
