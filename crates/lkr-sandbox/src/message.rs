//! What the sandbox and its worker tell each other. The order and the file go to the worker's standard input; the
//! text and its blocks come from its standard output, which is a file; the report is the last line of its standard
//! error.

use serde::{Deserialize, Serialize};

use crate::{Error, ErrorKind, Limits};

/// The first line of what a worker is sent; the file's bytes follow.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// What to read with, in the terms of whoever built the worker.
    pub(crate) plan: serde_json::Value,
    pub(crate) file_name: String,
    pub(crate) media_type: Option<String>,
    /// How many bytes follow.
    pub(crate) length: u64,
    pub(crate) limits: Limits,
}

/// The last line of what a worker says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Report {
    Extracted(Summary),
    Refused(Refusal),
}

/// What lies in the output: the text, and right behind it its blocks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub(crate) text_bytes: u64,
    pub(crate) blocks_bytes: u64,
    pub(crate) blank: bool,
    pub(crate) warnings: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Refusal {
    pub(crate) kind: ErrorKind,
    pub(crate) message: String,
}

/// Warnings beyond this many are counted alone.
const MAX_WARNINGS: usize = 50;

impl Summary {
    pub(crate) fn new(text: &str, blocks: &[u8], mut warnings: Vec<String>) -> Self {
        let more = warnings.len().saturating_sub(MAX_WARNINGS);
        warnings.truncate(MAX_WARNINGS);
        if more > 0 {
            warnings.push(format!("and {more} more"));
        }
        Self {
            text_bytes: text.len() as u64,
            blocks_bytes: blocks.len() as u64,
            blank: text.chars().all(is_unseen),
            warnings,
        }
    }
}

/// Whether nothing of a character can be seen, so that a text of such characters is none.
fn is_unseen(c: char) -> bool {
    let is_zero_width = matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}');
    c.is_whitespace() || c.is_control() || is_zero_width
}

impl From<&Error> for Refusal {
    fn from(error: &Error) -> Self {
        Self { kind: error.kind(), message: error.reason() }
    }
}
