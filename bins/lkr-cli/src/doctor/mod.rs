//! `lkr doctor`: whether everything that is stored is whole and belongs together.

mod folders;
mod print;

use std::{
    io::{Write, stderr},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::{Context, Result};
use lkr::{
    ErrorKind,
    doctor::{Examined, Options, examine},
};

use folders::Folders;

/// Nothing is wrong, or all of it is mended; something is; it could not be looked at.
const FOUND: u8 = 1;
const NOT_CHECKED: u8 = 2;

/// What `lkr doctor` is told. What is not given here is taken from the environment and the server's configuration
/// file, as the server does.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The server's data folder; else that of LKR_DATA_DIR, of lkr.toml, or ./lkr-data.
    #[arg(long, value_name = "FOLDER")]
    data_dir: Option<PathBuf>,
    /// The folder of texts; else that of LKR_BLOBS, of lkr.toml, or <data-dir>/blobs.
    #[arg(long, value_name = "FOLDER")]
    blobs: Option<PathBuf>,
    /// The folder of uploaded files; else that of LKR_UPLOAD_DIR, of lkr.toml, or <data-dir>/uploads.
    #[arg(long, value_name = "FOLDER")]
    upload_dir: Option<PathBuf>,
    /// The server's configuration file; else lkr.toml in the working folder, where there is one.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
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
    let Folders { data_dir, blobs_dir, uploads_dir } = Folders::find(args)?;
    let shown = data_dir.display().to_string();
    let options = Options {
        data_dir,
        blobs_dir,
        uploads_dir,
        repair: args.repair,
        readers: vec![lkr_auth::is_readable, lkr_settings::is_readable],
    };
    let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
    let examined = runtime.block_on(examine(options)).map_err(|error| match error.kind() {
        ErrorKind::Conflict => anyhow::anyhow!("{shown} is in use by another process: stop the server first"),
        _ => anyhow::Error::new(error),
    })?;
    print::print(&examined, args.json)?;
    Ok(code(&examined))
}

fn code(examined: &Examined) -> ExitCode {
    let is_left = examined.is_partial || examined.report.findings.iter().any(lkr::doctor::Finding::is_left);
    if is_left { ExitCode::from(FOUND) } else { ExitCode::SUCCESS }
}
