//! Evaluations of searches.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use lkr::{KnowledgeBase, TaskStatus};
use lkr_eval::{GoldQuery, GoldSet, Relevant};
use lkr_models::{EmbedKind, Embedder, EmbedderProfile, MemoryEmbedder};
use tokio::runtime::{Builder, Handle, Id};

use crate::common::{document, wait_for_task};

/// Records on which runtime queries are embedded.
#[derive(Debug, Default)]
struct RuntimeRecorder {
    inner: MemoryEmbedder,
    runtimes: Mutex<HashSet<Id>>,
}

#[async_trait]
impl Embedder for RuntimeRecorder {
    fn profile(&self) -> &EmbedderProfile {
        self.inner.profile()
    }

    async fn embed(&self, kind: EmbedKind, texts: &[String]) -> lkr_models::Result<Vec<Vec<f32>>> {
        if kind == EmbedKind::Query {
            self.runtimes.lock().unwrap().insert(Handle::current().id());
        }
        self.inner.embed(kind, texts).await
    }

    fn letters_per_piece(&self, text: &str) -> Option<f32> {
        self.inner.letters_per_piece(text)
    }
}

/// Threads of a pool that an evaluation starts serve later searches, so it must not search on threads that give way.
#[tokio::test(flavor = "multi_thread")]
async fn evaluation_does_not_search_on_threads_of_ingestion() {
    let ingestion = Builder::new_multi_thread().enable_all().build().unwrap();
    let recorder = Arc::new(RuntimeRecorder::default());
    let embedder = Arc::clone(&recorder) as Arc<dyn Embedder>;
    let builder = KnowledgeBase::builder().embedder(embedder).ingest_runtime(ingestion.handle().clone());
    let kb = builder.build().await.unwrap();
    let marl = kb.add(document("marl", 2)).await.unwrap();
    let relevant = vec![Relevant { doc_id: marl.doc_id, span: None }];
    let gold = GoldSet { queries: vec![GoldQuery { text: "marl".to_owned(), relevant }] };
    let task = kb.evaluate(&gold, &"eva".into()).await.unwrap();
    assert_eq!(wait_for_task(&kb, task.task_id).await.status, TaskStatus::Done);
    let runtimes = recorder.runtimes.lock().unwrap().clone();
    assert_eq!(runtimes, HashSet::from([Handle::current().id()]));
    kb.close().await;
    ingestion.shutdown_background();
}
