//! A server that is killed, hangs or is full.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

#[path = "support/common.rs"]
mod common;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use common::{config, ms, open, start};
use lkr_domain::TaskId;
use lkr_state::{ErrorKind, Expect, Result, StateStore as _, StateStoreExt as _, TaskQueue as _, Write};
use lkr_state_redis::RedisConfig;
use lkr_test_support::RedisServer;
use tokio::task::JoinSet;

const LONG: Duration = Duration::from_secs(60);
const ZERO: Duration = Duration::ZERO;
const WRITERS: usize = 4;

/// While a password is changed, the server refuses lkr until lkr is started with the new one. Tasks wait meanwhile and do not fail.
#[tokio::test]
async fn server_that_refuses_the_password_later_is_unavailable() {
    let Some(server) = RedisServer::start() else { return };
    let set_password = |password: &str| {
        server.command(&["ACL", "SETUSER", "me", "on", "resetpass", password, "~*", "&*", "+@all"]).unwrap();
        server.command(&["CLIENT", "KILL", "USER", "me"]).unwrap();
    };
    set_password(">first");
    let store = open(config(format!("redis://me:first@127.0.0.1:{}", server.port()))).await;
    store.state().apply(vec![Write::increment("count")]).await.unwrap();
    set_password(">second");
    let refused = [
        store.state().apply(vec![Write::increment("count")]).await.unwrap_err(),
        store.state().get("count").await.unwrap_err(),
        store.state().health().await.unwrap_err(),
        store.queue().push(TaskId::new(), ZERO).await.unwrap_err(),
        store.queue().len().await.unwrap_err(),
    ];
    for error in refused {
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("authentication failed"), "{error}");
    }
    set_password(">first");
    store.state().apply(vec![Write::increment("count")]).await.unwrap();
    assert_eq!(store.state().counter("count").await.unwrap(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_lose_no_acknowledged_write_and_apply_none_twice() {
    let Some((mut server, store)) = start().await else { return };
    let stop = Arc::new(AtomicBool::new(false));
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let (state, queue, stop) = (store.state(), store.queue(), Arc::clone(&stop));
        writers.spawn(async move {
            let mut acknowledged = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                let new = Write::put(format!("{writer}/{acknowledged}"), Expect::Absent, "v");
                state.apply(vec![Write::increment(format!("count/{writer}")), new]).await.unwrap();
                queue.push(TaskId::new(), ZERO).await.unwrap();
                acknowledged += 1;
            }
            (writer, acknowledged)
        });
    }
    let mut counted = 0;
    for _ in 0..4 {
        // Each kill comes amid writes.
        let wanted = counted + 20;
        while counted < wanted {
            tokio::time::sleep(ms(5)).await;
            counted = store.state().counter("count/0").await.unwrap_or(counted);
        }
        server.kill();
        tokio::time::sleep(ms(100)).await;
        server.restart();
    }
    stop.store(true, Ordering::Relaxed);
    let mut all = 0;
    while let Some(done) = writers.join_next().await {
        let (writer, acknowledged) = done.unwrap();
        all += acknowledged;
        assert_eq!(store.state().counter(&format!("count/{writer}")).await.unwrap(), acknowledged);
        let keys = (0..acknowledged).map(|n| format!("{writer}/{n}")).collect::<Vec<_>>();
        let found = store.state().get_many(&keys).await.unwrap();
        assert!(found.iter().all(Option::is_some), "an acknowledged write of {writer} was lost");
    }
    assert_eq!(store.queue().len().await.unwrap(), all);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hanging_server_is_unavailable_within_the_timeouts_and_works_again_later() {
    let Some(server) = RedisServer::start() else { return };
    let short =
        RedisConfig { command_timeout: ms(500), write_timeout: ms(1_000), ..RedisConfig::new(server.url()) };
    let store = open(short).await;
    let (state, queue) = (store.state(), store.queue());
    state.apply(vec![Write::put("a", Expect::Any, "old")]).await.unwrap();
    queue.push(TaskId::new(), ZERO).await.unwrap();
    let claim = queue.claim(LONG, ZERO).await.unwrap().unwrap();
    server.stop();
    let begin = Instant::now();
    let unavailable = |what: &str, result: Result<()>, since: Instant, limit| {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{what}: {error}");
        assert!(since.elapsed() < limit, "{what} took {:?}", since.elapsed());
    };
    while begin.elapsed() < ms(3_000) {
        let at = Instant::now();
        unavailable("get", state.get("a").await.map(drop), at, ms(1_000));
        let at = Instant::now();
        unavailable("health", state.health().await, at, ms(1_000));
        let at = Instant::now();
        unavailable("apply", state.apply(vec![Write::put("a", Expect::Any, "new")]).await, at, ms(1_700));
        let at = Instant::now();
        unavailable("heartbeat", queue.heartbeat(&claim, LONG).await, at, ms(1_700));
    }
    server.cont();
    let begin = Instant::now();
    while let Err(error) = state.get("a").await {
        assert!(begin.elapsed() < ms(5_000), "{error}");
    }
    state.apply(vec![Write::put("a", Expect::Any, "newest")]).await.unwrap();
    queue.finish(&claim).await.unwrap();
    assert_eq!(state.get("a").await.unwrap().unwrap().value, "newest");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_server_refuses_writes_and_lets_tasks_finish() {
    let Some((server, store)) = start().await else { return };
    let (state, queue) = (store.state(), store.queue());
    let task = TaskId::new();
    queue.push(task, ZERO).await.unwrap();
    let claim = queue.claim(LONG, ZERO).await.unwrap().unwrap();
    state.apply(vec![Write::put("a", Expect::Any, "kept")]).await.unwrap();
    server.command(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    let begin = Instant::now();
    let error = state.apply(vec![Write::put("a", Expect::Any, "new")]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(queue.push(TaskId::new(), ZERO).await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(begin.elapsed() < ms(5_000), "writes to a full server must not be repeated");
    assert_eq!(state.get("a").await.unwrap().unwrap().value, "kept");
    queue.heartbeat(&claim, LONG).await.unwrap();
    queue.finish(&claim).await.unwrap();
    server.command(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
    state.apply(vec![Write::put("a", Expect::Any, "new")]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_calls_leave_connections_usable() {
    let Some(server) = RedisServer::start() else { return };
    let store = open(RedisConfig { pool_size: 1, ..config(server.url()) }).await;
    let state = store.state();
    let large = vec![7; 1 << 20];
    for n in 0..60_u64 {
        let key = format!("{n}");
        let write = state.apply(vec![Write::put(&key, Expect::Any, large.clone())]);
        let _dropped = tokio::time::timeout(Duration::from_micros(n * 100), write).await;
        let _dropped = tokio::time::timeout(Duration::from_micros(n * 50), state.get(&key)).await;
        let marker = format!("marker {n}");
        state.apply(vec![Write::put("marker", Expect::Any, marker.clone())]).await.unwrap();
        assert_eq!(state.get("marker").await.unwrap().unwrap().value, marker);
    }
}

/// After a failover, a server may lack the last increments, and its clock may be behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_and_tokens_grow_although_the_server_lost_the_last_ones() {
    let Some((server, store)) = start().await else { return };
    let (state, queue) = (store.state(), store.queue());
    // Later than the clock, so that it does not help.
    let far = "5000000000000000";
    server.command(&["HSET", "{lkr}:meta", "version", far, "number", far]).unwrap();
    queue.push(TaskId::new(), ZERO).await.unwrap();
    let (mut last_version, mut last_token) = (5_000_000_000_000_000, 5_000_000_000_000_000);
    for lost in [far, "1"] {
        state.apply(vec![Write::increment("a")]).await.unwrap();
        let claim = queue.claim(LONG, ZERO).await.unwrap().unwrap();
        queue.retry(&claim, ZERO).await.unwrap();
        let version = state.get("a").await.unwrap().unwrap().version;
        assert!(version > last_version && claim.token > last_token, "{version}, {}", claim.token);
        (last_version, last_token) = (version, claim.token);
        server.command(&["HSET", "{lkr}:meta", "version", lost, "number", lost]).unwrap();
    }
    // Another process has seen none of them; the clock keeps its numbers from beginning again.
    server.command(&["HSET", "{lkr}:meta", "version", "1", "number", "1"]).unwrap();
    let other = open(config(server.url())).await.state();
    other.apply(vec![Write::put("b", Expect::Any, "v")]).await.unwrap();
    assert!(other.get("b").await.unwrap().unwrap().version > 1_000_000_000_000_000);
}
