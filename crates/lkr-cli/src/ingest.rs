//! `lkr ingest`: sends documents and waits until they are searchable.

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

/// The arguments of `lkr ingest`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    login: Login,
    /// Ingest folders with docs.jsonl or corpus.jsonl, folders of .txt and .md files, or single such files.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
}

/// Sends the documents and prints a report. Fails if a task failed.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut inputs = Vec::new();
    for path in &args.paths {
        inputs.extend(read(path)?);
    }
    let report = ingest(&args.login.log_in()?, inputs)?;
    write!(std::io::stdout(), "{report}")?;
    Ok(if report.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Sends documents and waits until all tasks have ended.
pub(crate) fn ingest(client: &Client, inputs: Vec<Input>) -> Result<Report> {
    let started = Instant::now();
    let tasks = submit::all(client, inputs)?;
    let ends = wait::all(client, &tasks)?;
    Ok(Report::new(ends, started.elapsed()))
}

fn read(path: &Path) -> Result<Vec<Input>> {
    if is_collection(path) { collection(path) } else { texts_below(path) }
}
