//! What is measured when the metrics are read: the queue, the workers, caches, sizes and the process.

use lkr::{CacheSize, QueueStatus, WorkerStatus};
use lkr_state_fallback::FallbackStatus;
use prometheus::Registry;

use super::{
    families,
    kinds::{Counters, Gauges},
    process::ProcessStatus,
};

/// The state of the service at one moment. What is unknown is not shown, or as it was before.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Snapshot {
    pub(crate) in_flight: usize,
    pub(crate) queue: Option<QueueStatus>,
    pub(crate) workers: WorkerStatus,
    pub(crate) cache: Option<CacheSize>,
    /// The bytes of the embedded store on the disk.
    pub(crate) store_bytes: Option<u64>,
    /// Redis, if the records are in it.
    pub(crate) redis: Option<RedisStatus>,
    pub(crate) process: ProcessStatus,
}

/// What this process knows of Redis.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RedisStatus {
    /// Whether accounts go on from memory.
    pub(crate) is_away: bool,
    /// The changes that Redis does not have yet.
    pub(crate) journal_steps: usize,
}

impl From<FallbackStatus> for RedisStatus {
    fn from(status: FallbackStatus) -> Self {
        Self { is_away: !status.is_remote_used, journal_steps: status.journal_entries }
    }
}

/// The gauges of a snapshot.
#[derive(Debug)]
pub(super) struct SnapshotGauges {
    in_flight: Gauges,
    queued: Gauges,
    oldest: Gauges,
    workers: Gauges,
    running: Gauges,
    cache_entries: Gauges,
    cache_bytes: Gauges,
    store_bytes: Gauges,
    redis_away: Gauges,
    journal_steps: Gauges,
    memory: Gauges,
    open_files: Gauges,
    started: Gauges,
    processor_time: Counters,
}

impl SnapshotGauges {
    pub(super) fn register(registry: &Registry) -> Self {
        let gauge = |family| Gauges::register(registry, &family);
        gauge(families::BUILD).set(&[env!("CARGO_PKG_VERSION")], 1.0);
        Self {
            in_flight: gauge(families::IN_FLIGHT),
            queued: gauge(families::QUEUED),
            oldest: gauge(families::OLDEST),
            workers: gauge(families::WORKERS),
            running: gauge(families::RUNNING),
            cache_entries: gauge(families::CACHE_ENTRIES),
            cache_bytes: gauge(families::CACHE_BYTES),
            store_bytes: gauge(families::STORE_BYTES),
            redis_away: gauge(families::REDIS_AWAY),
            journal_steps: gauge(families::JOURNAL_STEPS),
            memory: gauge(families::MEMORY),
            open_files: gauge(families::OPEN_FILES),
            started: gauge(families::STARTED),
            processor_time: Counters::register(registry, &families::PROCESSOR_TIME),
        }
    }

    pub(super) fn set(&self, snapshot: &Snapshot) {
        let Snapshot { in_flight, queue, workers, cache, store_bytes, redis, process } = snapshot;
        let set = |gauge: &Gauges, value: Option<f64>| {
            if let Some(value) = value {
                gauge.set(&[], value);
            }
        };
        set(&self.in_flight, Some(*in_flight as f64));
        set(&self.queued, queue.map(|queue| queue.tasks as f64));
        set(&self.oldest, queue.map(|queue| queue.oldest.unwrap_or_default().as_secs_f64()));
        set(&self.workers, Some(workers.workers as f64));
        set(&self.running, Some(workers.busy as f64));
        set(&self.cache_entries, cache.map(|cache| cache.entries as f64));
        set(&self.cache_bytes, cache.map(|cache| cache.bytes as f64));
        set(&self.store_bytes, store_bytes.map(|bytes| bytes as f64));
        set(&self.redis_away, redis.map(|redis| f64::from(redis.is_away)));
        set(&self.journal_steps, redis.map(|redis| redis.journal_steps as f64));
        set(&self.memory, process.resident_bytes.map(|bytes| bytes as f64));
        set(&self.open_files, process.open_files.map(|files| files as f64));
        set(&self.started, process.started);
        if let Some(seconds) = process.processor_seconds {
            self.processor_time.raise(&[], seconds);
        }
    }
}
