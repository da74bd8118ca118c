#![doc = include_str!("../README.md")]

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod error;
#[cfg(any(test, feature = "conformance"))]
mod failing;
mod memory;
mod queue;
mod store;
mod turns;

pub use error::{Error, ErrorKind, Result};
#[cfg(any(test, feature = "conformance"))]
pub use failing::{Before, FailingQueue, FailingState};
pub use memory::{MemoryQueue, MemoryState};
pub use queue::{Claim, TaskQueue};
pub use store::{Expect, Key, Op, Order, Record, StateStore, StateStoreExt, Write};
pub use turns::Turns;
