//! `lkr doctor`: checks that everything that is stored is undamaged and consistent.

mod print;

use std::{
    io::{Write, stderr},
    process::ExitCode,
};

use anyhow::{Context, Result};
use lkr::{
    ConfiguredStores, ErrorKind,
    doctor::{
        DoctorOptions, DoctorReport, ReadDeletion, ReadRecord, StoresDoctorOptions, examine, examine_stores,
    },
    ports::state::{Expect, Write as RecordWrite},
};

use crate::{Program, error_line::error_line, folders::FolderArgs};

/// The exit status if problems remain.
const PROBLEMS_REMAIN: u8 = 1;

/// The exit status if the check was not possible.
const NOT_CHECKED: u8 = 2;

/// The arguments of `lkr doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    folders: FolderArgs,
    /// Check the stores of the configuration, which several processes may use: Redis, Qdrant and an object store. A repair
    /// restores records that Redis lost, and needs all processes stopped.
    #[arg(long)]
    shared: bool,
    /// Repair although processes seem to run on the stores. One that was killed counts for a minute.
    #[arg(long, requires = "shared")]
    force: bool,
    /// Repair what can be repaired. Without this flag nothing is changed.
    #[arg(long)]
    repair: bool,
    /// Print one JSON object instead of lines.
    #[arg(long)]
    json: bool,
}

/// Checks a knowledge base and prints the findings. The exit status is 0 if no problem remains, 1 if some do, and 2 if
/// the check was not possible.
pub(crate) fn run(args: &Args, program: &Program) -> ExitCode {
    match check(args, program) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(stderr(), "lkr: {}", error_line(&error));
            ExitCode::from(NOT_CHECKED)
        }
    }
}

fn check(args: &Args, program: &Program) -> Result<ExitCode> {
    if args.shared {
        return check_shared(args, program);
    }
    let folders = args.folders.find_embedded("use --shared")?;
    let shown = folders.data_dir.display().to_string();
    let options = DoctorOptions { folders, repair: args.repair, readers: readers() };
    let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
    let examined = runtime.block_on(examine(options)).map_err(|error| match error.kind() {
        ErrorKind::Conflict => anyhow::anyhow!("{shown} is in use by another process: stop the server first"),
        _ => anyhow::Error::new(error),
    })?;
    print::print(&examined, args.json)?;
    Ok(code(&examined))
}

/// Checks the stores of the configuration of a server in this folder.
fn check_shared(args: &Args, program: &Program) -> Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
    let examined = runtime.block_on(async {
        let ConfiguredStores { stores, folders, .. } = (program.stores)(args.folders.config()).await?;
        let doctor = DoctorOptions { folders, repair: args.repair, readers: readers() };
        // Accounts cannot be restored. A server must not make a first admin as if there had been none.
        let marks = vec![RecordWrite::put(lkr_auth::INITIALISED, Expect::Any, "1")];
        let deletions: Vec<ReadDeletion> = vec![lkr_auth::deleted_document];
        let options = StoresDoctorOptions { doctor, stores, deletions, marks, force: args.force };
        anyhow::Ok(examine_stores(options).await?)
    })?;
    print::print(&examined, args.json)?;
    Ok(code(&examined))
}

fn readers() -> Vec<ReadRecord> {
    vec![lkr_auth::is_readable, lkr_settings::is_readable, lkr_spaces::is_readable]
}

fn code(examined: &DoctorReport) -> ExitCode {
    let problems_remain =
        examined.is_partial || examined.report.findings.iter().any(lkr::doctor::Finding::is_unrepaired);
    if problems_remain { ExitCode::from(PROBLEMS_REMAIN) } else { ExitCode::SUCCESS }
}
