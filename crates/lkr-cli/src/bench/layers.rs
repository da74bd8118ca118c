//! The cost of layers.

use std::{
    fmt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use lkr::{
    Mode, Scope, SearchOptions, SearchRequest,
    retrieval::{SearchProfile, SearchStage, Searcher},
};

use crate::{
    bench::{
        copies::{CopyEmbedder, copy_of},
        idle::wait_until_background_work_is_done,
        material::Material,
    },
    collection::{Gold, Input, Query, collection},
    import::import_missing,
    local_kb::LocalKnowledgeBase,
    stats::Latency,
};

/// The arguments of `lkr bench layers`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Keep the knowledge base in this folder and reuse its documents.
    #[arg(long, value_name = "FOLDER")]
    data_dir: PathBuf,
    #[command(flatten)]
    material: Material,
    /// Measure at these numbers of chunks, in growing order. Copies of documents, with slightly different vectors, are
    /// added to reach them.
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [10_000, 100_000])]
    chunks: Vec<u64>,
    /// Run this many queries.
    #[arg(long, value_name = "N", default_value_t = 200)]
    queries: usize,
}

/// The number of queries that warm up the caches.
const WARM_UP_QUERIES: usize = 10;

/// The variants of a search: name, mode, and whether there is a second round. All are compared with the first.
const VARIANTS: [(&str, Mode, bool); 3] = [
    ("flat", Mode::Flat, false),
    ("layered", Mode::Layered, false),
    ("layered, second round", Mode::Layered, true),
];

/// The latencies of each variant, by the number of chunks.
#[derive(Debug, Default)]
pub(super) struct LayersReport {
    queries: usize,
    sizes: Vec<(u64, Vec<VariantReport>)>,
}

/// The latencies of a variant, and the medians of its stages.
#[derive(Debug)]
struct VariantReport {
    latency: Latency,
    stages: Vec<(SearchStage, f64)>,
}

/// The searches of a variant: how long each took, and where its time went.
#[derive(Debug, Default)]
struct Sample(Vec<(Duration, SearchProfile)>);

impl Sample {
    fn report(&self) -> VariantReport {
        let stage = |stage| {
            let of_search = |profile: &SearchProfile| {
                profile.stages.iter().filter(|time| time.stage == stage).map(|time| time.took).sum()
            };
            let latency = Latency::of(self.0.iter().map(|(_, profile)| of_search(profile)).collect());
            (stage, latency.p50_ms)
        };
        VariantReport {
            latency: Latency::of(self.0.iter().map(|(took, _)| *took).collect()),
            stages: SearchStage::ALL.into_iter().map(stage).filter(|(_, p50_ms)| *p50_ms > 0.0).collect(),
        }
    }
}

/// Measures at each size and lets the knowledge base grow in between.
pub(super) async fn measure(args: &Args) -> Result<LayersReport> {
    let inputs = collection(&args.material.dir)?;
    ensure!(!inputs.is_empty(), "{} contains no documents", args.material.dir.display());
    ensure!(args.chunks.is_sorted(), "the numbers of chunks must be in growing order");
    let mut queries = Gold::read(&args.material.dir, None)?.queries;
    queries.truncate(args.queries);
    let embedder = CopyEmbedder::new(args.material.embedder()?);
    let local_kb = LocalKnowledgeBase::open(&args.data_dir, Some(Arc::new(embedder))).await?;
    let mut figures = LayersReport { queries: queries.len(), sizes: Vec::new() };
    for &size in &args.chunks {
        let chunks = grow(&local_kb, &inputs, size).await?;
        figures.sizes.push((chunks, measure_variants(&local_kb, &queries).await?));
    }
    local_kb.kb.close().await;
    Ok(figures)
}

/// Copy `n` of all documents.
pub(super) fn copies(inputs: &[Input], n: usize) -> Vec<Input> {
    inputs.iter().map(|input| copy_of(input, n)).collect()
}

/// Ingests copies until there are `size` chunks, waits until the process is idle, and returns the number of chunks.
pub(super) async fn grow(local_kb: &LocalKnowledgeBase, inputs: &[Input], size: u64) -> Result<u64> {
    let mut copy = 0;
    loop {
        let chunks = local_kb.kb.stats(&Scope::All).await?.counts.chunks;
        if chunks >= size {
            wait_until_background_work_is_done().await;
            return Ok(chunks);
        }
        import_missing(&local_kb.kb, copies(inputs, copy)).await?;
        copy += 1;
    }
}

/// Runs each query in all variants, starting with another one each time.
async fn measure_variants(local_kb: &LocalKnowledgeBase, queries: &[Query]) -> Result<Vec<VariantReport>> {
    let variants = VARIANTS.map(|(_, mode, second_round)| {
        (mode, local_kb.searcher(SearchOptions { second_round, ..SearchOptions::default() }))
    });
    let mut samples: Vec<Sample> = variants.iter().map(|_| Sample::default()).collect();
    for query in queries.iter().take(WARM_UP_QUERIES) {
        for (mode, searcher) in &variants {
            search(searcher, *mode, query).await?;
        }
    }
    for (turn, query) in queries.iter().enumerate() {
        let mut order: Vec<_> = variants.iter().zip(&mut samples).collect();
        order.rotate_left(turn % variants.len());
        for ((mode, searcher), sample) in order {
            sample.0.push(search(searcher, *mode, query).await?);
        }
    }
    Ok(samples.iter().map(Sample::report).collect())
}

async fn search(searcher: &Searcher, mode: Mode, query: &Query) -> Result<(Duration, SearchProfile)> {
    let request = SearchRequest { mode, ..SearchRequest::new(query.text.as_str()) };
    let began = Instant::now();
    let outcome = searcher.search(&request).await?;
    Ok((began.elapsed(), outcome.profile.unwrap_or_default()))
}

impl fmt::Display for LayersReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (chunks, variants) in &self.sizes {
            writeln!(f, "{chunks} chunks, {} queries", self.queries)?;
            let flat = variants.first().map_or(0.0, |variant| variant.latency.p50_ms);
            for ((name, ..), VariantReport { latency, stages }) in VARIANTS.iter().zip(variants) {
                let Latency { p50_ms, p99_ms, .. } = latency;
                let ratio = p50_ms / flat;
                writeln!(f, "  {name:<22} {p50_ms:.2} ms p50, {p99_ms:.2} p99: {ratio:.3} of flat's p50")?;
                let stages = stages.iter().map(|(stage, p50_ms)| format!("{} {p50_ms:.2}", stage.name()));
                writeln!(f, "    {}", stages.collect::<Vec<_>>().join(", "))?;
            }
        }
        Ok(())
    }
}
