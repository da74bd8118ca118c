//! Opening a store: the lock, the format, and the state after a restart.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

#[path = "support/common.rs"]
mod common;

use std::{fs, path::Path, time::Duration};

use common::{DIMS, name, open, point, search, spec, vector, write_rows};
use half::f16;
use lkr_domain::TaskId;
use lkr_state::{Expect, StateStore, StateStoreExt, TaskQueue, Write};
use lkr_store_lmdb::{ErrorKind, LmdbOptions, LmdbStore, StoreCheck};
use lkr_vectors::{Filter, Include, Point, QueryVector, VectorStore};
use rand::{SeedableRng, rngs::StdRng};

const LEASE: Duration = Duration::from_secs(3_600);

fn refusal(folder: &Path) -> (ErrorKind, String) {
    let error = LmdbStore::open(folder, LmdbOptions::default()).unwrap_err();
    (error.kind(), error.to_string())
}

#[tokio::test]
async fn second_open_of_a_locked_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let (kind, line) = refusal(folder.path());
    assert_eq!(kind, ErrorKind::Locked);
    assert_eq!(
        line,
        format!(
            "open: {} is in use by another process, or by this one, which has opened it before",
            folder.path().display()
        )
    );
    let queue = store.queue();
    drop(store);
    assert_eq!(refusal(folder.path()).0, ErrorKind::Locked, "a handle keeps the store open");
    drop(queue);
    open(folder.path());
}

/// Without this lock, `mdb_stat` initialises the mutexes of a store in use again, and its writers wait for ever.
#[cfg(target_os = "linux")]
#[test]
fn open_store_holds_the_lock_that_tells_other_programs_of_lmdb() {
    use std::os::unix::fs::MetadataExt as _;

    let folder = tempfile::tempdir().unwrap();
    // The first opening makes the file.
    for _ in 0..2 {
        let store = open(folder.path());
        let inode = fs::metadata(folder.path().join("kb/lock.mdb")).unwrap().ino();
        let locks = fs::read_to_string("/proc/locks").unwrap();
        let is_held = |line: &str| line.contains(" READ ") && line.ends_with(&format!(":{inode} 0 0"));
        assert!(locks.lines().any(is_held), "{locks}");
        drop(store);
    }
}

/// Pages that the system reads around a row take the place of others if the store does not fit into memory.
#[cfg(target_os = "linux")]
#[test]
fn nothing_is_read_around_the_rows_of_a_large_store() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()));
    let data = folder.path().join("kb/data.mdb");
    let is_read_at_random = |read_ahead_below| {
        let mut options = LmdbOptions::default();
        options.read_ahead_below = read_ahead_below;
        let _store = LmdbStore::open(folder.path(), options).unwrap();
        let maps = fs::read_to_string("/proc/self/smaps").unwrap();
        let of_data = maps.lines().skip_while(|line| !line.ends_with(&data.display().to_string()));
        let flags = of_data.filter_map(|line| line.strip_prefix("VmFlags:")).next().unwrap();
        flags.split_whitespace().any(|flag| flag == "rr")
    };
    let bytes = fs::metadata(&data).unwrap().len();
    assert!(!is_read_at_random(bytes));
    assert!(is_read_at_random(bytes - 1));
}

/// What is written to a folder that was removed is gone once the process ends, and another store may be at its path.
#[cfg(unix)]
#[tokio::test]
async fn store_whose_folder_is_moved_takes_no_writes_until_it_is_back() {
    let parent = tempfile::tempdir().unwrap();
    let [folder, elsewhere] = ["store", "elsewhere"].map(|name| parent.path().join(name));
    let store = open(&folder);
    let state = store.state();
    let put = async |key: &str| state.apply(vec![Write::put(key, Expect::Absent, "value")]).await;
    const FILES: [&str; 3] = ["lock", "opened", "kb/data.mdb"];
    let replace = || {
        fs::create_dir_all(folder.join("kb")).unwrap();
        for file in FILES {
            fs::write(folder.join(file), "another's").unwrap();
        }
    };
    put("before").await.unwrap();
    fs::rename(&folder, &elsewhere).unwrap();
    for is_replaced in [false, true] {
        if is_replaced {
            replace();
        }
        for failure in
            [put("away").await.err(), state.health().await.err(), store.queue().health().await.err()]
        {
            let failure = failure.unwrap();
            assert_eq!(failure.kind(), lkr_state::ErrorKind::Unavailable);
            assert!(failure.to_string().contains("was moved, removed or replaced"), "{failure}");
        }
        assert!(store.vectors().health().await.is_err());
        assert!(state.get("before").await.unwrap().is_some(), "it can still be read");
    }
    fs::remove_dir_all(&folder).unwrap();
    fs::rename(&elsewhere, &folder).unwrap();
    put("after").await.unwrap();
    state.health().await.unwrap();
    // One that is closed while it is elsewhere leaves what is at its path alone.
    fs::rename(&folder, &elsewhere).unwrap();
    replace();
    drop((state, store));
    assert_eq!(FILES.map(|file| fs::read(folder.join(file)).unwrap()), FILES.map(|_| b"another's".to_vec()));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), FILES.len());
    let moved = open(&elsewhere).state();
    for (key, is_there) in [("before", true), ("away", false), ("after", true)] {
        assert_eq!(moved.get(key).await.unwrap().is_some(), is_there, "{key}");
    }
}

