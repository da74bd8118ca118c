//! `lkr eval`: the queries of a collection, asked and judged: of a knowledge base in this process, or of a server.

mod citations;
mod judge;
mod local;
mod local_report;
mod per_query;
mod server_report;
mod server_search;
mod systems;

pub(crate) use judge::Target;
pub(crate) use per_query::{Judged, read as read_per_query};

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
use server_report::{QueryFigures, Report};
use server_search::Search;

/// What `lkr eval` is told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    login: Login,
    /// The folder of the collection: queries.jsonl and qrels.tsv (or qrels_docs.tsv), and its documents.
    dir: PathBuf,
    /// Of a server: which layers take part.
    #[arg(long, value_enum, default_value_t, requires = "server")]
    mode: Mode,
    /// Of a server: how the evidence is fused.
    #[arg(long, value_enum, default_value_t, requires = "server")]
    fusion: Fusion,
    /// Of a server: send the collection's documents first. They are added to what is there.
    #[arg(long, requires = "server")]
    ingest: bool,
    /// Other queries of the collection: those of queries_NAME.jsonl and qrels_NAME.tsv.
    #[arg(long, value_name = "NAME")]
    split: Option<String>,
    /// Write the figures to this file as JSON, of a server those of every query too; - is the standard output.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// In this process: where the knowledge base lies. What is there already is not brought in again. A folder that
    /// goes afterwards unless one is given.
    #[arg(long, value_name = "FOLDER", conflicts_with = "server")]
    data_dir: Option<PathBuf>,
    /// In this process: the folder of the embedding model; without one, by words alone.
    #[arg(long, value_name = "FOLDER", conflicts_with = "server")]
    model: Option<PathBuf>,
    /// In this process: ask the dense legs of layered searches a second time.
    #[arg(long, conflicts_with = "server")]
    second_round: bool,
    /// In this process: write what was found for every query to this file, for `lkr compare`.
    #[arg(long, value_name = "FILE", conflicts_with = "server")]
    per_query: Option<PathBuf>,
}

/// Which layers take part in a search.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum Mode {
    /// All four.
    #[default]
    Layered,
    /// Chunks alone.
    Flat,
}

/// How the legs of a search are fused.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum Fusion {
    /// Reciprocal-rank fusion over graded ranks.
    #[default]
    Graded,
    /// Plain reciprocal-rank fusion.
    Rrf,
}

/// Runs the evaluation and prints the figures. Fails where a citation does not hold.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if !args.login.names_server() {
        return local::run(args);
    }
    let gold = Gold::read(&args.dir, args.split.as_deref())?;
    let name = name_of(&args.dir)?;
    let ingested = args.ingest.then(|| bring_in(args)).transpose()?;
    let search = Search::new(args.login.anonymous(), args.mode, args.fusion);
    let report = evaluate(&search, &name, &gold, ingested)?;
    show(&report, args.json.as_deref())?;
    Ok(if report.is_sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints a report, and writes it as JSON where that is wanted; to the standard output in its place.
fn show(report: &(impl fmt::Display + Serialize), json: Option<&Path>) -> Result<()> {
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

fn bring_in(args: &Args) -> Result<ingest::Report> {
    ingest(&args.login.log_in()?, collection(&args.dir)?)
}

fn evaluate(search: &Search, name: &str, gold: &Gold, ingested: Option<ingest::Report>) -> Result<Report> {
    let mut citations = Citations::from_server(search.client());
    let (mut judged, mut latencies) = (Vec::new(), Vec::new());
    for query in &gold.queries {
        let documents = search.documents(&query.text)?;
        let chunks = search.chunks(&query.text)?;
        for result in documents.results.iter().chain(&chunks.results) {
            citations.check(&result.into())?;
        }
        latencies.extend(chunks.fresh());
        judged.push(judge(name, query, &documents));
    }
    Ok(Report::new(name, ingested, judged, Latency::of(latencies), citations.finish()))
}

fn judge(name: &str, query: &Query, found: &server_search::Found) -> QueryFigures {
    let prefix = format!("{name}:");
    let sources = found.results.iter().filter_map(|result| result.source.strip_prefix(prefix.as_str()));
    let ranking = distinct(sources.map(str::to_owned));
    QueryFigures { id: query.id.clone(), measures: Measures::of(&ranking, &query.documents) }
}
