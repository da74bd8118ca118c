//! Output of reports.

use std::{
    fmt,
    io::{self, Write as _},
    path::Path,
};

use anyhow::Result;
use serde::Serialize;

use crate::output_file::OutputFile;

/// Where a report goes.
#[derive(Debug)]
pub(super) enum Output {
    /// To the standard output, as text.
    Text,
    /// To the standard output, as JSON.
    Json,
    /// To the standard output as text, and to a file as JSON.
    Both(OutputFile),
}

impl Output {
    /// The output for the argument of `--json`.
    pub(super) fn open(json: Option<&Path>) -> Result<Self> {
        match json {
            None => Ok(Self::Text),
            Some(file) if file.as_os_str() == "-" => Ok(Self::Json),
            Some(file) => OutputFile::open(file).map(Self::Both),
        }
    }

    /// Prints a report.
    pub(super) fn print(self, report: &(impl fmt::Display + Serialize)) -> Result<()> {
        let mut out = io::stdout();
        match self {
            Self::Json => return Ok(writeln!(out, "{}", serde_json::to_string_pretty(report)?)?),
            Self::Both(file) => file.write(|file| Ok(serde_json::to_writer_pretty(file, report)?))?,
            Self::Text => {}
        }
        Ok(write!(out, "{report}")?)
    }
}
