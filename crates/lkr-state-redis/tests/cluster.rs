//! Clusters of several masters: the suites, a slot that moves, failovers, a node that hangs.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

#[path = "support/common.rs"]
mod common;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Instant,
};

use common::{config, ms, open};
use lkr_domain::TaskId;
use lkr_state::{Expect, StateStore as _, StateStoreExt as _, TaskQueue as _, Write};
use lkr_state_redis::{RedisConfig, RedisStore};
use lkr_test_support::RedisCluster;
use tokio::task::{JoinSet, block_in_place};

/// A key of stores with the default prefix.
const KEY: &str = "{lkr}:meta";
const WRITERS: usize = 4;

/// The suites on a cluster that its cases share, each with a prefix of its own, by a node that has not its slot.
mod conformance {
    use std::sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    };

    use lkr_state_redis::RedisConfig;
    use lkr_test_support::RedisCluster;

    use super::common::config;

    /// A cluster, and the configuration of a store that nobody has used.
    fn fresh() -> Option<(Arc<RedisCluster>, RedisConfig)> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let cluster = RedisCluster::shared()?;
        let prefix = format!("case-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let url = cluster.url_without(&format!("{{{prefix}}}:meta"));
        Some((cluster, RedisConfig { prefix, allow_weak_durability: true, ..config(url) }))
    }

    mod state {
        use std::{path::Path, sync::Arc};

        use lkr_state::{MemoryState, StateStore};
        use lkr_state_redis::RedisStore;
        use lkr_test_support::RedisCluster;

        use super::{
            super::common::{open, state},
            fresh,
        };

        /// Without Redis, the suite runs on the store in memory, after a visible skip.
        async fn store() -> (Arc<dyn StateStore>, Option<Arc<RedisCluster>>) {
            match fresh() {
                Some((cluster, config)) => (state(&open(config).await), Some(cluster)),
                None => (Arc::new(MemoryState::new()), None),
            }
        }

        /// The snapshot, restored under another prefix.
        async fn copy(folder: &Path) -> (Arc<dyn StateStore>, Option<Arc<RedisCluster>>) {
            match fresh() {
                Some((cluster, config)) => {
                    RedisStore::restore(config.clone(), folder).await.unwrap();
                    (state(&open(config).await), Some(cluster))
                }
                None => (Arc::new(MemoryState::open_snapshot(folder).unwrap()), None),
            }
        }

        lkr_state::state_store_suite!(store(), copy: copy);
    }

    mod queue {
        use std::sync::Arc;

        use lkr_state::{MemoryQueue, TaskQueue};
        use lkr_test_support::RedisCluster;

        use super::{super::common::open, fresh};

        async fn queue() -> (Arc<dyn TaskQueue>, Option<Arc<RedisCluster>>) {
            match fresh() {
                Some((cluster, config)) => (Arc::new(open(config).await.queue()), Some(cluster)),
                None => (Arc::new(MemoryQueue::new()), None),
            }
        }

        lkr_state::task_queue_suite!(queue());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slot_that_moves_amid_writes_loses_none_and_applies_none_twice() {
    let Some(cluster) = RedisCluster::start() else { return };
    let store = open(RedisConfig { allow_weak_durability: true, ..config(cluster.url_without(KEY)) }).await;
    let writers = Writers::start(&store);
    for _ in 0..2 {
        writers.wait_for_more().await;
        block_in_place(|| cluster.move_slot(KEY));
    }
    writers.wait_for_more().await;
    writers.check(&store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failovers_of_a_cluster_lose_no_acknowledged_write_and_apply_none_twice() {
    let Some(mut cluster) = RedisCluster::start_with_replicas(KEY, 2) else { return };
    let url = cluster.url_without(KEY);
    let careful = RedisConfig { wait_replicas: 1, allow_weak_durability: true, ..config(url) };
    let store = open(careful).await;
    let writers = Writers::start(&store);
    writers.wait_for_more().await;
    let old = block_in_place(|| cluster.fail_over(KEY));
    writers.wait_for_more().await;
    block_in_place(|| {
        let new = cluster.master(KEY).port();
        assert_ne!(old, new);
        cluster.master(KEY).kill();
        cluster.wait_for_owner(KEY, new);
    });
    writers.wait_for_more().await;
    writers.check(&store).await;
}

/// The replicas of other masters, and of the next one, say nothing of a write that only its predecessor had.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn write_that_was_lost_with_its_master_is_applied_by_the_next_one() {
    let Some(mut cluster) = RedisCluster::start_with_replicas(KEY, 2) else { return };
    let url = cluster.url_without(KEY);
    let careful =
        |wait_replicas| RedisConfig { wait_replicas, allow_weak_durability: true, ..config(url.clone()) };
    // Each replica may become the master, so both must have what was before.
    let before = vec![Write::put("a", Expect::Absent, "before")];
    open(careful(2)).await.state().apply(before).await.unwrap();
    let state = open(careful(1)).await.state();
    cluster.replicas_mut().for_each(|replica| replica.kill());
    let writing = {
        let state = state.clone();
        tokio::spawn(async move { state.apply(vec![Write::put("a", Expect::Any, "after")]).await })
    };
    // The master applies it, and waits for a replica.
    while !cluster.master(KEY).command(&["HGET", "{lkr}:records", "a"]).unwrap().contains("after") {
        tokio::time::sleep(ms(10)).await;
    }
    block_in_place(|| cluster.lose_master(KEY));
    writing.await.unwrap().unwrap();
    assert_eq!(state.get("a").await.unwrap().unwrap().value, "after", "an acknowledged write was lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_that_hangs_delays_no_request_to_the_others() {
    let Some(cluster) = RedisCluster::start() else { return };
    let hosts: Vec<String> =
        cluster.other_masters(KEY).map(|node| format!("127.0.0.1:{}", node.port())).collect();
    let url = format!("redis+cluster://{}", hosts.join(","));
    let default = RedisConfig { allow_weak_durability: true, ..RedisConfig::new(url) };
    cluster.other_masters(KEY).next().unwrap().stop();
    let begin = Instant::now();
    let store = open(default).await;
    for n in 0..20 {
        store.state().apply(vec![Write::put(format!("{n}"), Expect::Absent, "v")]).await.unwrap();
        store.state().get("0").await.unwrap().unwrap();
    }
    assert!(begin.elapsed() < ms(4_000), "took {:?}", begin.elapsed());
}

/// Tasks that write and that accept no error.
struct Writers {
    stop: Arc<AtomicBool>,
    acknowledged: Arc<AtomicU64>,
    tasks: JoinSet<(usize, u64)>,
}

impl Writers {
    fn start(store: &RedisStore) -> Self {
        let (stop, acknowledged) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let mut tasks = JoinSet::new();
        for writer in 0..WRITERS {
            let (state, queue) = (store.state(), store.queue());
            let (stop, acknowledged) = (Arc::clone(&stop), Arc::clone(&acknowledged));
            tasks.spawn(async move {
                let mut count = 0;
                while !stop.load(Ordering::Relaxed) {
                    let new = Write::put(format!("{writer}/{count}"), Expect::Absent, "v");
                    state.apply(vec![Write::increment(format!("count/{writer}")), new]).await.unwrap();
                    queue.push(TaskId::new(), ms(0)).await.unwrap();
                    let counted = state.counter(&format!("count/{writer}")).await.unwrap();
                    count += 1;
                    assert_eq!(counted, count, "a step was lost or applied twice");
                    acknowledged.fetch_add(1, Ordering::Relaxed);
                }
                (writer, count)
            });
        }
        Self { stop, acknowledged, tasks }
    }

    /// Waits until some more writes are acknowledged.
    async fn wait_for_more(&self) {
        let wanted = self.acknowledged.load(Ordering::Relaxed) + 100;
        let begin = Instant::now();
        while self.acknowledged.load(Ordering::Relaxed) < wanted {
            assert!(begin.elapsed() < ms(30_000), "the writers do not go on");
            tokio::time::sleep(ms(5)).await;
        }
    }

    async fn check(mut self, store: &RedisStore) {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = 0;
        while let Some(ended) = self.tasks.join_next().await {
            let (writer, count) = ended.unwrap();
            all += count;
            let keys: Vec<String> = (0..count).map(|n| format!("{writer}/{n}")).collect();
            let found = store.state().get_many(&keys).await.unwrap();
            assert!(found.iter().all(Option::is_some), "an acknowledged write was lost");
        }
        assert_eq!(store.queue().len().await.unwrap(), all, "an acknowledged task was lost");
    }
}
