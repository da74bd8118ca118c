//! `lkr eval`: the queries of a collection, asked of a server and judged.

mod citations;
mod metrics;
mod report;
mod search;

use std::{fs, io::Write, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::{
    collection::{Gold, Query, collection, name_of},
    http::Login,
    ingest::{self, ingest},
    stats::Latency,
};
use citations::Citations;
use metrics::Scores;
use report::Report;
use search::Search;

/// What `lkr eval` is told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    login: Login,
    /// The folder of the collection: queries.jsonl and qrels.tsv (or qrels_docs.tsv), and its documents.
    dir: PathBuf,
    /// Which layers take part.
    #[arg(long, value_enum, default_value_t)]
    mode: Mode,
    /// How the evidence is fused.
    #[arg(long, value_enum, default_value_t)]
    fusion: Fusion,
    /// Send the collection's documents first. They are added to what is there.
    #[arg(long)]
    ingest: bool,
    /// Write the figures, and those of every query, to this file as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
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

/// A query's figures.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Judged {
    pub(crate) id: String,
    #[serde(flatten)]
    pub(crate) scores: Scores,
}

/// Runs the evaluation and prints the figures. Fails where a citation does not hold.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let gold = Gold::read(&args.dir)?;
    let name = name_of(&args.dir)?;
    let ingested = args.ingest.then(|| bring_in(args)).transpose()?;
    let search = Search::new(args.login.anonymous(), args.mode, args.fusion);
    let report = evaluate(&search, &name, &gold, ingested)?;
    write!(std::io::stdout(), "{report}")?;
    if let Some(file) = &args.json {
        let json = serde_json::to_vec_pretty(&report)?;
        fs::write(file, json).with_context(|| format!("write {}", file.display()))?;
    }
    Ok(if report.is_sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn bring_in(args: &Args) -> Result<ingest::Report> {
    ingest(&args.login.log_in()?, collection(&args.dir)?)
}

fn evaluate(search: &Search, name: &str, gold: &Gold, ingested: Option<ingest::Report>) -> Result<Report> {
    let mut citations = Citations::new(search.client());
    let (mut judged, mut latencies) = (Vec::new(), Vec::new());
    for query in &gold.queries {
        let documents = search.documents(&query.text)?;
        let chunks = search.chunks(&query.text)?;
        for result in documents.results.iter().chain(&chunks.results) {
            citations.check(result)?;
        }
        latencies.extend(chunks.fresh());
        judged.push(judge(name, query, &documents));
    }
    Ok(Report::new(name, ingested, judged, Latency::of(latencies), citations.finish()))
}

fn judge(name: &str, query: &Query, found: &search::Found) -> Judged {
    let prefix = format!("{name}:");
    let sources = found.results.iter().filter_map(|result| result.source.strip_prefix(prefix.as_str()));
    Judged { id: query.id.clone(), scores: Scores::of(&metrics::distinct(sources), &query.gains) }
}
