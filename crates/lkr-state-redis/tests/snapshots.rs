//! Snapshots of many records while they change.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

#[path = "support/common.rs"]
mod common;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use bytes::Bytes;
use common::{config, ms, open, start};
use lkr_state::{
    Error, ErrorKind, Expect, Key, RecordExport as _, RecordSink, Result, ScanOrder, StateStore as _,
    StateStoreExt as _, Write,
};
use lkr_state_redis::{RedisConfig, RedisStore};
use lkr_test_support::RedisServer;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

/// More than several pages.
const RECORDS: usize = 3_000;

fn key(number: usize) -> String {
    format!("{number:05}")
}

/// Records that were exported.
#[derive(Default)]
struct Exported {
    values: BTreeMap<Key, Bytes>,
    /// Fails once it has more records than this.
    limit: Option<usize>,
}

#[async_trait]
impl RecordSink for Exported {
    async fn add(&mut self, records: Vec<(Key, Bytes)>) -> Result<()> {
        for (key, value) in records {
            let before = self.values.insert(key, value.clone());
            assert!(before.is_none_or(|before| before == value), "a record came twice and differs");
        }
        match self.limit.is_some_and(|limit| self.values.len() > limit) {
            true => Err(Error::new(ErrorKind::Internal, "export", "the sink is full")),
            false => Ok(()),
        }
    }
}

/// The number of moved records, the sum of their counters, and the number of moves.
fn counted<'a>(records: impl Iterator<Item = (&'a Key, &'a [u8])>) -> (usize, u64, u64) {
    let number = |value: &[u8]| std::str::from_utf8(value).unwrap().parse::<u64>().unwrap();
    let (mut moved, mut sum, mut moves) = (0, 0, 0);
    for (key, value) in records {
        match key == "moves" {
            true => moves = number(value),
            false => (moved, sum) = (moved + 1, sum + number(value)),
        }
    }
    (moved, sum, moves)
}

