//! The messages between the sandbox and its worker. The worker reads the request and the file from standard input. It
//! writes the text and its blocks to standard output, which is a file, and its report as the last line of standard
//! error.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

use crate::{Confinement, Error, ErrorKind, Limits, ocr::OcrRequest};

/// The first line of the worker's input.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WorkerRequest {
    /// Extract the text of the file that follows.
    Extract(FileRequest),
    /// View the file that follows.
    View(FileRequest),
    /// Recognise the text in the images that follow.
    Ocr(OcrRequest),
    /// Report what confines a worker.
    Confine,
}

/// How a worker starts another process of its program.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct WorkerCommand {
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
}

/// A file to extract or to view; its bytes follow.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FileRequest {
    /// Starts the OCR process.
    pub(crate) command: WorkerCommand,
    /// Which parser or viewer to build; the sandbox does not interpret it.
    pub(crate) plan: serde_json::Value,
    pub(crate) file_name: String,
    pub(crate) media_type: Option<String>,
    /// The number of bytes that follow.
    pub(crate) length: u64,
    pub(crate) limits: Limits,
}

/// The last line of a worker's standard error.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Report {
    Extracted(OutputSummary),
    /// The number of bytes of the view.
    Viewed(u64),
    Confined(Confinement),
    Refused(WorkerError),
}

/// Describes the output file: the text, followed by its blocks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OutputSummary {
    pub(crate) text_bytes: u64,
    pub(crate) blocks_bytes: u64,
    pub(crate) blank: bool,
    pub(crate) warnings: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WorkerError {
    pub(crate) kind: ErrorKind,
    pub(crate) message: String,
}

/// Further warnings are only counted.
const MAX_WARNINGS: usize = 50;

impl OutputSummary {
    pub(crate) fn new(text: &str, blocks: &[u8], mut warnings: Vec<String>) -> Self {
        let omitted = warnings.len().saturating_sub(MAX_WARNINGS);
        warnings.truncate(MAX_WARNINGS);
        if omitted > 0 {
            warnings.push(format!("and {omitted} more"));
        }
        Self {
            text_bytes: text.len() as u64,
            blocks_bytes: blocks.len() as u64,
            blank: text.chars().all(is_invisible),
            warnings,
        }
    }
}

/// Whether a character is invisible. A text of invisible characters counts as blank.
fn is_invisible(c: char) -> bool {
    let is_zero_width = matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}');
    c.is_whitespace() || c.is_control() || is_zero_width
}

impl From<&Error> for WorkerError {
    fn from(error: &Error) -> Self {
        Self { kind: error.kind(), message: error.reason() }
    }
}
