//! `lkr bench`: how much the service adds to what it stands on.

mod copies;
mod dedup;
mod idle;
mod ingest;
mod layers;
mod logins;
mod random;
mod reembed;
mod report;
mod rotated;
mod search;

use std::{io::Write, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};

use crate::{
    collection::{Gold, collection},
    local_kb::LocalKnowledgeBase,
};
use report::SpeedReport;

/// What `lkr bench` is told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Debug, clap::Subcommand)]
enum Bench {
    /// Ingestion against the embedding engine alone, search against its legs alone, in this process.
    Speed(Speed),
    /// Layered searches against flat ones, with and without a second round, as the knowledge base grows, in this
    /// process.
    Layers(layers::Args),
    /// Searches before and while every document is embedded anew, in this process.
    Reembed(reembed::Args),
    /// Looking for near texts among many, against bringing one in, in this process.
    Dedup(dedup::Args),
    /// Searches with and without logins beside them, of a running server.
    Logins(logins::Args),
}

#[derive(Debug, clap::Args)]
struct Speed {
    /// Where to make the knowledge base: an empty folder, or none yet.
    #[arg(long, value_name = "FOLDER")]
    data_dir: PathBuf,
    /// The folder of the embedding model.
    #[arg(long, value_name = "FOLDER")]
    model: PathBuf,
    /// The folder of the collection.
    dir: PathBuf,
    /// Take the first documents only, as many as this.
    #[arg(long, value_name = "N")]
    documents: Option<usize>,
}

/// Runs a bench and prints its figures.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let runtime = || tokio::runtime::Runtime::new().context("start the runtime");
    let report = match &args.bench {
        Bench::Speed(speed) => runtime()?.block_on(measure(speed))?.to_string(),
        Bench::Layers(args) => runtime()?.block_on(layers::measure(args))?.to_string(),
        Bench::Reembed(args) => runtime()?.block_on(reembed::measure(args))?.to_string(),
        Bench::Dedup(args) => runtime()?.block_on(dedup::measure(args))?.to_string(),
        Bench::Logins(args) => logins::measure(args)?.to_string(),
    };
    write!(std::io::stdout(), "{report}")?;
    Ok(ExitCode::SUCCESS)
}

async fn measure(speed: &Speed) -> Result<SpeedReport> {
    let mut inputs = collection(&speed.dir)?;
    inputs.truncate(speed.documents.unwrap_or(usize::MAX));
    let gold = Gold::read(&speed.dir, None)?;
    let local_kb = LocalKnowledgeBase::make(&speed.data_dir, Some(&speed.model)).await?;
    let embedder = local_kb.embedder.as_ref().context("a model")?;
    let ingestion = ingest::measure(&local_kb.kb, embedder, inputs).await?;
    let search = search::measure(&local_kb, embedder, &gold.queries).await?;
    local_kb.kb.close().await;
    Ok(SpeedReport { ingestion, search })
}
