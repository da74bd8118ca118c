//! Evaluation of a running server.

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use lkr_eval::{Measures, distinct};

use crate::{
    add::{Report, add_texts},
    collection::{Gold, Query, collection, name_of},
    eval::{
        args::Args,
        check_judgements,
        citations::Citations,
        output::Output,
        server_report::{QueryMeasures, ServerReport},
        server_search::{ServerResponse, ServerSearch},
    },
    stats::Latency,
};

/// Runs the evaluation and prints the figures. Fails if a citation does not match its document, a document was not
/// ingested, or the server has none of the collection.
pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let gold = Gold::read(&args.dir, args.split.as_deref())?;
    let name = name_of(&args.dir)?;
    let output = Output::open(args.json.as_deref())?;
    let ingested = args.ingest.then(|| ingest_collection(args, &gold, &name)).transpose()?;
    let search = ServerSearch::new(args.login.client()?, args.mode, args.fusion);
    let report = evaluate(&search, &name, &gold, ingested)?;
    output.print(&report)?;
    Ok(if report.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn ingest_collection(args: &Args, gold: &Gold, name: &str) -> Result<Report> {
    let inputs = collection(&args.dir)?;
    check_judgements(gold, name, &inputs)?;
    add_texts(&args.login.log_in()?, inputs)
}

fn evaluate(
    search: &ServerSearch,
    name: &str,
    gold: &Gold,
    ingested: Option<Report>,
) -> Result<ServerReport> {
    let prefix = format!("{name}:");
    let mut citations = Citations::from_server(search.client());
    let (mut judged, mut latencies) = (Vec::new(), Vec::new());
    let mut is_there = ingested.is_some();
    for query in &gold.queries {
        let context = || format!("search for query {}", query.id);
        let documents = search.documents(&query.text).with_context(context)?;
        let chunks = search.chunks(&query.text).with_context(context)?;
        for result in documents.results.iter().chain(&chunks.results) {
            citations.check(&result.into())?;
        }
        latencies.extend(chunks.uncached_latency);
        is_there |= documents.results.iter().any(|result| result.source.starts_with(&prefix));
        judged.push(judge(&prefix, query, &documents));
    }
    ensure!(
        is_there,
        "no search found a document of the collection, whose sources begin with {prefix}; --ingest sends them to the server first"
    );
    Ok(ServerReport::new(name, ingested, judged, Latency::of(latencies), citations.finish()))
}

/// The measures of a query by the documents of the collection, whose sources have the prefix.
fn judge(prefix: &str, query: &Query, found: &ServerResponse) -> QueryMeasures {
    let sources = found.results.iter().filter_map(|result| result.source.strip_prefix(prefix));
    let ranking = distinct(sources.map(str::to_owned));
    QueryMeasures { id: query.id.clone(), measures: Measures::of(&ranking, &query.documents) }
}
