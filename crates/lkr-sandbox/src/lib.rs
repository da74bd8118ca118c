#![doc = include_str!("../README.md")]

mod child;
mod confine;
mod error;
mod extracted;
mod limits;
mod message;
mod sandbox;
mod watch;
mod worker;

pub use error::{Error, ErrorKind, Result};
pub use extracted::Extracted;
pub use limits::Limits;
pub use sandbox::{Build, FileSource, Mode, Sandbox, SandboxOptions};
pub use worker::run_worker;
