//! What the documents of other spaces cost a listing.

use std::{
    fmt,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use lkr::{
    DocId, ListFilter, NewDocument, Scope, SpaceName, Submission,
    ports::{
        StateStore,
        state::{Expect, ScanOrder, Write},
    },
};

use crate::{
    bench::{idle::wait_until_background_work_is_done, material::at_least_one},
    import::{import_new, with_duplicates},
    local_kb::{LocalKnowledgeBase, require_empty},
    stats::Latency,
};

/// The arguments of `lkr bench listings`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Create the knowledge bases in this folder, which must be empty or missing.
    #[arg(long, value_name = "FOLDER")]
    data_dir: PathBuf,
    /// Store the records of this many documents in another space.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    documents: usize,
    /// Run each request this many times.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = at_least_one)]
    runs: usize,
}

/// The number of documents in the space that is read.
const OWN: usize = 10;

/// The number of records that are written at a time.
const BATCH: usize = 1_000;

/// The space that is read, and the other one.
const SPACES: [&str; 2] = ["own", "others"];

/// A request that is measured.
#[derive(Debug, Clone, Copy)]
enum Request {
    Page,
    Count,
    Statistics,
    Document,
}

/// The requests with their names in the report.
const REQUESTS: [(Request, &str); 4] = [
    (Request::Page, "a page"),
    (Request::Count, "a count"),
    (Request::Statistics, "statistics"),
    (Request::Document, "one document"),
];

/// The latencies of each request, alone and beside the documents of the other space.
#[derive(Debug, Default)]
pub(super) struct ListingsReport {
    documents: usize,
    requests: Vec<(&'static str, Latency, Latency)>,
}

/// Measures each request on both bases in turns.
pub(super) async fn measure(args: &Args) -> Result<ListingsReport> {
    require_empty(&args.data_dir)?;
    let alone = LocalKnowledgeBase::create(&args.data_dir.join("alone"), None).await?;
    let beside = LocalKnowledgeBase::create(&args.data_dir.join("beside"), None).await?;
    let [own, others] = SPACES.map(SpaceName::new);
    let (own, others) = (own.context("a name")?, others.context("a name")?);
    add(&alone, &own, OWN).await?;
    add(&beside, &own, OWN).await?;
    add(&beside, &others, 1).await?;
    multiply(&*beside.state, &others, args.documents).await?;
    wait_until_background_work_is_done().await;
    let mut report = ListingsReport { documents: args.documents, requests: Vec::new() };
    for (request, name) in REQUESTS {
        let mut samples = [Vec::new(), Vec::new()];
        for run in 0..args.runs {
            let mut bases = [&alone, &beside].into_iter().zip(&mut samples).collect::<Vec<_>>();
            bases.rotate_left(run % 2);
            for (base, sample) in bases {
                sample.push(time(base, &own, request).await?);
            }
        }
        let [alone, beside] = samples.map(Latency::of);
        report.requests.push((name, alone, beside));
    }
    for base in [alone, beside] {
        base.kb.close().await;
    }
    Ok(report)
}

async fn add(base: &LocalKnowledgeBase, space: &SpaceName, count: usize) -> Result<()> {
    let documents = (0..count).map(|n| NewDocument {
        title: format!("Moon {n}"),
        source: format!("{space}:{n}"),
        text: format!("Moon {n} has an ocean under its ice."),
        ..NewDocument::default()
    });
    let submission = Submission { space: space.clone(), ..with_duplicates() };
    import_new(&base.kb, documents.collect(), &submission).await
}

/// Copies the records of the only document of a space until there are those of `count` documents. Their texts and points
/// are missing, which listings do not read.
async fn multiply(state: &dyn StateStore, space: &SpaceName, count: usize) -> Result<()> {
    let prefix = format!("in-space/{space}/");
    let entry = state.scan(&prefix, None, ScanOrder::Ascending, 1).await?.pop().context("a document")?;
    let original = entry.0.strip_prefix(&prefix).context("a key with a document")?.to_owned();
    let key = format!("doc/{original}");
    let record = state.get_many(&[key]).await?.pop().flatten().context("a record")?;
    let mut left = count.saturating_sub(1);
    while left > 0 {
        let batch = left.min(BATCH);
        let ids = (0..batch).map(|_| DocId::new());
        let copies = ids.flat_map(|id| {
            [
                Write::put(format!("doc/{id}"), Expect::Absent, record.value.to_vec()),
                Write::put(format!("{prefix}{id}"), Expect::Absent, entry.1.value.to_vec()),
            ]
        });
        state.apply(copies.collect()).await?;
        left -= batch;
    }
    Ok(())
}

async fn time(base: &LocalKnowledgeBase, space: &SpaceName, request: Request) -> Result<Duration> {
    let scope = &Scope::of(space.clone());
    let first = base.kb.list(scope, &ListFilter::default(), None, 1).await?.items.pop();
    let doc_id = first.context("a document")?.doc_id;
    let began = Instant::now();
    match request {
        Request::Page => drop(base.kb.list(scope, &ListFilter::default(), None, OWN).await?),
        Request::Count => drop(base.kb.documents_in(space).await?),
        Request::Statistics => drop(base.kb.stats(scope).await?),
        Request::Document => drop(base.kb.document_in(scope, doc_id).await?),
    }
    Ok(began.elapsed())
}

impl fmt::Display for ListingsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "a space of {OWN} documents, alone and beside {} documents of another", self.documents)?;
        for (name, alone, beside) in &self.requests {
            let ratio = beside.p50_ms / alone.p50_ms;
            writeln!(
                f,
                "  {name:<14} {:.3} and {:.3} ms p50, {:.3} and {:.3} p99: {ratio:.3} of the p50 alone",
                alone.p50_ms, beside.p50_ms, alone.p99_ms, beside.p99_ms
            )?;
        }
        Ok(())
    }
}
