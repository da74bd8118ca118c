//! On a full disk, writes return an error, reads continue, no acknowledged write is lost, and writes resume later.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests"
)]

#[path = "support/common.rs"]
mod common;

use std::{
    error::Error as StdError,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use common::{doc, id, name, point, search, spec};
use lkr_domain::TaskId;
use lkr_state::{Expect, StateStore, StateStoreExt, TaskQueue, Write};
use lkr_store_lmdb::LmdbStore;
use lkr_vectors::{Condition, ErrorKind, Filter, Include, Point, QueryVector, VectorStore};
use rand::{SeedableRng, rngs::StdRng};

/// A file system of a few megabytes.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None` if this user may not mount.
    fn mount(at: &Path) -> Option<Self> {
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=24m", "tmpfs"]).arg(at).output();
        let reason = match mounted {
            Ok(output) if output.status.success() => return Some(Self(at.to_owned())),
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => error.to_string(),
        };
        if is_root() {
            lkr_test_support::skip(&format!("mount: {reason}"));
        } else {
            lkr_test_support::note_skip(&format!("mount: {reason}"));
        }
        None
    }
}

fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.starts_with("Uid:\t0\t"))
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_disk_is_reported_and_writes_resume() {
    let folder = tempfile::tempdir().unwrap();
    let Some(_disk) = SmallDisk::mount(folder.path()) else { return };
    let (dir, ballast) = (folder.path().join("store"), folder.path().join("ballast"));
    fs::write(&ballast, vec![1; 8 << 20]).unwrap();
    let store = LmdbStore::open(&dir, common::options()).unwrap();
    let (vectors, state, queue) = (store.vectors(), store.state(), store.queue());
    let (name, mut rng) = (name("points"), StdRng::seed_from_u64(5));
    vectors.ensure(&spec(&name)).await.unwrap();

    // Filled until the store reports it, twice, so that a write fails midway too.
    let mut kept: Vec<Point> = Vec::new();
    let mut next = 0;
    for _ in 0..2 {
        let error = loop {
            let batch: Vec<Point> = (next..next + 40).map(|n| point(n, &mut rng)).collect();
            next += 40;
            match vectors.upsert(&name, batch.clone()).await {
                Ok(()) => kept.extend(batch),
                Err(error) => break error,
            }
            assert!(next < 1_000_000, "the disk does not fill");
        };
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.is_retryable());
        assert!(is_full_disk(&error), "{error:?}");
        verify(&vectors, &name, &kept).await;
    }
    // Records and the queue report it as well while there is no space.
    let value = "x".repeat(1 << 20);
    let refused = state.apply(vec![Write::put("large", Expect::Any, value.clone())]).await.unwrap_err();
    assert_eq!(refused.kind(), lkr_state::ErrorKind::Unavailable, "{refused}");
    assert!(is_full_disk(&refused), "{refused:?}");
    assert_eq!(state.get("large").await.unwrap(), None);
    vectors.health().await.unwrap();

    fs::remove_file(ballast).unwrap();
    let task = TaskId::new();
    state.apply(vec![Write::put("large", Expect::Any, value)]).await.unwrap();
    queue.push(task, Duration::ZERO).await.unwrap();
    let gone = Condition::Docs(vec![doc(0), doc(1)]);
    assert_eq!(vectors.delete(&name, &Filter::only(gone)).await.unwrap(), 20);
    kept.retain(|point| point.origin.doc_id != doc(0) && point.origin.doc_id != doc(1));
    let batch: Vec<Point> = (next..next + 40).map(|n| point(n, &mut rng)).collect();
    vectors.upsert(&name, batch.clone()).await.unwrap();
    kept.extend(batch);
    verify(&vectors, &name, &kept).await;
    drop((store, vectors, state, queue));

    let store = LmdbStore::open(&dir, common::exact()).unwrap();
    verify(&store.vectors(), &name, &kept).await;
    assert!(store.state().get("large").await.unwrap().is_some());
    assert_eq!(store.queue().len().await.unwrap(), 1);
}

/// A restored store has no reader table. LMDB writes to it through its map, which would end the process.
#[test]
fn opening_a_store_without_a_reader_table_on_a_full_disk_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let Some(_disk) = SmallDisk::mount(folder.path()) else { return };
    let (dir, ballast) = (folder.path().join("store"), folder.path().join("ballast"));
    drop(LmdbStore::open(&dir, common::options()).unwrap());
    fs::remove_file(dir.join("kb/lock.mdb")).unwrap();
    let filled = fs::write(&ballast, vec![1; 32 << 20]).unwrap_err();
    assert_eq!(filled.kind(), io::ErrorKind::StorageFull, "{filled}");

    for _ in 0..2 {
        let refused = LmdbStore::open(&dir, common::options()).unwrap_err();
        assert!(is_full_disk(&refused), "{refused:?}");
    }
    fs::remove_file(ballast).unwrap();
    drop(LmdbStore::open(&dir, common::options()).unwrap());
}

/// The disk accepts part of a large record, which LMDB reports as an input/output error.
#[tokio::test]
async fn partial_large_write_is_reported_as_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let Some(_disk) = SmallDisk::mount(folder.path()) else { return };
    let state = LmdbStore::open(&folder.path().join("store"), common::options()).unwrap().state();
    let value = "x".repeat(1 << 20);
    let mut kept = Vec::new();
    let refused = loop {
        let key = format!("large/{}", kept.len());
        match state.apply(vec![Write::put(key.as_str(), Expect::Any, value.clone())]).await {
            Ok(_) => kept.push(key),
            Err(error) => break error,
        }
        assert!(kept.len() < 1_000, "the disk does not fill");
    };
    assert_eq!(refused.kind(), lkr_state::ErrorKind::Unavailable, "{refused}");
    assert!(is_full_disk(&refused), "{refused:?}");
    for key in kept {
        assert!(state.get(&key).await.unwrap().is_some());
    }
}

/// Whether a full disk is among the sources of an error.
fn is_full_disk(error: &(dyn StdError + 'static)) -> bool {
    std::iter::successors(Some(error), |error| (*error).source()).any(|error| {
        let error = error.downcast_ref::<io::Error>();
        error.is_some_and(|error| error.kind() == io::ErrorKind::StorageFull)
    })
}

/// Every point is stored unchanged and is found by both legs.
async fn verify(vectors: &dyn VectorStore, name: &lkr_vectors::Collection, kept: &[Point]) {
    assert_eq!(vectors.count(name, &Filter::all()).await.unwrap(), kept.len() as u64);
    let ids: Vec<_> = kept.iter().map(|point| point.id).collect();
    let found = vectors.get(name, &ids, Include::All).await.unwrap();
    assert!(found.iter().zip(kept).all(|(found, kept)| found.as_ref() == Some(kept)));
    for point in kept.iter().step_by(97) {
        let only_this = Filter::only(Condition::Ids(vec![point.id]));
        for vector in
            [QueryVector::Dense(point.dense.clone().unwrap()), QueryVector::Sparse(point.sparse.clone())]
        {
            let hits = search(vectors, name, vector, &only_this, 1).await;
            assert_eq!(hits[0].id, point.id);
        }
    }
    assert_eq!(vectors.get(name, &[id(u32::MAX)], Include::All).await.unwrap(), [None]);
}
