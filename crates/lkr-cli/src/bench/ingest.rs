use std::{
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

/// How many times the two take turns, so that a machine that is busy for a while is so for both.
const TURNS: usize = 6;

/// How many documents are brought in at once.
const PARALLEL: usize = 8;

/// How many passages the engine is given at a time, and how many times at once: what it is fastest with.
const BATCH: usize = 64;
const ENGINES: usize = 4;

/// How many chunks are read at a time.
const PAGE: u32 = 1000;

/// The same passages brought in, and embedded alone.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ingestion {
    pub(super) documents: usize,
    pub(super) passages: usize,
    /// From the first submission to the last background work.
    pub(super) whole: Cost,
    /// The embedding engine alone.
    pub(super) engine: Cost,
}

/// What work took.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cost {
    /// Time on the clock.
    pub(super) wall: Duration,
    /// Time of the CPUs; zero where the system does not tell. Other programs hardly change it.
    pub(super) cpu: Duration,
}

impl Cost {
    /// Adds the work between two moments, each with the CPU time that the process had used by then.
    fn add(&mut self, from: (Instant, Duration), to: (Instant, Duration)) {
        self.wall += to.0.duration_since(from.0);
        self.cpu += to.1.saturating_sub(from.1);
    }
}

/// Brings the documents in by slices, and after each has the engine embed the slice's passages alone.
pub(super) async fn measure(
    kb: &KnowledgeBase,
    embedder: &Arc<dyn Embedder>,
    inputs: Vec<Input>,
) -> Result<Ingestion> {
    let mut total = Ingestion { documents: inputs.len(), ..Ingestion::default() };
    let size = inputs.len().div_ceil(TURNS).max(1);
    let mut inputs = inputs.into_iter();
    loop {
        let slice: Vec<Input> = inputs.by_ref().take(size).collect();
        if slice.is_empty() {
            return Ok(total);
        }
        let start = (wait_until_idle().await, used());
        let documents = bring_in(kb, slice).await?;
        let end = (wait_until_idle().await, used());
        total.whole.add(start, end);
        let passages = passages(kb, documents).await?;
        total.passages += passages.len();
        let start = (Instant::now(), used());
        embed(embedder, passages).await?;
        total.engine.add(start, (Instant::now(), used()));
    }
}

fn used() -> Duration {
    cpu_time().unwrap_or_default()
}

pub(super) async fn bring_in(kb: &KnowledgeBase, slice: Vec<Input>) -> Result<Vec<Document>> {
    let mut inputs = slice.into_iter();
    let mut adding = JoinSet::new();
    let mut added = Vec::new();
    let spawn = |adding: &mut JoinSet<_>, Input { title, source, text }| {
        let kb = kb.clone();
        let document = NewDocument { text, title, source, ..NewDocument::default() };
        adding.spawn(async move { kb.add(document).await });
    };
    inputs.by_ref().take(PARALLEL).for_each(|input| spawn(&mut adding, input));
    while let Some(document) = adding.join_next().await {
        added.push(document??);
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
                bail!("a document went away")
            };
            let of = |chunk: lkr::Chunk| lkr_layers::indexed_text(&document.title, &chunk.path, &chunk.text);
            passages.extend(page.items.into_iter().map(|item| of(item.value)));
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
