#![doc = include_str!("../README.md")]

mod child;
mod confine;
mod confinement;
mod error;
mod extracted;
mod fair_gate;
mod limits;
mod message;
mod ocr;
mod sandbox;
mod seal;
mod usage;
mod viewer;
mod worker;

pub use confine::hide_process_memory;
pub use confinement::{Confinement, Layer};
pub use error::{Error, ErrorKind, Result};
pub use extracted::Extracted;
pub use limits::Limits;
pub use ocr::{OcrProcess, OpenedOcr};
pub use sandbox::{FileSource, ReaderFactory, Sandbox, SandboxMode, SandboxOptions};
pub use seal::ProgramFiles;
pub use viewer::FileViewer;
pub use worker::{ParserRequest, WorkerProgram, run_worker};
