#![doc = include_str!("../README.md")]

mod child;
mod confine;
mod error;
mod extracted;
mod fair_gate;
mod limits;
mod memory;
mod message;
mod sandbox;
mod worker;

pub use error::{Error, ErrorKind, Result};
pub use extracted::Extracted;
pub use limits::Limits;
pub use sandbox::{FileSource, ParserFactory, Sandbox, SandboxMode, SandboxOptions};
pub use worker::run_worker;
