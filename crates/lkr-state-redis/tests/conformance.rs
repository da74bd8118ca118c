//! The suites that every backend passes.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "support/common.rs"]
mod common;

mod state {
    use std::{path::Path, sync::Arc};

    use lkr_state::{MemoryState, StateStore};
    use lkr_state_redis::RedisStore;
    use lkr_test_support::RedisServer;

    use super::common::{config, open, start, state};

    /// Without Redis, the suite runs on the store in memory, after a visible skip.
    async fn store() -> (Arc<dyn StateStore>, Option<RedisServer>) {
        match start().await {
            Some((server, store)) => (state(&store), Some(server)),
            None => (Arc::new(MemoryState::new()), None),
        }
    }

    /// The snapshot, restored into a server of its own.
    async fn copy(folder: &Path) -> (Arc<dyn StateStore>, Option<RedisServer>) {
        match RedisServer::start() {
            Some(server) => {
                RedisStore::restore(config(server.url()), folder).await.unwrap();
                (state(&open(config(server.url())).await), Some(server))
            }
            None => (Arc::new(MemoryState::open_snapshot(folder).unwrap()), None),
        }
    }

    lkr_state::state_store_suite!(store(), copy: copy);
}

mod queue {
    use std::sync::Arc;

    use lkr_state::{MemoryQueue, TaskQueue};
    use lkr_test_support::RedisServer;

    use super::common::start;

    async fn queue() -> (Arc<dyn TaskQueue>, Option<RedisServer>) {
        match start().await {
            Some((server, store)) => (Arc::new(store.queue()), Some(server)),
            None => (Arc::new(MemoryQueue::new()), None),
        }
    }

    lkr_state::task_queue_suite!(queue());
}
