//! `lkr doctor`: checks that everything that is stored is undamaged and consistent.

mod print;

use std::{
    io::{Write, stderr},
    process::ExitCode,
};

use anyhow::{Context, Result};
use lkr::{
    ErrorKind,
    doctor::{DoctorOptions, DoctorReport, ReadRecord, examine},
};

use crate::{error_line::error_line, folders::FolderArgs};

/// The exit status if problems remain.
const PROBLEMS_REMAIN: u8 = 1;

/// The exit status if the check was not possible.
const NOT_CHECKED: u8 = 2;

/// The arguments of `lkr doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    folders: FolderArgs,
    /// Repair what can be repaired. Without this flag nothing is changed.
    #[arg(long)]
    repair: bool,
    /// Print one JSON object instead of lines.
    #[arg(long)]
    json: bool,
}

/// Checks a knowledge base and prints the findings. The exit status is 0 if no problem remains, 1 if some do, and 2 if
/// the check was not possible.
pub(crate) fn run(args: &Args) -> ExitCode {
    match check(args) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(stderr(), "lkr: {}", error_line(&error));
            ExitCode::from(NOT_CHECKED)
        }
    }
}

fn check(args: &Args) -> Result<ExitCode> {
    let folders = args.folders.find()?;
    let shown = folders.data_dir.display().to_string();
    let readers: Vec<ReadRecord> =
        vec![lkr_auth::is_readable, lkr_settings::is_readable, lkr_spaces::is_readable];
    let options = DoctorOptions { folders, repair: args.repair, readers };
    let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
    let examined = runtime.block_on(examine(options)).map_err(|error| match error.kind() {
        ErrorKind::Conflict => anyhow::anyhow!("{shown} is in use by another process: stop the server first"),
        _ => anyhow::Error::new(error),
    })?;
    print::print(&examined, args.json)?;
    Ok(code(&examined))
}

fn code(examined: &DoctorReport) -> ExitCode {
    let problems_remain =
        examined.is_partial || examined.report.findings.iter().any(lkr::doctor::Finding::is_unrepaired);
    if problems_remain { ExitCode::from(PROBLEMS_REMAIN) } else { ExitCode::SUCCESS }
}
