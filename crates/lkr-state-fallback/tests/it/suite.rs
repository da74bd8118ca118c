//! The conformance suite, with the remote store there.

use std::{path::Path, sync::Arc};

use lkr_state::{MemoryState, StateStore};
use lkr_state_fallback::FallbackState;
use tempfile::TempDir;

use crate::support::{Remote, config, fallback, open};

/// All keys of the suite are mirrored.
async fn mirrored() -> (Arc<dyn StateStore>, TempDir) {
    let (state, _, folder) = fallback().await;
    (state, folder)
}

/// No key of the suite is mirrored.
async fn passed() -> (Arc<dyn StateStore>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let state = FallbackState::open(Remote::new(), Vec::new(), config(folder.path())).await.unwrap();
    (Arc::new(state), folder)
}

async fn copy(folder: &Path) -> (Arc<dyn StateStore>, ()) {
    (Arc::new(MemoryState::open_snapshot(folder).unwrap()), ())
}

/// A copy has the same versions if it is read through a decorator too.
async fn mirrored_copy(folder: &Path) -> (Arc<dyn StateStore>, TempDir) {
    let (copy, ()) = copy(folder).await;
    let folder = tempfile::tempdir().unwrap();
    (open(&Remote::over(copy), folder.path()).await, folder)
}

mod mirrored_keys {
    lkr_state::state_store_suite!(super::mirrored(), copy: super::mirrored_copy);
}

mod other_keys {
    lkr_state::state_store_suite!(super::passed(), copy: super::copy);
}
