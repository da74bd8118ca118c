//! Searches while every document is embedded anew.

use std::{
    collections::HashMap,
    fmt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use lkr::{KnowledgeBase, SearchRequest, TaskId, TaskStatus, ports::Embedder};

use super::{ingest::bring_in, rotated::RotatedEmbedder};
use crate::{
    collection::{Gold, Query, collection},
    local_kb::{LocalKnowledgeBase, embedder},
    stats::Latency,
};

/// What `lkr bench reembed` is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Where to make the knowledge base: an empty folder, or none yet.
    #[arg(long, value_name = "FOLDER")]
    data_dir: PathBuf,
    /// The folder of the embedding model.
    #[arg(long, value_name = "FOLDER")]
    model: PathBuf,
    /// The folder of the collection.
    dir: PathBuf,
    /// Take the first documents only, as many as this.
    #[arg(long, value_name = "N")]
    documents: Option<usize>,
}

/// How often all queries are asked before the change.
const ROUNDS: usize = 3;

/// How far the same cosine may differ from one time to the next.
const SAME: f32 = 0.01;

/// What searches are like before a change of the model and while it lasts.
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

/// The cosines that were shown, by query and chunk: those of one model.
type Cosines = HashMap<(usize, String), f32>;

/// Brings the documents in, searches, changes the model, and searches on until that is done.
pub(super) async fn measure(args: &Args) -> Result<ReembedReport> {
    let mut inputs = collection(&args.dir)?;
    inputs.truncate(args.documents.unwrap_or(usize::MAX));
    let queries = Gold::read(&args.dir, None)?.queries;
    let own = embedder(&args.model)?;
    let kb = LocalKnowledgeBase::with(&args.data_dir, Some(Arc::clone(&own))).await?.kb;
    let documents = bring_in(&kb, inputs).await?.len();
    let mut searches =
        Searches { kb: &kb, queries: &queries, cosines: HashMap::new(), asked: 0, failed: 0, mixed: 0 };
    // The caches of the system are warm from here on.
    searches.round().await;
    let mut before = Sample::default();
    for _ in 0..ROUNDS {
        before.took.extend(searches.round().await);
    }
    let begun = Instant::now();
    let rotated: Arc<dyn Embedder> = Arc::new(RotatedEmbedder::new(own));
    let task = kb.set_embedder(Some(rotated), &"bench".into()).await?.context("nothing is embedded anew")?;
    let mut during = Sample::default();
    while !has_ended(&kb, task.task_id).await? {
        during.took.push(searches.next().await);
    }
    let took = begun.elapsed();
    searches.round().await;
    let (failed, mixed) = (searches.failed, searches.mixed);
    kb.close().await;
    Ok(ReembedReport { documents, before, during, took, failed, mixed })
}

async fn has_ended(kb: &KnowledgeBase, task_id: TaskId) -> Result<bool> {
    let task = kb.task(task_id).await?.context("the task is gone")?;
    if task.status == TaskStatus::Failed {
        bail!("the documents could not be embedded anew: {:?}", task.error);
    }
    Ok(task.status == TaskStatus::Done)
}

struct Searches<'a> {
    kb: &'a KnowledgeBase,
    queries: &'a [Query],
    cosines: Cosines,
    asked: usize,
    failed: usize,
    mixed: usize,
}

impl Searches<'_> {
    /// Asks every query once.
    async fn round(&mut self) -> Vec<Duration> {
        let mut took = Vec::with_capacity(self.queries.len());
        for _ in 0..self.queries.len() {
            took.push(self.next().await);
        }
        took
    }

    /// Asks the next query. Both models mean the same, so that a cosine tells whether query and passage are of one.
    async fn next(&mut self) -> Duration {
        let (round, at) = (self.asked / self.queries.len(), self.asked % self.queries.len());
        self.asked += 1;
        let Some(query) = self.queries.get(at) else { return Duration::ZERO };
        // Asked for another number of results each time, so that the cache does not know it.
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
            let known = *self.cosines.entry((at, result.chunk_id.to_string())).or_insert(cosine);
            is_mixed |= (known - cosine).abs() > SAME;
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
        writeln!(f, "{} documents embedded anew in {:.1} s", self.documents, self.took.as_secs_f64())?;
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
