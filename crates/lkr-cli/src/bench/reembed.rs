//! The effect of re-embedding on concurrent searches.

use std::{
    collections::HashMap,
    fmt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use lkr::{KnowledgeBase, SearchRequest, TaskId, TaskStatus, ports::Embedder};

use super::{
    ingest::ingest_all,
    material::{Material, at_least_one, read_documents},
    rotated::RotatedEmbedder,
};
use crate::{
    collection::{Gold, Query},
    local_kb::LocalKnowledgeBase,
    stats::Latency,
};

/// The arguments of `lkr bench reembed`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Create the knowledge base in this folder, which must be empty or missing.
    #[arg(long, value_name = "FOLDER")]
    data_dir: PathBuf,
    #[command(flatten)]
    material: Material,
    /// Use the first N documents only.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    documents: Option<usize>,
}

/// The number of times all queries run before re-embedding.
const ROUNDS: usize = 3;

/// The most by which the same cosine may differ between two searches.
const COSINE_TOLERANCE: f32 = 0.01;

/// The latencies of searches before and during re-embedding.
#[derive(Debug)]
pub(super) struct ReembedReport {
    documents: usize,
    before: Sample,
    during: Sample,
    took: Duration,
    failed: usize,
    mixed: usize,
}

#[derive(Debug, Default)]
struct Sample {
    took: Vec<Duration>,
}

/// The cosines of one model, by query and chunk.
type Cosines = HashMap<(usize, String), f32>;

/// Ingests the documents, searches, starts re-embedding, and searches until it ends.
pub(super) async fn measure(args: &Args) -> Result<ReembedReport> {
    let inputs = read_documents(&args.material.dir, args.documents)?;
    let queries = Gold::read(&args.material.dir, None)?.queries;
    let original = args.material.embedder()?;
    let kb = LocalKnowledgeBase::create(&args.data_dir, Some(Arc::clone(&original))).await?.kb;
    let documents = ingest_all(&kb, inputs).await?.len();
    let mut searches =
        Searches { kb: &kb, queries: &queries, cosines: HashMap::new(), query_count: 0, failed: 0, mixed: 0 };
    // This round warms up the caches of the system.
    searches.search_all().await;
    let mut before = Sample::default();
    for _ in 0..ROUNDS {
        before.took.extend(searches.search_all().await);
    }
    let started_at = Instant::now();
    let rotated: Arc<dyn Embedder> = Arc::new(RotatedEmbedder::new(original));
    let task = kb.set_embedder(Some(rotated), &"bench".into()).await?.context("the model did not change")?;
    let mut during = Sample::default();
    while !has_ended(&kb, task.task_id).await? {
        during.took.push(searches.search_next().await);
    }
    let took = started_at.elapsed();
    searches.search_all().await;
    let (failed, mixed) = (searches.failed, searches.mixed);
    kb.close().await;
    Ok(ReembedReport { documents, before, during, took, failed, mixed })
}

async fn has_ended(kb: &KnowledgeBase, task_id: TaskId) -> Result<bool> {
    let task = kb.task(task_id).await?.context("the re-embedding task is missing")?;
    if task.status == TaskStatus::Failed {
        bail!("re-embedding failed: {:?}", task.error);
    }
    Ok(task.status == TaskStatus::Done)
}

struct Searches<'a> {
    kb: &'a KnowledgeBase,
    queries: &'a [Query],
    cosines: Cosines,
    query_count: usize,
    failed: usize,
    mixed: usize,
}

impl Searches<'_> {
    /// Runs every query once.
    async fn search_all(&mut self) -> Vec<Duration> {
        let mut took = Vec::with_capacity(self.queries.len());
        for _ in 0..self.queries.len() {
            took.push(self.search_next().await);
        }
        took
    }

    /// Runs the next query. Both models have equal cosines, so a different cosine means that query and passage were
    /// embedded by different models.
    async fn search_next(&mut self) -> Duration {
        let (round, at) = (self.query_count / self.queries.len(), self.query_count % self.queries.len());
        self.query_count += 1;
        let Some(query) = self.queries.get(at) else { return Duration::ZERO };
        // A different `top_k` in each round keeps the cache out.
        let request = SearchRequest { top_k: 10 + round % 91, ..SearchRequest::new(query.text.as_str()) };
        let started = Instant::now();
        let found = self.kb.search(&request).await;
        let took = started.elapsed();
        let Ok(found) = found else {
            self.failed += 1;
            return took;
        };
        let mut is_mixed = !found.response.warnings.is_empty();
        for result in &found.response.results {
            let Some(cosine) = result.scores.dense else { continue };
            let first_cosine = *self.cosines.entry((at, result.chunk_id.to_string())).or_insert(cosine);
            is_mixed |= (first_cosine - cosine).abs() > COSINE_TOLERANCE;
        }
        self.mixed += usize::from(is_mixed);
        took
    }
}

impl fmt::Display for ReembedReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, during) = (Latency::of(self.before.took.clone()), Latency::of(self.during.took.clone()));
        let line = |f: &mut fmt::Formatter<'_>, name: &str, sample: &Sample, latency: Latency| {
            let Latency { p50_ms, p99_ms, .. } = latency;
            writeln!(f, "{name}: {} searches, p50 {p50_ms:.1} ms, p99 {p99_ms:.1} ms", sample.took.len())
        };
        writeln!(f, "{} documents re-embedded in {:.1} s", self.documents, self.took.as_secs_f64())?;
        line(f, "before", &self.before, before)?;
        line(f, "during", &self.during, during)?;
        let ratio = during.p99_ms / before.p99_ms;
        writeln!(
            f,
            "ratio of the p99 {ratio:.2}, failed searches {}, mixed answers {}",
            self.failed, self.mixed
        )
    }
}
