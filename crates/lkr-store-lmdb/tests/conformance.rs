//! The suites that every backend passes.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{path::Path, sync::Arc};

use lkr_state::{StateStore, TaskQueue};
use lkr_store_lmdb::{LmdbOptions, LmdbStore};
use lkr_vectors::VectorStore;
use tempfile::TempDir;

fn open(folder: &Path) -> LmdbStore {
    LmdbStore::open(folder, LmdbOptions::default()).unwrap()
}

mod vectors {
    use super::*;

    async fn store() -> (Arc<dyn VectorStore>, TempDir) {
        let folder = tempfile::tempdir().unwrap();
        (Arc::new(open(folder.path()).vectors()), folder)
    }

    async fn copy(folder: &Path) -> (Arc<dyn VectorStore>, ()) {
        (Arc::new(open(folder).vectors()), ())
    }

    lkr_vectors::vector_store_suite!(store(), copy: copy);
}

mod state {
    use super::*;

    async fn store() -> (Arc<dyn StateStore>, TempDir) {
        let folder = tempfile::tempdir().unwrap();
        (Arc::new(open(folder.path()).state()), folder)
    }

    async fn copy(folder: &Path) -> (Arc<dyn StateStore>, ()) {
        (Arc::new(open(folder).state()), ())
    }

    lkr_state::state_store_suite!(store(), copy: copy);
}

mod queue {
    use super::*;

    async fn queue() -> (Arc<dyn TaskQueue>, TempDir) {
        let folder = tempfile::tempdir().unwrap();
        (Arc::new(open(folder.path()).queue()), folder)
    }

    lkr_state::task_queue_suite!(queue());
}
