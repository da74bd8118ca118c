//! Output of reports.

use std::{fmt, fs, io::Write, path::Path};

use anyhow::{Context, Result};
use serde::Serialize;

/// Prints a report. If a JSON file is given, writes it there too; for `-`, prints JSON instead.
pub(super) fn print_report(report: &(impl fmt::Display + Serialize), json: Option<&Path>) -> Result<()> {
    match json {
        Some(file) if file.as_os_str() == "-" => {
            return Ok(writeln!(std::io::stdout(), "{}", serde_json::to_string_pretty(report)?)?);
        }
        Some(file) => {
            let json = serde_json::to_vec_pretty(report)?;
            fs::write(file, json).with_context(|| format!("write {}", file.display()))?;
        }
        None => {}
    }
    Ok(write!(std::io::stdout(), "{report}")?)
}
