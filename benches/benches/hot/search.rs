//! Whole searches, without a model's time.

use std::{hint::black_box, sync::Arc, time::Duration};

use criterion::Criterion;
use lkr::{KnowledgeBase, Mode, NewDocument, SearchRequest, retrieval::MemoryCache};
use lkr_models::{MemoryEmbedder, calibration_passages};
use lkr_store_lmdb::{LmdbOptions, LmdbStore};
use object_store::memory::InMemory;
use tokio::runtime::Runtime;

use crate::{cpu_time::CpuTime, text::first_words};

/// The number of documents, of ten passages each.
const DOCUMENTS: usize = 100;
const PASSAGES: usize = 10;

async fn filled(store: &LmdbStore, cache: MemoryCache) -> KnowledgeBase {
    let kb = KnowledgeBase::builder()
        .vectors(Arc::new(store.vectors()))
        .state(Arc::new(store.state()))
        .queue(Arc::new(store.queue()))
        .blobs(Arc::new(InMemory::new()))
        .embedder(Arc::new(MemoryEmbedder::with_dims(384)))
        .cache(Arc::new(cache))
        .build()
        .await
        .unwrap();
    let passages: Vec<&str> = calibration_passages().collect();
    for number in 0..DOCUMENTS {
        let of_document = (0..PASSAGES).map(|at| passages[(number * 7 + at * 13) % passages.len()]);
        let text = of_document.map(|passage| format!("## {}\n\n{passage}\n\n", first_words(passage, 4)));
        let title = format!("Document {number}");
        kb.add(NewDocument { text: text.collect(), title, ..NewDocument::default() }).await.unwrap();
    }
    kb
}

pub(crate) fn benches(criterion: &mut Criterion<CpuTime>) {
    let runtime = Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = LmdbStore::open(folder.path(), LmdbOptions::default()).unwrap();
    // A cache of nothing: every search is done.
    let kb = runtime.block_on(filled(&store, MemoryCache::new(0, Duration::ZERO)));
    let queries: Vec<String> = calibration_passages().map(|passage| first_words(passage, 8)).collect();
    let mut queries = queries.into_iter().cycle();
    let mut group = criterion.benchmark_group("search");
    for (name, mode) in [("flat", Mode::Flat), ("layered", Mode::Layered)] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let request = SearchRequest { mode, ..SearchRequest::new(queries.next().unwrap()) };
                black_box(runtime.block_on(kb.search(&request)).unwrap())
            });
        });
    }
    group.finish();
    runtime.block_on(kb.close());
}