#[tokio::test]
async fn reopened_store_keeps_all_data_and_frees_leases() {
    let folder = tempfile::tempdir().unwrap();
    let (points, mut rng) = (name("points"), StdRng::seed_from_u64(1));
    let expected: Vec<_> = (0..50).map(|n| point(n, &mut rng)).collect();
    let tasks = [TaskId::new(), TaskId::new()];
    let store = open(folder.path());
    store.vectors().ensure(&spec(&points)).await.unwrap();
    store.vectors().switch(&[(name("alias"), points.clone())]).await.unwrap();
    store.vectors().upsert(&points, expected.clone()).await.unwrap();
    store.state().apply(vec![Write::put("key", Expect::Absent, "value")]).await.unwrap();
    let version = store.state().get("key").await.unwrap().unwrap().version;
    for task in tasks {
        store.queue().push(task, Duration::ZERO).await.unwrap();
    }
    let claim = store.queue().claim(LEASE, Duration::ZERO).await.unwrap().unwrap();
    assert_eq!(claim.task, tasks[0]);
    drop(store);

    let store = open(folder.path());
    let page = store.vectors().scroll(&name("alias"), &Filter::all(), None, 100, Include::All).await.unwrap();
    assert_eq!(page.points, expected);
    assert_eq!(store.state().get("key").await.unwrap().unwrap().version, version);
    store.state().apply(vec![Write::delete("key", Expect::Any)]).await.unwrap();
    store.state().apply(vec![Write::put("key", Expect::Absent, "value")]).await.unwrap();
    assert!(store.state().get("key").await.unwrap().unwrap().version > version, "versions do not come back");
    // The lease ended with its process: the task is claimable at once, in its former position, with another token.
    assert!(store.queue().finish(&claim).await.is_err());
    let again = store.queue().claim(LEASE, Duration::ZERO).await.unwrap().unwrap();
    assert_eq!(again.task, tasks[0]);
    assert_ne!(again.token, claim.token);
    assert_eq!(store.queue().claim(LEASE, Duration::ZERO).await.unwrap().unwrap().task, tasks[1]);
}

/// The clock may have been set back while the store was closed, and then the end of a delay would be far away.
#[tokio::test]
async fn delays_end_when_the_store_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let [retried, delayed, never] = [TaskId::new(), TaskId::new(), TaskId::new()];
    let store = open(folder.path());
    store.queue().push(retried, Duration::ZERO).await.unwrap();
    let claim = store.queue().claim(LEASE, Duration::ZERO).await.unwrap().unwrap();
    store.queue().retry(&claim, LEASE).await.unwrap();
    store.queue().push(delayed, LEASE / 2).await.unwrap();
    store.queue().push(never, Duration::MAX).await.unwrap();
    assert_eq!(store.queue().claim(LEASE, Duration::ZERO).await.unwrap(), None);
    drop(store);

    let queue = open(folder.path()).queue();
    for task in [delayed, retried] {
        assert_eq!(queue.claim(LEASE, Duration::ZERO).await.unwrap().unwrap().task, task);
    }
    assert_eq!(queue.claim(LEASE, Duration::ZERO).await.unwrap(), None);
}

#[tokio::test]
async fn store_with_another_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()));
    for (format, said) in [
        (1_u32, "has format 1, which an earlier version wrote; this version reads format 6"),
        (7, "has format 7, which a newer version wrote; this version reads format 6"),
    ] {
        set_format(folder.path(), format);
        let (kind, line) = refusal(folder.path());
        assert_eq!(kind, ErrorKind::OtherFormat);
        assert!(line.ends_with(said), "{line}");
    }
}

#[tokio::test]
async fn foreign_data_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("kb")).unwrap();
    fs::write(folder.path().join("kb/data.mdb"), "text ".repeat(10_000)).unwrap();
    assert_eq!(refusal(folder.path()).0, ErrorKind::Corrupt);
}

/// Reads of a truncated data file return an error or the stored data, and the process survives.
#[tokio::test]
async fn truncated_store_returns_an_error_and_does_not_crash() {
    let folder = tempfile::tempdir().unwrap();
    let (points, mut rng) = (name("points"), StdRng::seed_from_u64(1));
    let expected: Vec<_> = (0..300).map(|n| point(n, &mut rng)).collect();
    let store = open(folder.path());
    store.vectors().ensure(&spec(&points)).await.unwrap();
    store.vectors().upsert(&points, expected.clone()).await.unwrap();
    drop(store);
    let file_bytes = fs::read(folder.path().join("kb/data.mdb")).unwrap();
    let mut errors = 0;
    for share in 1..8 {
        let cut = tempfile::tempdir().unwrap();
        fs::create_dir(cut.path().join("kb")).unwrap();
        fs::write(cut.path().join("kb/data.mdb"), &file_bytes[..file_bytes.len() * share / 8]).unwrap();
        let found = match LmdbStore::open(cut.path(), common::exact()) {
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                errors += 1;
                continue;
            }
            Ok(store) => store.vectors().scroll(&points, &Filter::all(), None, 1_000, Include::All).await,
        };
        match found {
            Ok(page) => assert_eq!(page.points, expected),
            Err(error) => {
                assert_eq!(error.kind(), lkr_vectors::ErrorKind::Corrupt, "{error}");
                errors += 1;
            }
        }
    }
    assert!(errors > 0);
}

