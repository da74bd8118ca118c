//! `lkr eval`: runs the queries of a collection against a knowledge base in this process or a server, and measures the
//! results.

mod citations;
mod judge;
mod local;
mod local_report;
mod per_query;
mod server_report;
mod server_search;
mod systems;

pub(crate) use judge::Target;
pub(crate) use per_query::{JudgedQuery, read as read_per_query};

use std::{
    fmt, fs,
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result};
use clap::ValueEnum;
use lkr_eval::{Measures, distinct};
use serde::Serialize;

use crate::{
    collection::{Gold, Query, collection, name_of},
    http::Login,
    ingest::{self, ingest},
    stats::Latency,
};
use citations::Citations;
use server_report::{QueryMeasures, ServerReport};
use server_search::ServerSearch;

/// The arguments of `lkr eval`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    login: Login,
    /// Evaluate the collection in this folder: queries.jsonl, qrels.tsv or qrels_docs.tsv, and documents.
    dir: PathBuf,
    /// Choose the layers that a server searches.
    #[arg(long, value_enum, default_value_t, requires = "server")]
    mode: ModeArg,
    /// Choose how a server fuses the legs.
    #[arg(long, value_enum, default_value_t, requires = "server")]
    fusion: FusionArg,
    /// Send the collection's documents to the server first.
    #[arg(long, requires = "server")]
    ingest: bool,
    /// Use the queries of queries_NAME.jsonl and qrels_NAME.tsv.
    #[arg(long, value_name = "NAME")]
    split: Option<String>,
    /// Write the figures to this file as JSON, or to the standard output for `-`. With --server, they include those of
    /// each query.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Keep the local knowledge base in this folder and reuse its documents. Without it, a temporary folder is used.
    #[arg(long, value_name = "FOLDER", conflicts_with = "server")]
    data_dir: Option<PathBuf>,
    /// Use the embedding model in this folder for the local knowledge base. Without it, searches use words alone.
    #[arg(long, value_name = "FOLDER", conflicts_with = "server")]
    model: Option<PathBuf>,
    /// Query the dense legs of local layered searches a second time.
    #[arg(long, conflicts_with = "server")]
    second_round: bool,
    /// Write the local results of each query to this file, for `lkr compare`.
    #[arg(long, value_name = "FILE", conflicts_with = "server")]
    per_query: Option<PathBuf>,
}

/// The layers that are searched.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum ModeArg {
    /// Search all four layers.
    #[default]
    Layered,
    /// Search chunks alone.
    Flat,
}

/// The fusion of the legs.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum FusionArg {
    /// Use reciprocal-rank fusion over graded ranks.
    #[default]
    Graded,
    /// Use plain reciprocal-rank fusion.
    Rrf,
}

/// Runs the evaluation and prints the figures. Fails if a citation does not match its document.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if !args.login.names_server() {
        return local::run(args);
    }
    let gold = Gold::read(&args.dir, args.split.as_deref())?;
    let name = name_of(&args.dir)?;
    let ingested = args.ingest.then(|| ingest_collection(args)).transpose()?;
    let search = ServerSearch::new(args.login.anonymous(), args.mode, args.fusion);
    let report = evaluate(&search, &name, &gold, ingested)?;
    print_report(&report, args.json.as_deref())?;
    Ok(if report.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints a report. If a JSON file is given, writes it there too; for `-`, prints JSON instead.
fn print_report(report: &(impl fmt::Display + Serialize), json: Option<&Path>) -> Result<()> {
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

fn ingest_collection(args: &Args) -> Result<ingest::Report> {
    ingest(&args.login.log_in()?, collection(&args.dir)?)
}

fn evaluate(
    search: &ServerSearch,
    name: &str,
    gold: &Gold,
    ingested: Option<ingest::Report>,
) -> Result<ServerReport> {
    let mut citations = Citations::from_server(search.client());
    let (mut judged, mut latencies) = (Vec::new(), Vec::new());
    for query in &gold.queries {
        let documents = search.documents(&query.text)?;
        let chunks = search.chunks(&query.text)?;
        for result in documents.results.iter().chain(&chunks.results) {
            citations.check(&result.into())?;
        }
        latencies.extend(chunks.uncached_latency());
        judged.push(judge(name, query, &documents));
    }
    Ok(ServerReport::new(name, ingested, judged, Latency::of(latencies), citations.finish()))
}

fn judge(name: &str, query: &Query, found: &server_search::ServerResponse) -> QueryMeasures {
    let prefix = format!("{name}:");
    let sources = found.results.iter().filter_map(|result| result.source.strip_prefix(prefix.as_str()));
    let ranking = distinct(sources.map(str::to_owned));
    QueryMeasures { id: query.id.clone(), measures: Measures::of(&ranking, &query.documents) }
}
