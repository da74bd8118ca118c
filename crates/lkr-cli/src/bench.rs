//! `lkr bench`: measures what the service costs beyond its engines.

mod connection;
mod copies;
mod dedup;
mod disk;
mod growing_base;
mod growth;
mod idle;
mod ingest;
mod layers;
mod listings;
mod load;
mod logins;
mod material;
mod page_cache;
mod random;
mod reembed;
mod report;
mod rights;
mod rotated;
mod search;
mod space_bases;
mod spaces;
mod start;

use std::{io::Write, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};

use crate::{collection::Gold, local_kb::LocalKnowledgeBase};
use growing_base::GrowingBase;
use material::{Material, at_least_one, read_documents};
use report::SpeedReport;

/// The arguments of `lkr bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Debug, clap::Subcommand)]
enum Bench {
    /// Compare ingestion with the embedding engine alone, and searches with their legs alone, in this process.
    Speed(SpeedArgs),
    /// Compare layered searches with flat ones as the knowledge base grows, in this process.
    Layers(GrowingBase),
    /// Compare searches, ingestion, recall and space as the knowledge base grows, in this process.
    Growth(GrowingBase),
    /// Compare searches during re-embedding with searches before it, in this process.
    Reembed(reembed::Args),
    /// Compare the lookup of near duplicates with ingestion, in this process.
    Dedup(dedup::Args),
    /// Measure the disk space of a chunk, and its growth when documents are deleted and added again, in this process.
    Disk(disk::Args),
    /// Compare listings of a space alone and beside a million documents of another, in this process.
    Listings(listings::Args),
    /// Compare searches in spaces and with filters with those of a base that has nothing else, in this process.
    Spaces(spaces::Args),
    /// Send requests to a running server, and measure latencies, rates and the processor time of the server.
    Load(load::Args),
    /// Start a server on an existing folder several times, and measure the time until it is ready.
    Start(start::Args),
    /// Compare searches of a running server with and without concurrent logins.
    Logins(logins::Args),
    /// Measure on a running server whether response times tell unreadable documents from unknown ones.
    Rights(rights::Args),
}

#[derive(Debug, clap::Args)]
struct SpeedArgs {
    /// Create the knowledge base in this folder, which must be empty or missing.
    #[arg(long, value_name = "FOLDER")]
    data_dir: PathBuf,
    #[command(flatten)]
    material: Material,
    /// Use the first N documents only.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    documents: Option<usize>,
}

/// Runs a benchmark and prints its report.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let runtime = || tokio::runtime::Runtime::new().context("start the runtime");
    let report = match &args.bench {
        Bench::Speed(speed) => runtime()?.block_on(measure(speed))?.to_string(),
        Bench::Layers(args) => runtime()?.block_on(layers::measure(args))?.to_string(),
        Bench::Growth(args) => {
            runtime()?.block_on(growth::measure(args, std::io::stdout()))?;
            return Ok(ExitCode::SUCCESS);
        }
        Bench::Reembed(args) => runtime()?.block_on(reembed::measure(args))?.to_string(),
        Bench::Dedup(args) => runtime()?.block_on(dedup::measure(args))?.to_string(),
        Bench::Disk(args) => runtime()?.block_on(disk::measure(args))?.to_string(),
        Bench::Listings(args) => runtime()?.block_on(listings::measure(args))?.to_string(),
        Bench::Spaces(args) => runtime()?.block_on(spaces::measure(args))?.to_string(),
        Bench::Load(args) => return load::run(args),
        Bench::Start(args) => start::measure(args)?.to_string(),
        Bench::Logins(args) => logins::measure(args)?.to_string(),
        Bench::Rights(args) => rights::measure(args)?.to_string(),
    };
    write!(std::io::stdout(), "{report}")?;
    Ok(ExitCode::SUCCESS)
}

async fn measure(speed: &SpeedArgs) -> Result<SpeedReport> {
    let inputs = read_documents(&speed.material.dir, speed.documents)?;
    let gold = Gold::read(&speed.material.dir, None)?;
    let local_kb = LocalKnowledgeBase::create(&speed.data_dir, Some(speed.material.embedder()?)).await?;
    let embedder = local_kb.embedder.as_ref().context("a model")?;
    let ingestion = ingest::measure(&local_kb.kb, embedder, inputs).await?;
    let search = search::measure(&local_kb, &gold.queries).await?;
    local_kb.kb.close().await;
    Ok(SpeedReport { ingestion, search })
}
