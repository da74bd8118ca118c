use std::{
    io::{self, BufRead, Read as _, Write},
    time::Duration,
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{Error, ErrorKind, Limits, message::WorkerError};

/// The first line of the input of an OCR process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct OcrRequest {
    /// Which OCR to open; the sandbox does not interpret it.
    pub(crate) plan: serde_json::Value,
    pub(crate) limits: Limits,
}

/// The first line of its output.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Opened {
    pub(super) warning: Option<String>,
}

/// A line that is followed by the pixels of a page.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PageRequest {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) dpi: u32,
    /// How long recognising the page may take.
    pub(super) time: Duration,
}

/// A line of output.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Answer<T> {
    Done(T),
    Failed(WorkerError),
}

/// The maximum length of a line; the text of a page is shorter.
const MAX_LINE_BYTES: u64 = 16 * 1024 * 1024;

pub(super) fn write_line(output: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    output.write_all(&line)?;
    output.flush()
}

/// Reads a message; `None` at the end of the input.
pub(super) fn read_line<T: DeserializeOwned>(input: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    input.take(MAX_LINE_BYTES).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&line)?))
}

/// The error of a parser with the kind and the reason that the other process reported.
pub(super) fn parser_error(error: WorkerError) -> lkr_parsers::Error {
    let kind = match error.kind {
        ErrorKind::Limit => lkr_parsers::ErrorKind::Limit,
        ErrorKind::Input => lkr_parsers::ErrorKind::Input,
        _ => lkr_parsers::ErrorKind::Internal,
    };
    lkr_parsers::Error::new(kind, OPERATION, error.message)
}

pub(super) fn worker_error(error: lkr_parsers::Error) -> WorkerError {
    WorkerError::from(&Error::from(error))
}

/// The error that the other process cannot be talked to.
pub(super) fn broken(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> lkr_parsers::Error {
    lkr_parsers::Error::new(lkr_parsers::ErrorKind::Internal, OPERATION, error)
}

const OPERATION: &str = "recognise text";
