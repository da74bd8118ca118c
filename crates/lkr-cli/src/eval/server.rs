//! Evaluation of a running server.

use std::process::ExitCode;

use anyhow::Result;
use lkr_eval::{Measures, distinct};

use crate::{
    add::{Report, add_texts},
    collection::{Gold, Query, collection, name_of},
    eval::{
        args::Args,
        citations::Citations,
        output::print_report,
        server_report::{QueryMeasures, ServerReport},
        server_search::{ServerResponse, ServerSearch},
    },
    stats::Latency,
};

/// Runs the evaluation and prints the figures. Fails if a citation does not match its document or a document was not
/// ingested.
pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let gold = Gold::read(&args.dir, args.split.as_deref())?;
    let name = name_of(&args.dir)?;
    let ingested = args.ingest.then(|| ingest_collection(args)).transpose()?;
    let search = ServerSearch::new(args.login.client()?, args.mode, args.fusion);
    let report = evaluate(&search, &name, &gold, ingested)?;
    print_report(&report, args.json.as_deref())?;
    Ok(if report.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn ingest_collection(args: &Args) -> Result<Report> {
    add_texts(&args.login.log_in()?, collection(&args.dir)?)
}

fn evaluate(
    search: &ServerSearch,
    name: &str,
    gold: &Gold,
    ingested: Option<Report>,
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

fn judge(name: &str, query: &Query, found: &ServerResponse) -> QueryMeasures {
    let prefix = format!("{name}:");
    let sources = found.results.iter().filter_map(|result| result.source.strip_prefix(prefix.as_str()));
    let ranking = distinct(sources.map(str::to_owned));
    QueryMeasures { id: query.id.clone(), measures: Measures::of(&ranking, &query.documents) }
}
