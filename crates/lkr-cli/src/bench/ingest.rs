//! Ingestion compared with the embedding engine.

use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use lkr::{
    Document, KnowledgeBase, NewDocument,
    ports::{EmbedKind, Embedder},
};
use tokio::task::JoinSet;

use crate::{
    bench::idle::{cpu_time, wait_until_idle},
    collection::Input,
};

/// The number of alternations between ingestion and the engine. They spread other load on the machine evenly.
const ALTERNATIONS: usize = 6;

/// The number of documents that are ingested at once.
const PARALLEL: usize = 8;

/// Passages per batch of the engine. This and [`ENGINES`] are the values at which it is fastest.
const BATCH: usize = 64;

/// The number of batches that the engine embeds at once.
const ENGINES: usize = 4;

/// Chunks per page of a listing.
const PAGE: u32 = 1000;

/// The costs of ingesting and of embedding the same passages.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ingestion {
    pub(super) documents: usize,
    pub(super) passages: usize,
    /// The cost of ingestion, including its background work.
    pub(super) total: Cost,
    /// The cost of the embedding engine alone.
    pub(super) engine: Cost,
}

/// The cost of some work.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cost {
    /// Wall-clock time.
    pub(super) wall: Duration,
    /// CPU time, which other programs hardly affect; zero if the system does not report it.
    pub(super) cpu: Duration,
}

impl Cost {
    /// Adds the work between two times, each with the CPU time of the process.
    fn add(&mut self, from: (Instant, Duration), to: (Instant, Duration)) {
        self.wall += to.0.duration_since(from.0);
        self.cpu += to.1.saturating_sub(from.1);
    }
}

/// Ingests the documents in slices, and embeds the passages of each slice with the engine alone.
pub(super) async fn measure(
    kb: &KnowledgeBase,
    embedder: &Arc<dyn Embedder>,
    inputs: Vec<Input>,
) -> Result<Ingestion> {
    let mut ingestion = Ingestion::default();
    let size = inputs.len().div_ceil(ALTERNATIONS).max(1);
    let mut inputs = inputs.into_iter();
    loop {
        let slice: Vec<Input> = inputs.by_ref().take(size).collect();
        if slice.is_empty() {
            return Ok(ingestion);
        }
        let start = (wait_until_idle().await, cpu_used());
        let documents = ingest_all(kb, slice).await?;
        let end = (wait_until_idle().await, cpu_used());
        ingestion.total.add(start, end);
        ingestion.documents += documents.len();
        let passages = passages(kb, documents).await?;
        ingestion.passages += passages.len();
        let start = (Instant::now(), cpu_used());
        embed(embedder, passages).await?;
        ingestion.engine.add(start, (Instant::now(), cpu_used()));
    }
}

fn cpu_used() -> Duration {
    cpu_time().unwrap_or_default()
}

/// Ingests documents, several at once, and returns each once: of equal texts, one is stored.
pub(super) async fn ingest_all(kb: &KnowledgeBase, slice: Vec<Input>) -> Result<Vec<Document>> {
    let mut inputs = slice.into_iter();
    let mut adding = JoinSet::new();
    let (mut added, mut ids) = (Vec::new(), HashSet::new());
    let spawn = |adding: &mut JoinSet<_>, Input { title, source, text }| {
        let kb = kb.clone();
        let document = NewDocument { text, title, source, ..NewDocument::default() };
        adding.spawn(async move { kb.add(document).await });
    };
    inputs.by_ref().take(PARALLEL).for_each(|input| spawn(&mut adding, input));
    while let Some(document) = adding.join_next().await {
        let document = document??;
        if ids.insert(document.doc_id) {
            added.push(document);
        }
        if let Some(input) = inputs.next() {
            spawn(&mut adding, input);
        }
    }
    Ok(added)
}

/// The texts that were embedded for these documents.
async fn passages(kb: &KnowledgeBase, documents: Vec<Document>) -> Result<Vec<String>> {
    let mut passages = Vec::new();
    for document in documents {
        let mut from = Some(0);
        while let Some(start) = from {
            let Some(page) = kb.chunks(document.doc_id, start, PAGE).await? else {
                bail!("a document was deleted during the benchmark")
            };
            let indexed =
                |chunk: &lkr::Chunk| lkr_layers::indexed_chunk(&document.title.as_str().into(), chunk);
            passages.extend(page.items.iter().map(|item| indexed(&item.value)));
            from = page.next;
        }
    }
    Ok(passages)
}

async fn embed(embedder: &Arc<dyn Embedder>, passages: Vec<String>) -> Result<()> {
    let mut batches = passages.chunks(BATCH).map(<[String]>::to_vec);
    let mut running = JoinSet::new();
    let spawn = |running: &mut JoinSet<_>, batch: Vec<String>| {
        let embedder = Arc::clone(embedder);
        running.spawn(async move { embedder.embed(EmbedKind::Passage, &batch).await });
    };
    batches.by_ref().take(ENGINES).for_each(|batch| spawn(&mut running, batch));
    while let Some(vectors) = running.join_next().await {
        vectors??;
        if let Some(batch) = batches.next() {
            spawn(&mut running, batch);
        }
    }
    Ok(())
}
