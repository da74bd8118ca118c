//! `lkr ingest`: documents in, and waited for.

mod report;
mod submit;
mod wait;

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use anyhow::Result;

pub(crate) use report::Report;

use crate::{
    collection::{Input, collection, is_collection, texts_below},
    http::{Client, Login},
};

/// What `lkr ingest` is told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    login: Login,
    /// Folders with docs.jsonl or corpus.jsonl, folders of .txt and .md files, or such files.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
}

/// Sends the documents and prints what came of them. Fails where a task did.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut inputs = Vec::new();
    for path in &args.paths {
        inputs.extend(read(path)?);
    }
    let report = ingest(&args.login.log_in()?, inputs)?;
    write!(std::io::stdout(), "{report}")?;
    Ok(if report.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Sends documents and waits for all of them.
pub(crate) fn ingest(client: &Client, inputs: Vec<Input>) -> Result<Report> {
    let started = Instant::now();
    let tasks = submit::all(client, inputs)?;
    let ends = wait::all(client, &tasks)?;
    Ok(Report::new(ends, started.elapsed()))
}

fn read(path: &Path) -> Result<Vec<Input>> {
    if is_collection(path) { collection(path) } else { texts_below(path) }
}
