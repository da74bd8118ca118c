use lkr::{EmbeddingStatus, Health, PartHealth, QueueStatus, WorkerStatus};
use serde::Serialize;
use utoipa::ToSchema;

use super::formats::HealthName;
use crate::error::without_paths;

/// The process is alive.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Alive {
    /// ok
    #[schema(pattern = "^ok$")]
    pub(crate) status: &'static str,
}

/// The status of the service and of its dependencies: each is ok, degraded or down.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Readiness {
    /// The service. It is down if it cannot serve requests.
    #[schema(value_type = HealthName)]
    pub(crate) status: &'static str,
    /// The status of each dependency.
    pub(crate) dependencies: Dependencies,
    /// The checks behind the statuses; null while there is nothing to check.
    #[schema(required)]
    pub(crate) checks: Option<Checks>,
    /// Null if it is unknown.
    #[schema(required)]
    pub(crate) embedding: Option<EmbeddingItem>,
    /// The tasks that are pending or running; null if they are unknown.
    #[schema(required)]
    pub(crate) queue: Option<QueueItem>,
    /// Null while there are none.
    #[schema(required)]
    pub(crate) workers: Option<WorkersItem>,
    /// The version of the server.
    pub(crate) version: &'static str,
}

/// The current embedding models. The two differ during a re-embedding and after a cancelled one.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EmbeddingItem {
    /// The model whose vectors searches use; null if searches use keywords alone.
    #[schema(required)]
    in_use: Option<String>,
    /// The model that the settings name; null for none.
    #[schema(required)]
    wanted: Option<String>,
}

impl EmbeddingItem {
    /// The same, if the settings name a model that was not reached yet.
    pub(crate) fn wanting(self, model: String) -> Self {
        Self { wanted: Some(model), ..self }
    }
}

impl From<EmbeddingStatus> for EmbeddingItem {
    fn from(embedding: EmbeddingStatus) -> Self {
        let wanted = embedding.target.map(|wanted| wanted.profile().name.clone());
        Self { in_use: embedding.live_name, wanted }
    }
}

/// The dependencies of the service.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Dependencies {
    /// The store of points.
    #[schema(value_type = HealthName)]
    vectors: &'static str,
    /// The store of records.
    #[schema(value_type = HealthName)]
    state: &'static str,
    /// The store of extracted texts and uploaded files.
    #[schema(value_type = HealthName)]
    blobs: &'static str,
    /// The embedding model. It is degraded if there is none, so that searches use keywords alone, and while the one that the settings
    /// name cannot be reached.
    #[schema(value_type = HealthName)]
    embedder: &'static str,
    /// The task queue. It is degraded while ingestion waits for a store, for room on the disk for example.
    #[schema(value_type = HealthName)]
    queue: &'static str,
}

/// The checks of the dependencies.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Checks {
    /// The check of the store of points.
    vectors: Check,
    /// The check of the store of records.
    state: Check,
    /// The check of the store of extracted texts and uploaded files.
    blobs: Check,
    /// The check of the embedding model.
    embedder: Check,
    /// The check of the task queue.
    queue: Check,
}

/// The check of a dependency.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Check {
    /// The state of the dependency.
    #[schema(value_type = HealthName)]
    status: &'static str,
    /// Why it is degraded or down; null if it is ok.
    #[schema(required)]
    reason: Option<String>,
    /// How long the check took, in milliseconds.
    latency_ms: f64,
}

/// The tasks that are pending or running.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QueueItem {
    /// How many there are.
    tasks: u64,
    /// How many seconds ago the oldest of them was accepted; null if there is none.
    #[schema(required)]
    oldest_age_s: Option<f64>,
}

/// The workers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WorkersItem {
    /// How many there are.
    count: usize,
    /// How many tasks are in progress. Long texts and tasks over all documents come on top of the workers.
    running_tasks: usize,
}

const OK: &str = "ok";
const DEGRADED: &str = "degraded";
const DOWN: &str = "down";

impl Readiness {
    /// The status before the stores are open and while they are being closed.
    pub(crate) const fn closed() -> Self {
        let dependencies =
            Dependencies { vectors: DOWN, state: DOWN, blobs: DOWN, embedder: DOWN, queue: DOWN };
        Self {
            status: DOWN,
            dependencies,
            checks: None,
            embedding: None,
            queue: None,
            workers: None,
            version: env!("CARGO_PKG_VERSION"),
        }
    }

