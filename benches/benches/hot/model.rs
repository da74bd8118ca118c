//! The embedding model in the process.

use std::{hint::black_box, path::Path};

use criterion::Criterion;
use lkr_models::{EmbedKind, Embedder, Precision, calibration_passages};
use lkr_models_local::{LocalEmbedder, LocalOptions};
use tokio::runtime::Runtime;

use crate::{cpu_time::CpuTime, text::first_words};

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/all-MiniLM-L6-v2");

/// The number of passages that are embedded at once.
const BATCH: usize = 16;

#[expect(clippy::print_stderr, reason = "a person reads what is left out")]
pub(crate) fn benches(criterion: &mut Criterion<CpuTime>) {
    let folder = std::env::var("LKR_MODEL_DIR").unwrap_or_else(|_| MODEL.to_owned());
    if !Path::new(&folder).exists() {
        eprintln!("skipped: {folder} does not exist; `cargo xtask model` fetches it");
        return;
    }
    let runtime = Runtime::new().unwrap();
    let passages: Vec<String> = calibration_passages().map(Into::into).collect();
    let mut group = criterion.benchmark_group("model");
    for precision in Precision::ALL {
        let options =
            LocalOptions { precision, passage_threads: 1, query_threads: 1, ..LocalOptions::default() };
        let embedder = LocalEmbedder::open(Path::new(&folder), options).unwrap();
        let mut embed = |name: &str, kind, texts: Vec<Vec<String>>| {
            let mut batches = texts.iter().cycle();
            group.bench_function(format!("{name}, {precision:?}"), |bencher| {
                bencher.iter(|| {
                    black_box(runtime.block_on(embedder.embed(kind, batches.next().unwrap())).unwrap())
                });
            });
        };
        let queries = passages.iter().map(|passage| vec![first_words(passage, 8)]).collect();
        embed("query", EmbedKind::Query, queries);
        let batches = passages.chunks_exact(BATCH).map(<[String]>::to_vec).collect();
        embed("16 passages", EmbedKind::Passage, batches);
    }
    group.finish();
}
