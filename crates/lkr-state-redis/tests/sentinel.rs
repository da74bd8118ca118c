//! Failovers by sentinels amid writes.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

#[path = "support/common.rs"]
mod common;

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use common::{config, ms, open};
use lkr_domain::TaskId;
use lkr_state::{ErrorKind, Expect, StateStore as _, StateStoreExt as _, TaskQueue as _, Write};
use lkr_state_redis::{RedisConfig, RedisState, RedisStore};
use lkr_test_support::RedisSentinels;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failovers_lose_no_acknowledged_write_and_repeat_no_version() {
    let Some(mut set) = RedisSentinels::start() else { return };
    let careless = RedisStore::open(config(set.url()), None).await.unwrap_err();
    assert!(careless.to_string().contains("wait_replicas"), "{careless}");
    // The old master becomes a replica and refuses writes. Only what all replicas have is certain to be kept then: until it
    // is demoted, it goes on acknowledging what the new master does not receive.
    let store = open(RedisConfig { wait_replicas: 2, ..config(set.url()) }).await;
    write_during(&store, &mut set, "demoted", |set| set.start_failover()).await;
    // The old master is gone, and the replica that received most becomes the master.
    let store = open(RedisConfig { wait_replicas: 1, ..config(set.url()) }).await;
    write_during(&store, &mut set, "killed", |set| set.master().kill()).await;
}

/// Writes before, during and after a failover, and checks what was acknowledged.
async fn write_during(
    store: &RedisStore,
    set: &mut RedisSentinels,
    name: &'static str,
    fail: impl FnOnce(&mut RedisSentinels),
) {
    let (stop, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let writer = tokio::spawn(write(store.clone(), name, Arc::clone(&stop), Arc::clone(&acknowledged)));
    let wait_for_more = async || {
        let wanted = acknowledged.load(Ordering::Relaxed) + 30;
        while acknowledged.load(Ordering::Relaxed) < wanted {
            assert!(!writer.is_finished(), "the writer failed");
            tokio::time::sleep(ms(5)).await;
        }
    };
    wait_for_more().await;
    let old = set.master().port();
    tokio::task::block_in_place(|| {
        fail(set);
        set.wait_for_failover(old);
    });
    wait_for_more().await;
    stop.store(true, Ordering::Relaxed);
    let written = writer.await.unwrap();
    check(&store.state(), name, &written).await;
    assert!(store.queue().len().await.unwrap() >= written.tasks, "an acknowledged task was lost");
}

/// What was acknowledged.
struct Written {
    keys: Vec<String>,
    /// The versions that reads found, each after a write of its own.
    versions: BTreeSet<u64>,
    tasks: u64,
}

async fn write(
    store: RedisStore,
    name: &'static str,
    stop: Arc<AtomicBool>,
    acknowledged: Arc<AtomicU64>,
) -> Written {
    let (state, queue) = (store.state(), store.queue());
    let mut written = Written { keys: Vec::new(), versions: BTreeSet::new(), tasks: 0 };
    for n in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let key = format!("{name}/{n}");
        let step = vec![Write::put(&key, Expect::Absent, "v"), Write::increment(name)];
        match state.apply(step).await {
            Ok(()) => {
                written.keys.push(key);
                let record = state.get(name).await;
                if let Ok(record) = record {
                    assert!(written.versions.insert(record.unwrap().version), "a version was repeated");
                }
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
        }
        written.tasks += u64::from(queue.push(TaskId::new(), ms(0)).await.is_ok());
        acknowledged.store(written.keys.len() as u64, Ordering::Relaxed);
    }
    written
}

async fn check(state: &RedisState, name: &str, written: &Written) {
    for keys in written.keys.chunks(500) {
        let found = state.get_many(keys).await.unwrap();
        assert!(found.iter().all(Option::is_some), "{name}: an acknowledged write was lost");
    }
    let (count, least) = (state.counter(name).await.unwrap(), written.keys.len() as u64);
    assert!(count >= least, "{name}: counted {count} of {least} steps");
}