    pub(crate) fn is_down(&self) -> bool {
        self.status == DOWN
    }
}

impl Readiness {
    /// Every request needs points and records. Without the other dependencies some requests fail or return less. With
    /// `has_fallback`, accounts go on from memory while the records are away. `waits_for` is why ingestion waits for a store, if it does.
    pub(crate) fn new(mut health: Health, has_fallback: bool, waits_for: Option<&str>) -> Self {
        let is_queue_up = health.queue.is_ok();
        if let Some(reason) = waits_for.filter(|_| is_queue_up) {
            health.queue.failure = Some(format!("ingestion waits: {reason}"));
        }
        let checks = Checks {
            vectors: Check::of(health.vectors, DOWN),
            state: Check::of(health.state, if has_fallback { DEGRADED } else { DOWN }),
            blobs: Check::of(health.blobs, DOWN),
            embedder: Check::of(health.embedder, DEGRADED),
            queue: Check::of(health.queue, if is_queue_up { DEGRADED } else { DOWN }),
        };
        let dependencies = Dependencies {
            vectors: checks.vectors.status,
            state: checks.state.status,
            blobs: checks.blobs.status,
            embedder: checks.embedder.status,
            queue: checks.queue.status,
        };
        let others = [dependencies.blobs, dependencies.embedder, dependencies.queue];
        let status = match (dependencies.vectors, dependencies.state) {
            (OK, OK) if others == [OK; 3] => OK,
            (OK, OK | DEGRADED) => DEGRADED,
            _ => DOWN,
        };
        Self { status, dependencies, checks: Some(checks), ..Self::closed() }
    }
}

impl Check {
    /// The check of a part whose failure means `otherwise`.
    fn of(health: PartHealth, otherwise: &'static str) -> Self {
        let status = if health.is_ok() { OK } else { otherwise };
        // Microseconds are precise enough.
        let latency_ms = (health.took.as_secs_f64() * 1e6).round() / 1e3;
        Self { status, reason: health.failure.map(|failure| without_paths(&failure)), latency_ms }
    }
}

impl From<QueueStatus> for QueueItem {
    fn from(queue: QueueStatus) -> Self {
        Self { tasks: queue.tasks, oldest_age_s: queue.oldest.map(|age| age.as_secs_f64()) }
    }
}

impl From<WorkerStatus> for WorkersItem {
    fn from(workers: WorkerStatus) -> Self {
        Self { count: workers.workers, running_tasks: workers.busy }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn readiness_is_down_without_points_and_degraded_without_blobs_or_embedder() {
        let up = PartHealth::default;
        let down = || PartHealth { failure: Some("connection refused".to_owned()), ..PartHealth::default() };
        let health = |vectors, blobs, embedder| Health { vectors, state: up(), blobs, embedder, queue: up() };
        assert_eq!(Readiness::new(health(up(), up(), up()), false, None).status, OK);
        assert_eq!(Readiness::new(health(up(), up(), down()), false, None).status, DEGRADED);
        assert_eq!(Readiness::new(health(up(), down(), up()), false, None).status, DEGRADED);
        assert_eq!(Readiness::new(health(down(), up(), up()), false, None).status, DOWN);
        assert!(Readiness::closed().is_down());
        let full = Some("there is no room");
        let waiting = Readiness::new(health(up(), up(), up()), false, full);
        assert_eq!((waiting.status, waiting.dependencies.queue), (DEGRADED, DEGRADED));
        let reason = waiting.checks.and_then(|checks| checks.queue.reason);
        assert_eq!(reason.as_deref(), Some("ingestion waits: there is no room"));
        let gone = Health { queue: down(), ..health(up(), up(), up()) };
        assert_eq!(Readiness::new(gone, false, full).dependencies.queue, DOWN);
    }

    #[test]
    fn check_names_the_reason_and_the_latency() {
        let failure = Some("connection refused".to_owned());
        let check = Check::of(PartHealth { failure, took: Duration::from_micros(1_500) }, DOWN);
        assert_eq!((check.status, check.latency_ms), (DOWN, 1.5));
        assert_eq!(check.reason.as_deref(), Some("connection refused"));
    }
}