/// The start of this version changes one record, so that earlier versions refuse the store. Rows of format 3, which have four
/// bytes for each value of a vector, are read, checked and recognised as what they are.
#[tokio::test]
async fn store_of_format_3_is_opened_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let (points, mut rng) = (name("points"), StdRng::seed_from_u64(1));
    let expected: Vec<_> = (0..50).map(|n| point(n, &mut rng)).collect();
    let store = open(folder.path());
    store.vectors().ensure(&spec(&points)).await.unwrap();
    store.vectors().upsert(&points, expected.clone()).await.unwrap();
    drop(store);
    undo_half_precision(folder.path());
    set_format(folder.path(), 3);

    let check = StoreCheck::new(folder.path(), common::exact()).unwrap();
    assert!(check.findings().is_empty(), "{:?}", check.findings());
    let store = check.into_store().unwrap();
    let all = async |store: LmdbStore| {
        store.vectors().scroll(&points, &Filter::all(), None, 100, Include::All).await.unwrap().points
    };
    assert_eq!(all(store).await, expected);
    assert_eq!(stored_format(folder.path()), 3, "the check changed nothing");

    drop(LmdbStore::open(folder.path(), common::exact()).unwrap());
    assert_eq!(stored_format(folder.path()), 6);
    let lengths = vector_lengths(folder.path());
    assert_eq!(lengths, [8 + 4 * DIMS; 50], "no row was written");
    let store = LmdbStore::open(folder.path(), common::exact()).unwrap();
    for point in &expected {
        let query = QueryVector::Dense(point.dense.clone().unwrap());
        let best = search(&store.vectors(), &points, query, &Filter::all(), 1).await;
        assert_eq!((best[0].id, best[0].score > 0.999_999), (point.id, true));
    }
    store.vectors().upsert(&points, expected.clone()).await.unwrap();
    let changed = vector(&mut rng);
    let changed = [Point { dense: Some(changed), ..expected[0].clone() }, expected[1].clone()];
    store.vectors().upsert(&points, changed.to_vec()).await.unwrap();
    let found = store.vectors().get(&points, &[expected[0].id], Include::All).await.unwrap();
    assert_eq!(found[0].as_ref(), Some(&changed[0]));
    drop(store);
    let mut lengths = vector_lengths(folder.path());
    assert_eq!(lengths.pop(), Some(8 + 2 * DIMS), "the one that changed");
    assert_eq!(lengths, [8 + 4 * DIMS; 49]);
    assert!(StoreCheck::new(folder.path(), common::exact()).unwrap().findings().is_empty());
}

/// Gives all vectors the form of format 3.
fn undo_half_precision(folder: &Path) {
    write_rows(folder, "dense", |table, txn| {
        let rows = table.iter(txn).unwrap().map(|row| row.unwrap());
        let rows: Vec<_> = rows.map(|(key, row)| (key.to_vec(), row.to_vec())).collect();
        for (key, row) in rows {
            let values = row[8..].as_chunks::<2>().0.iter().map(|value| f16::from_le_bytes(*value).to_f32());
            let values = values.flat_map(f32::to_le_bytes);
            table
                .put(txn, &key, &sealed(&row[4..8].iter().copied().chain(values).collect::<Vec<_>>()))
                .unwrap();
        }
    });
}

/// The lengths of the rows of vectors, ordered by the internal ids of their points.
fn vector_lengths(folder: &Path) -> Vec<usize> {
    let mut lengths = Vec::new();
    write_rows(folder, "dense", |table, txn| {
        lengths.extend(table.iter(txn).unwrap().map(|row| row.unwrap().1.len()));
    });
    lengths
}

fn set_format(folder: &Path, format: u32) {
    put(folder, "meta", b"format", &sealed(&format.to_le_bytes()));
}

fn stored_format(folder: &Path) -> u32 {
    let mut format = None;
    write_rows(folder, "meta", |table, txn| {
        format =
            table.get(txn, b"format").unwrap().map(|row| u32::from_le_bytes(row[4..].try_into().unwrap()));
    });
    format.unwrap()
}

/// A row with its checksum.
fn sealed(row: &[u8]) -> Vec<u8> {
    [&crc_fast::crc32_iscsi(row).to_le_bytes()[..], row].concat()
}

/// Writes a row without the store.
fn put(folder: &Path, table: &str, key: &[u8], value: &[u8]) {
    write_rows(folder, table, |table, txn| table.put(txn, key, value).unwrap());
}
