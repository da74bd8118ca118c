//! The cost of layers.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Result;
use lkr::{
    Mode, SearchOptions, SearchRequest,
    retrieval::{SearchProfile, SearchStage, Searcher},
};

use crate::{
    bench::{
        copies::CopyEmbedder,
        growing_base::{GrowingBase, WARM_UP_QUERIES, grow},
        idle::wait_until_background_work_is_done,
        search::{self, SearchCost},
    },
    collection::Query,
    import::sources,
    local_kb::{LocalKnowledgeBase, require_sources},
    stats::Latency,
};

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
    sizes: Vec<SizeReport>,
}

/// What was measured at a number of chunks.
#[derive(Debug)]
struct SizeReport {
    chunks: u64,
    variants: Vec<VariantReport>,
    /// Layered searches beside their legs alone.
    beside_legs: SearchCost,
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
pub(super) async fn measure(args: &GrowingBase) -> Result<LayersReport> {
    let (copies, queries) = args.read()?;
    let embedder = CopyEmbedder::new(args.material.embedder()?);
    require_sources(&args.data_dir, copies.sources()).await?;
    let local_kb = LocalKnowledgeBase::open(&args.data_dir, Some(Arc::new(embedder))).await?;
    let mut figures = LayersReport { queries: queries.len(), sizes: Vec::new() };
    for &size in &args.chunks {
        let chunks = grow(&local_kb, &copies, size, &mut sources(&local_kb.kb).await?).await?;
        wait_until_background_work_is_done().await;
        let variants = measure_variants(&local_kb, &queries).await?;
        let beside_legs = search::measure(&local_kb, &queries).await?;
        figures.sizes.push(SizeReport { chunks, variants, beside_legs });
    }
    local_kb.kb.close().await;
    Ok(figures)
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
        for SizeReport { chunks, variants, beside_legs } in &self.sizes {
            writeln!(f, "{chunks} chunks, {} queries", self.queries)?;
            let flat = variants.first().map_or(0.0, |variant| variant.latency.p50_ms);
            for ((name, ..), VariantReport { latency, stages }) in VARIANTS.iter().zip(variants) {
                let Latency { p50_ms, p99_ms, .. } = latency;
                let ratio = p50_ms / flat;
                writeln!(f, "  {name:<22} {p50_ms:.2} ms p50, {p99_ms:.2} p99: {ratio:.3} of flat's p50")?;
                let stages = stages.iter().map(|(stage, p50_ms)| format!("{} {p50_ms:.2}", stage.name()));
                writeln!(f, "    {}", stages.collect::<Vec<_>>().join(", "))?;
            }
            writeln!(f, "  {:<22} {beside_legs}", "layered, by legs")?;
        }
        Ok(())
    }
}
