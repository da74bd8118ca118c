use lkr::{EmbeddingStatus, Health};
use serde::Serialize;
use utoipa::ToSchema;

/// The process is alive.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Alive {
    /// ok
    pub(crate) status: &'static str,
}

/// The status of the service and of its dependencies: each is ok, degraded or down.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Readiness {
    /// The service. It is down if it cannot serve requests.
    pub(crate) status: &'static str,
    pub(crate) dependencies: Dependencies,
    /// Null if it is unknown.
    #[schema(required)]
    pub(crate) embedding: Option<EmbeddingItem>,
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
    vectors: &'static str,
    /// The store of records.
    state: &'static str,
    /// The store of extracted texts and uploaded files.
    blobs: &'static str,
    /// The embedding model. It is degraded if there is none; searches then use keywords alone.
    embedder: &'static str,
    /// The task queue.
    queue: &'static str,
}

const OK: &str = "ok";
const DEGRADED: &str = "degraded";
const DOWN: &str = "down";

impl Readiness {
    /// The status before the stores are open and while they are being closed.
    pub(crate) const fn closed() -> Self {
        let dependencies =
            Dependencies { vectors: DOWN, state: DOWN, blobs: DOWN, embedder: DOWN, queue: DOWN };
        Self { status: DOWN, dependencies, embedding: None }
    }

    pub(crate) fn is_down(&self) -> bool {
        self.status == DOWN
    }
}

impl From<&Health> for Readiness {
    /// Every request needs points and records. Without the other dependencies some requests fail or return less.
    fn from(health: &Health) -> Self {
        let store = |result: &Result<(), String>| if result.is_ok() { OK } else { DOWN };
        let dependencies = Dependencies {
            vectors: store(&health.vectors),
            state: store(&health.state),
            blobs: store(&health.blobs),
            embedder: if health.embedder.is_ok() { OK } else { DEGRADED },
            queue: store(&health.queue),
        };
        let others = [dependencies.blobs, dependencies.embedder, dependencies.queue];
        let status = match (dependencies.vectors, dependencies.state) {
            (OK, OK) if others == [OK; 3] => OK,
            (OK, OK) => DEGRADED,
            _ => DOWN,
        };
        Self { status, dependencies, embedding: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readiness_is_down_without_points_and_degraded_without_blobs_or_embedder() {
        let up = || Ok(());
        let down = || Err("connection refused".to_owned());
        let health = |vectors, blobs, embedder| Health { vectors, state: up(), blobs, embedder, queue: up() };
        assert_eq!(Readiness::from(&health(up(), up(), up())).status, OK);
        assert_eq!(Readiness::from(&health(up(), up(), down())).status, DEGRADED);
        assert_eq!(Readiness::from(&health(up(), down(), up())).status, DEGRADED);
        assert_eq!(Readiness::from(&health(down(), up(), up())).status, DOWN);
        assert!(Readiness::closed().is_down());
    }
}
