//! The cost of looking up near duplicates.

use std::{
    collections::HashSet,
    fmt,
    hint::black_box,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::Result;
use lkr::{DocId, NewDocument, ports::Precision};
use lkr_ingest::SimhashIndex;

use crate::{
    bench::{
        material::{at_least_one, read_documents},
        random::XorShift64,
    },
    local_kb::{LocalKnowledgeBase, embedder},
};

/// The arguments of `lkr bench dedup`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Create the knowledge base in this folder, which must be empty or missing.
    #[arg(long, value_name = "FOLDER")]
    data_dir: PathBuf,
    /// Use the embedding model in this folder. Without it, documents are ingested by words alone, which is fastest.
    #[arg(long, value_name = "FOLDER")]
    model: Option<PathBuf>,
    /// Look up among this many fingerprints.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = at_least_one)]
    fingerprints: usize,
    /// Ingest this many documents, one after another.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = at_least_one)]
    documents: usize,
    /// Use the collection in this folder.
    dir: PathBuf,
}

/// The measured distance thresholds.
const THRESHOLDS: [u32; 6] = [0, 3, 8, 16, 32, 64];

/// The costs of looking up a fingerprint and of ingesting a document.
#[derive(Debug)]
pub(super) struct DedupReport {
    fingerprints: usize,
    documents: usize,
    ingestion: Duration,
    /// By threshold: the mean lookup among random fingerprints, and among equal ones.
    lookups: Vec<(u32, Duration, Duration)>,
}

/// Ingests documents, and looks up fingerprints after each.
pub(super) async fn measure(args: &Args) -> Result<DedupReport> {
    let inputs = read_documents(&args.dir, Some(args.documents))?;
    let documents = inputs.len();
    let embedder =
        args.model.as_deref().map(|model| embedder(model, Precision::default(), None)).transpose()?;
    let local_kb = LocalKnowledgeBase::create(&args.data_dir, embedder).await?;
    let mut random = XorShift64::new(0x9e37_79b9_7f4a_7c15);
    let random_index = index(args.fingerprints, || random.next());
    // The worst case: every fingerprint is a candidate.
    let equal_index = index(args.fingerprints, || 0xffff);
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
        for (threshold, random_time, equal_time) in &mut lookups {
            *random_time += lookup(&random_index, random.next(), *threshold);
            *equal_time += lookup(&equal_index, 0, *threshold);
        }
    }
    local_kb.kb.close().await;
    let mean = |total: Duration| total / u32::try_from(documents).unwrap_or(u32::MAX);
    let lookups = lookups
        .into_iter()
        .map(|(threshold, random_index, equal)| (threshold, mean(random_index), mean(equal)));
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
        writeln!(f, "lookup     among {fingerprints} fingerprints: random, and all equal")?;
        for (threshold, random_index, equal) in lookups {
            let share = |time: &Duration| time.as_secs_f64() / ingestion.as_secs_f64() * 100.0;
            writeln!(
                f,
                "  up to {threshold:2}  {:.3} ms, {:.3} ms: {:.2} %, {:.2} % of ingesting a document",
                ms(random_index),
                ms(equal),
                share(random_index),
                share(equal)
            )?;
        }
        Ok(())
    }
}
