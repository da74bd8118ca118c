//! `lkr doctor`: whether everything that is stored is whole and belongs together.

mod print;

use std::{
    io::{Write, stderr},
    process::ExitCode,
};

use anyhow::{Context, Result};
use lkr::{
    ErrorKind,
    doctor::{DoctorReport, Options, ReadRecord, examine},
};

use crate::folders::FolderArgs;

/// Nothing is wrong, or all of it is mended; something is; it could not be looked at.
const FOUND: u8 = 1;
const NOT_CHECKED: u8 = 2;

/// What `lkr doctor` is told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    folders: FolderArgs,
    /// Mend what is wrong. Nothing is changed otherwise.
    #[arg(long)]
    repair: bool,
    /// Print one JSON object instead of lines.
    #[arg(long)]
    json: bool,
}

/// Looks, prints what is wrong, and answers 0 where nothing is left to be done, 1 where something is, 2 where it could
/// not be looked at.
pub(crate) fn run(args: &Args) -> ExitCode {
    match check(args) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(stderr(), "lkr: {}", crate::line(&error));
            ExitCode::from(NOT_CHECKED)
        }
    }
}

fn check(args: &Args) -> Result<ExitCode> {
    let folders = args.folders.find()?;
    let shown = folders.data_dir.display().to_string();
    let readers: Vec<ReadRecord> = vec![lkr_auth::is_readable, lkr_settings::is_readable];
    let options = Options { folders, repair: args.repair, readers };
    let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
    let examined = runtime.block_on(examine(options)).map_err(|error| match error.kind() {
        ErrorKind::Conflict => anyhow::anyhow!("{shown} is in use by another process: stop the server first"),
        _ => anyhow::Error::new(error),
    })?;
    print::print(&examined, args.json)?;
    Ok(code(&examined))
}

fn code(examined: &DoctorReport) -> ExitCode {
    let is_left = examined.is_partial || examined.report.findings.iter().any(lkr::doctor::Finding::is_left);
    if is_left { ExitCode::from(FOUND) } else { ExitCode::SUCCESS }
}
