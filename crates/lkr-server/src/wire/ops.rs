use lkr::{Embedding, Health};
use serde::Serialize;
use utoipa::ToSchema;

/// That the process is alive.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Alive {
    /// ok
    pub(crate) status: &'static str,
}

/// How the service and what it depends on are: each ok, degraded or down.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Readiness {
    /// The service: down where it cannot serve.
    pub(crate) status: &'static str,
    pub(crate) dependencies: Dependencies,
    /// Null where that cannot be told.
    #[schema(required)]
    pub(crate) embedding: Option<EmbeddingItem>,
}

/// The embedding models in force; they differ while documents are embedded anew, and after that was cancelled.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EmbeddingItem {
    /// The model whose vectors searches use; null where they go by keywords alone.
    #[schema(required)]
    in_use: Option<String>,
    /// The model that all documents are to have vectors of; null where there is to be none.
    #[schema(required)]
    wanted: Option<String>,
}

impl From<Embedding> for EmbeddingItem {
    fn from(embedding: Embedding) -> Self {
        let wanted = embedding.wanted.map(|wanted| wanted.profile().name.clone());
        Self { in_use: embedding.live_name, wanted }
    }
}

/// What the service depends on.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Dependencies {
    /// Points.
    vectors: &'static str,
    /// Records.
    state: &'static str,
    /// Texts.
    blobs: &'static str,
    /// The embedding model: degraded where there is none, and searches go by keywords alone.
    embedder: &'static str,
    /// Tasks.
    queue: &'static str,
}

const OK: &str = "ok";
const DEGRADED: &str = "degraded";
const DOWN: &str = "down";

impl Readiness {
    /// Before the stores are open, and when they are about to be closed.
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
    /// Points and records are what every request needs. Without the rest, some requests are refused or poorer.
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
    fn stores_decide_and_the_rest_degrades() {
        let well = || Ok(());
        let away = || Err("away".to_owned());
        let health =
            |vectors, blobs, embedder| Health { vectors, state: well(), blobs, embedder, queue: well() };
        assert_eq!(Readiness::from(&health(well(), well(), well())).status, OK);
        assert_eq!(Readiness::from(&health(well(), well(), away())).status, DEGRADED);
        assert_eq!(Readiness::from(&health(well(), away(), well())).status, DEGRADED);
        assert_eq!(Readiness::from(&health(away(), well(), well())).status, DOWN);
        assert!(Readiness::closed().is_down());
    }
}
