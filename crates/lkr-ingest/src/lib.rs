#![doc = include_str!("../README.md")]

mod change;
mod classify;
mod dedup;
mod dense;
mod describe;
mod draft;
mod error;
mod evaluate;
mod file;
mod fingerprint;
mod ingestor;
mod janitor;
mod long_texts;
mod near;
mod options;
mod pipeline;
mod publish;
mod reembed;
mod reuse;
mod shelves;
mod store;
mod submit;
mod upgrade;
mod upsert;
mod worker;

pub use error::{Error, ErrorKind, Result};
pub use evaluate::{Evaluator, Judged};
pub use file::NewFile;
pub use fingerprint::fingerprint;
pub use ingestor::{Hold, Ingestor, Ports};
pub use lkr_catalog::DocumentChange;
pub use near::Near;
pub use options::IngestOptions;
pub use submit::{OnReplace, Submission, Upsert, drop_reserved};
pub use worker::Workers;
