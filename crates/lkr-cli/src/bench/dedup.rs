use std::{
    collections::HashSet,
    fmt,
    hint::black_box,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use lkr::{DocId, NewDocument};
use lkr_ingest::SimhashIndex;

use crate::{bench::random::XorShift64, collection::collection, local_kb::LocalKnowledgeBase};

/// What `lkr bench dedup` is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Where to make the knowledge base: an empty folder, or none yet.
    #[arg(long, value_name = "FOLDER")]
    data_dir: PathBuf,
    /// The folder of the embedding model; without one, documents are brought in by words alone, which is the quickest.
    #[arg(long, value_name = "FOLDER")]
    model: Option<PathBuf>,
    /// Among how many fingerprints to look.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    fingerprints: usize,
    /// How many documents are brought in, one after another.
    #[arg(long, value_name = "N", default_value_t = 200)]
    documents: usize,
    /// The folder of the collection.
    dir: PathBuf,
}

/// The distances up to which texts count as near.
const THRESHOLDS: [u32; 6] = [0, 3, 8, 16, 32, 64];

/// What it takes to look up a fingerprint, and to bring a document in, in one run.
#[derive(Debug)]
pub(super) struct DedupReport {
    fingerprints: usize,
    documents: usize,
    ingestion: Duration,
    /// By threshold: the mean of a lookup among fingerprints of chance, and among those that are all as near.
    lookups: Vec<(u32, Duration, Duration)>,
}

/// Brings documents in, and after each looks its likes up.
pub(super) async fn measure(args: &Args) -> Result<DedupReport> {
    let mut inputs = collection(&args.dir)?;
    inputs.truncate(args.documents);
    ensure!(!inputs.is_empty(), "{} holds no documents", args.dir.display());
    let documents = inputs.len();
    let local_kb = LocalKnowledgeBase::make(&args.data_dir, args.model.as_deref()).await?;
    let mut random = XorShift64::new(0x9e37_79b9_7f4a_7c15);
    let chance = index(args.fingerprints, || random.next());
    // The worst there is: every one of them may be the nearest.
    let alike = index(args.fingerprints, || 0xffff);
    let mut lookups: Vec<_> = THRESHOLDS.map(|threshold| (threshold, Duration::ZERO, Duration::ZERO)).into();
    let mut ingestion = Duration::ZERO;
    for input in inputs {
        let document = NewDocument {
            text: input.text,
            title: input.title,
            source: input.source,
            ..NewDocument::default()
        };
        let began = Instant::now();
        local_kb.kb.add(document).await?;
        ingestion += began.elapsed();
        for (threshold, by_chance, by_likes) in &mut lookups {
            *by_chance += lookup(&chance, random.next(), *threshold);
            *by_likes += lookup(&alike, 0, *threshold);
        }
    }
    local_kb.kb.close().await;
    let mean = |total: Duration| total / u32::try_from(documents).unwrap_or(u32::MAX);
    let lookups =
        lookups.into_iter().map(|(threshold, chance, likes)| (threshold, mean(chance), mean(likes)));
    Ok(DedupReport {
        fingerprints: args.fingerprints,
        documents,
        ingestion: mean(ingestion),
        lookups: lookups.collect(),
    })
}

fn index(n: usize, mut random: impl FnMut() -> u64) -> SimhashIndex {
    let mut near = SimhashIndex::default();
    (0..n).for_each(|_| near.insert(DocId::new(), random()));
    near
}

fn lookup(near: &SimhashIndex, random: u64, threshold: u32) -> Duration {
    let began = Instant::now();
    black_box(near.nearest(black_box(random), threshold, &HashSet::new()));
    began.elapsed()
}

impl fmt::Display for DedupReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fingerprints, documents, ingestion, lookups } = self;
        let ms = |time: &Duration| time.as_secs_f64() * 1e3;
        writeln!(f, "ingestion  {documents} documents, {:.2} ms each, one after another", ms(ingestion))?;
        writeln!(f, "lookup     among {fingerprints} fingerprints: of chance, and all as near")?;
        for (threshold, chance, likes) in lookups {
            let share = |time: &Duration| time.as_secs_f64() / ingestion.as_secs_f64() * 100.0;
            writeln!(
                f,
                "  up to {threshold:2}  {:.3} ms, {:.3} ms: {:.2} %, {:.2} % of bringing one in",
                ms(chance),
                ms(likes),
                share(chance),
                share(likes)
            )?;
        }
        Ok(())
    }
}
