use std::{
    fmt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use lkr::{Mode, SearchOptions, SearchRequest, retrieval::Searcher};

use crate::{
    bench::{
        copies::{CopyEmbedder, copy_of},
        idle::wait_until_idle,
    },
    collection::{Gold, Input, Query, collection},
    import::import_missing,
    local_kb::{LocalKnowledgeBase, embedder},
    stats::Latency,
};

/// What `lkr bench layers` is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Where the knowledge base lies. What an earlier run brought in is not brought in again.
    #[arg(long, value_name = "FOLDER")]
    data_dir: PathBuf,
    /// The folder of the embedding model.
    #[arg(long, value_name = "FOLDER")]
    model: PathBuf,
    /// At how many chunks to measure, in growing order. Beyond the collection's own, copies of its documents join them,
    /// whose vectors lie a little beside.
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [10_000, 100_000])]
    chunks: Vec<u64>,
    /// How many queries to ask.
    #[arg(long, value_name = "N", default_value_t = 200)]
    queries: usize,
    /// The folder of the collection.
    dir: PathBuf,
}

/// How many queries run before it counts.
const WARM: usize = 10;

/// How often it has to look as if nothing was left to do in the background.
const QUIET: usize = 20;

/// The ways to search that take turns: a name, the mode, and whether there is a second round. All are compared with the
/// first.
const WAYS: [(&str, Mode, bool); 3] = [
    ("flat", Mode::Flat, false),
    ("layered", Mode::Layered, false),
    ("layered, second round", Mode::Layered, true),
];

/// By size of the knowledge base: how long each way took.
#[derive(Debug, Default)]
pub(super) struct LayersReport {
    queries: usize,
    sizes: Vec<(u64, Vec<Latency>)>,
}

/// Measures at each size, and lets the knowledge base grow in between.
pub(super) async fn measure(args: &Args) -> Result<LayersReport> {
    let inputs = collection(&args.dir)?;
    ensure!(!inputs.is_empty(), "{} holds no documents", args.dir.display());
    ensure!(args.chunks.is_sorted(), "the numbers of chunks do not grow");
    let mut queries = Gold::read(&args.dir, None)?.queries;
    queries.truncate(args.queries);
    let embedder = CopyEmbedder::new(embedder(&args.model)?);
    let local_kb = LocalKnowledgeBase::with(&args.data_dir, Some(Arc::new(embedder))).await?;
    let mut figures = LayersReport { queries: queries.len(), sizes: Vec::new() };
    for &size in &args.chunks {
        let chunks = grow(&local_kb, &inputs, size).await?;
        figures.sizes.push((chunks, ask(&local_kb, &queries).await?));
    }
    local_kb.kb.close().await;
    Ok(figures)
}

/// Brings copies in until there are as many chunks, waits until nothing is left to do in the background, and answers how
/// many there are.
async fn grow(local_kb: &LocalKnowledgeBase, inputs: &[Input], size: u64) -> Result<u64> {
    let mut copy = 0;
    loop {
        let chunks = local_kb.kb.stats().await?.counts.chunks;
        if chunks >= size {
            // Where the machine is busy with other things, what is left may look like nothing for a moment.
            for _ in 0..QUIET {
                wait_until_idle().await;
            }
            return Ok(chunks);
        }
        let copies = inputs.iter().map(|input| copy_of(input, copy));
        import_missing(&local_kb.kb, copies.collect()).await?;
        copy += 1;
    }
}

/// Asks each query in every way, another one first each time.
async fn ask(local_kb: &LocalKnowledgeBase, queries: &[Query]) -> Result<Vec<Latency>> {
    let ways = WAYS.map(|(_, mode, second_round)| {
        (mode, local_kb.searcher(SearchOptions { second_round, ..SearchOptions::default() }))
    });
    let mut took = vec![Vec::new(); ways.len()];
    for query in queries.iter().take(WARM) {
        for (mode, searcher) in &ways {
            search(searcher, *mode, query).await?;
        }
    }
    for (turn, query) in queries.iter().enumerate() {
        let mut order: Vec<_> = ways.iter().zip(&mut took).collect();
        order.rotate_left(turn % ways.len());
        for ((mode, searcher), took) in order {
            took.push(search(searcher, *mode, query).await?);
        }
    }
    Ok(took.into_iter().map(Latency::of).collect())
}

async fn search(searcher: &Searcher, mode: Mode, query: &Query) -> Result<Duration> {
    let request = SearchRequest { mode, ..SearchRequest::new(query.text.as_str()) };
    let began = Instant::now();
    searcher.search(&request).await?;
    Ok(began.elapsed())
}

impl fmt::Display for LayersReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (chunks, latencies) in &self.sizes {
            writeln!(f, "{chunks} chunks, {} queries", self.queries)?;
            let flat = latencies.first().map_or(0.0, |latency| latency.p50_ms);
            for ((name, ..), Latency { p50_ms, p99_ms, .. }) in WAYS.iter().zip(latencies) {
                let ratio = p50_ms / flat;
                writeln!(f, "  {name:<22} {p50_ms:.2} ms p50, {p99_ms:.2} p99: {ratio:.3} of flat's p50")?;
            }
        }
        Ok(())
    }
}
