//! What a knowledge base tells of itself: the health of its parts, its queue, its workers and its sizes.

use std::{
    fmt::Display,
    sync::PoisonError,
    time::{Duration, Instant},
};

use lkr_catalog::Catalog;
use lkr_domain::TaskId;
use lkr_ingest::WorkerStatus;
use lkr_retrieval::CacheSize;
use tokio::time::timeout;

use crate::{EmbeddingStatus, KnowledgeBase, Result, error::During};

/// The time limit of a check. The client of a store on another machine retries for many seconds, longer than a probe of readiness
/// waits. The value is a judgement, not a measurement.
const LIMIT: Duration = Duration::from_secs(2);

/// The health of each part of a knowledge base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// The vector store.
    pub vectors: PartHealth,
    /// The state store.
    pub state: PartHealth,
    /// The task queue.
    pub queue: PartHealth,
    /// The blob store.
    pub blobs: PartHealth,
    /// The embedding model; without one, searches use keywords only.
    pub embedder: PartHealth,
}

/// The health of a part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartHealth {
    /// Why it does not work; `None` if it does.
    pub failure: Option<String>,
    /// How long the check took.
    pub took: Duration,
}

/// The tasks that are pending or running.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueStatus {
    /// How many there are.
    pub tasks: u64,
    /// How long ago the oldest of them was accepted; `None` if there is none, or the queue cannot tell.
    pub oldest: Option<Duration>,
}

impl PartHealth {
    /// Runs a check, for no longer than [`LIMIT`].
    async fn of<E: Display>(check: impl Future<Output = Result<(), E>>) -> Self {
        let started = Instant::now();
        let failure = match timeout(LIMIT, check).await {
            Ok(checked) => checked.err().map(|error| error.to_string()),
            Err(_) => Some(format!("it did not answer within {LIMIT:?}")),
        };
        Self { failure, took: started.elapsed() }
    }

    /// Whether it works.
    #[must_use]
    pub const fn is_ok(&self) -> bool {
        self.failure.is_none()
    }
}

impl KnowledgeBase {
    /// Checks the health of each part.
    pub async fn health(&self) -> Health {
        let shared = &*self.shared;
        let (vectors, state, queue, blobs, embedder) = tokio::join!(
            PartHealth::of(shared.vectors.health()),
            PartHealth::of(shared.state.health()),
            PartHealth::of(shared.queue.health()),
            PartHealth::of(shared.texts.health()),
            PartHealth::of(self.embedder_health()),
        );
        Health { vectors, state, queue, blobs, embedder }
    }

    async fn embedder_health(&self) -> Result<(), String> {
        let EmbeddingStatus { target, live_is_available, .. } =
            self.embedding().await.map_err(|error| error.to_string())?;
        match (live_is_available, target) {
            (true, _) => Ok(()),
            (false, None) => Err("no embedding model: keyword search only".to_owned()),
            (false, Some(target)) => {
                let name = &target.profile().name;
                Err(format!("keyword search only until all documents are embedded with {name}"))
            }
        }
    }

    /// The number of tasks that wait or are being processed.
    pub async fn queued_tasks(&self) -> Result<u64> {
        self.shared.queue.len().await.map_err(lkr_ingest::Error::from).during("count tasks")
    }

    /// The tasks that wait or are being processed.
    pub async fn queue_status(&self) -> Result<QueueStatus> {
        let queue = &self.shared.queue;
        let read = async { Ok::<_, lkr_state::Error>((queue.len().await?, queue.oldest().await?)) };
        let (tasks, oldest) = read.await.map_err(lkr_ingest::Error::from).during("count tasks")?;
        Ok(QueueStatus { tasks, oldest: oldest.map(|task| age(&self.shared.catalog, task)) })
    }

    /// Why the workers wait for a store, if they do: for room on the disk, for example.
    #[must_use]
    pub fn ingestion_waits_for(&self) -> Option<&'static str> {
        let workers = self.shared.workers.lock().unwrap_or_else(PoisonError::into_inner);
        workers.as_ref().and_then(lkr_ingest::Workers::waits_for_store)
    }

    /// What the workers do; zeros once they are stopped.
    #[must_use]
    pub fn worker_status(&self) -> WorkerStatus {
        let workers = self.shared.workers.lock().unwrap_or_else(PoisonError::into_inner);
        workers.as_ref().map(lkr_ingest::Workers::status).unwrap_or_default()
    }

    /// The size of the search cache; `None` if the cache cannot tell.
    #[must_use]
    pub fn cache_size(&self) -> Option<CacheSize> {
        self.shared.searcher.cache_size()
    }

    /// The bytes that the files of the embedded store take on the disk, without texts and originals; `None` if other stores
    /// have all records and points.
    ///
    /// # Errors
    /// That the folder cannot be read.
    #[cfg(feature = "lmdb")]
    pub async fn store_bytes(&self) -> Result<Option<u64>> {
        let source = self.shared.backup_source.as_ref().filter(|source| source.embedded.is_some());
        let Some(source) = source else { return Ok(None) };
        let folder = source.data_dir.join("store");
        let read = move || {
            disk_bytes(&folder)
                .map_err(|error| crate::Error::new(crate::ErrorKind::Internal, "measure store", error))
        };
        crate::blocking::blocking("measure store", read).await.map(Some)
    }
}

/// How long ago a task was accepted.
fn age(catalog: &Catalog, task: TaskId) -> Duration {
    let now = u64::try_from(catalog.now().unix_timestamp_nanos() / 1_000_000).unwrap_or_default();
    Duration::from_millis(now.saturating_sub(task.unix_ms()))
}

/// The bytes that the files below a folder take on the disk. Files of a store are sparse.
#[cfg(feature = "lmdb")]
fn disk_bytes(folder: &std::path::Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        // Clusters of vectors may be replaced meanwhile.
        let Ok(metadata) = entry.metadata() else { continue };
        bytes += if metadata.is_dir() {
            disk_bytes(&entry.path()).unwrap_or_default()
        } else {
            allocated(&metadata)
        };
    }
    Ok(bytes)
}

#[cfg(all(feature = "lmdb", unix))]
fn allocated(metadata: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::blocks(metadata) * 512
}

#[cfg(all(feature = "lmdb", not(unix)))]
fn allocated(metadata: &std::fs::Metadata) -> u64 {
    metadata.len()
}