/// Each step moves a record to a free key and counts the moves in both places, so that a copy of one moment has exactly
/// `RECORDS` records whose counters add up to the number of moves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshot_amid_moves_is_of_one_moment() {
    let Some((server, store)) = start().await else { return };
    let state = store.state();
    for numbers in (0..RECORDS).collect::<Vec<_>>().chunks(500) {
        let step = numbers.iter().map(|number| Write::put(key(*number), Expect::Absent, "0")).collect();
        state.apply(step).await.unwrap();
    }
    let (stop, moves) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let writer = {
        let (state, stop, moves) = (store.state(), Arc::clone(&stop), Arc::clone(&moves));
        tokio::spawn(async move {
            let mut rng = StdRng::seed_from_u64(7);
            let mut place: Vec<usize> = (0..RECORDS).collect();
            while !stop.load(Ordering::Relaxed) {
                let which = rng.random_range(0..RECORDS);
                let free = rng.random_range(0..100_000);
                let old = state.get(&key(place[which])).await.unwrap().unwrap();
                let step = vec![
                    Write::delete(key(place[which]), Expect::Version(old.version)),
                    Write::put(key(free), Expect::Absent, (old.as_counter() + 1).to_string()),
                    Write::increment("moves"),
                ];
                match state.apply(step).await {
                    Ok(()) => place[which] = free,
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
                }
                moves.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    let folder = tempfile::tempdir().unwrap();
    for round in 0..3 {
        let before = moves.load(Ordering::Relaxed);
        let to = folder.path().join(format!("copy {round}"));
        state.snapshot(&to).await.unwrap();
        assert!(moves.load(Ordering::Relaxed) > before, "writes must go on during a snapshot");
        let prefix = format!("copy-{round}");
        let config = RedisConfig { prefix, ..config(server.url()) };
        RedisStore::restore(config.clone(), &to).await.unwrap();
        let copy = open(config.clone()).await.state();
        let records = copy.scan("", None, ScanOrder::Ascending, usize::MAX).await.unwrap();
        let (moved, sum, copied) = counted(records.iter().map(|(key, record)| (key, &record.value[..])));
        assert_eq!((moved, sum), (RECORDS, copied), "round {round}");
        let (before, mut exported) = (moves.load(Ordering::Relaxed), Exported::default());
        state.export(&mut exported).await.unwrap();
        assert!(moves.load(Ordering::Relaxed) > before, "writes must go on during an export");
        let (moved, sum, read) = counted(exported.values.iter().map(|(key, value)| (key, &value[..])));
        assert_eq!((moved, sum), (RECORDS, read), "export {round}");
        assert!(read >= copied, "an export is not older than a copy that was made before it");
        let occupied = RedisStore::restore(config, &to).await.unwrap_err();
        assert_eq!(occupied.kind(), ErrorKind::Invalid);
    }
    stop.store(true, Ordering::Relaxed);
    writer.await.unwrap();
    // Nothing is left of the snapshots.
    assert_eq!(
        server.command(&["EXISTS", "{lkr}:snapshots", "{lkr}:kept:0", "{lkr}:kept:1"]).unwrap(),
        ":0\r\n"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn export_has_what_has_not_expired_and_ends_with_its_sink() {
    let Some((server, store)) = start().await else { return };
    let state = store.state();
    let steps: Vec<Write> =
        (0..RECORDS).map(|n| Write::put(key(n), Expect::Absent, "v".repeat(5_000))).collect();
    for step in steps.chunks(300) {
        state.apply(step.to_vec()).await.unwrap();
    }
    let short = Write::put_for("short", Expect::Any, "v", ms(30));
    let long = Write::put_for("long", Expect::Any, "v", ms(600_000));
    state.apply(vec![short, long]).await.unwrap();
    tokio::time::sleep(ms(60)).await;
    let mut exported = Exported::default();
    state.export(&mut exported).await.unwrap();
    assert_eq!(exported.values.len(), RECORDS + 1);
    assert!(exported.values.contains_key("long"));
    let mut full = Exported { limit: Some(1_000), ..Exported::default() };
    let error = state.export(&mut full).await.unwrap_err();
    assert!(error.to_string().contains("the sink is full"), "{error}");
    assert!(full.values.len() < RECORDS);
    assert_eq!(server.command(&["EXISTS", "{lkr}:snapshots", "{lkr}:kept:0"]).unwrap(), ":0\r\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_snapshot_is_refused_and_an_interrupted_restore_is_begun_again() {
    let Some((server, store)) = start().await else { return };
    store.state().apply((0..50).map(|n| Write::put(key(n), Expect::Absent, "v")).collect()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("copy");
    store.state().snapshot(&to).await.unwrap();
    let copy = RedisConfig { prefix: "copy".to_owned(), ..config(server.url()) };
    let file = std::fs::read_dir(&to).unwrap().next().unwrap().unwrap().path();
    let whole = std::fs::read(&file).unwrap();
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    std::fs::write(&file, damaged).unwrap();
    assert_eq!(RedisStore::restore(copy.clone(), &to).await.unwrap_err().kind(), ErrorKind::Corrupt);
    std::fs::write(&file, whole).unwrap();
    // As a restore leaves it that ends amid its work.
    server.command(&["HSET", "{copy}:meta", "restoring", "1"]).unwrap();
    server.command(&["ZADD", "{copy}:keys", "0", "rest"]).unwrap();
    let error = RedisStore::open(copy.clone(), None).await.unwrap_err();
    assert!(error.to_string().contains("restore"), "{error}");
    RedisStore::restore(copy.clone(), &to).await.unwrap();
    let records = open(copy).await.state().scan("", None, ScanOrder::Ascending, 100).await.unwrap();
    assert_eq!(records.len(), 50);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshot_that_fails_leaves_no_folder() {
    let Some(mut server) = RedisServer::start() else { return };
    let short = RedisConfig { write_timeout: ms(300), ..config(server.url()) };
    let state = open(RedisConfig { command_timeout: ms(300), ..short }).await.state();
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("copy");
    server.kill();
    assert_eq!(state.snapshot(&to).await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(!to.exists());
    server.restart();
    state.snapshot(&to).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshot_whose_reader_ended_is_cleared_away() {
    let Some((server, store)) = start().await else { return };
    let state = store.state();
    state.apply(vec![Write::put("a", Expect::Any, "old")]).await.unwrap();
    // A snapshot of everything whose lease ended in 1970.
    let register = "redis.call('HSET', KEYS[1], 0, string.rep('i', 16) .. struct.pack('>I8I8', 2^52, 1)) \
                    return redis.call('HSET', KEYS[2], 'a', 'kept')";
    server.command(&["EVAL", register, "2", "{lkr}:snapshots", "{lkr}:kept:0"]).unwrap();
    state.apply(vec![Write::put("a", Expect::Any, "new")]).await.unwrap();
    assert_eq!(server.command(&["EXISTS", "{lkr}:snapshots", "{lkr}:kept:0"]).unwrap(), ":0\r\n");
}
