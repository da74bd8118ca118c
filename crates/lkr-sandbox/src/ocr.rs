//! OCR in a process of its own, so that the worker itself needs no files and starts no programs. The worker sends images
//! of pages through a pipe and receives their text.

mod client;
mod message;
mod server;

pub use client::OcrProcess;
pub(crate) use message::OcrRequest;
pub use server::OpenedOcr;
pub(crate) use server::serve;
