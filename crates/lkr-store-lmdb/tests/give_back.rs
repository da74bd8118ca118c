//! The space of deleted rows goes back to the file system while the store is used.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "support/common.rs"]
mod common;

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::Path,
    time::{Duration, Instant},
};

use common::{exact, name, point, search, spec};
use lkr_state::{Expect, Key, StateStore, Write};
use lkr_store_lmdb::{LmdbOptions, LmdbStore, StoreCheck};
use lkr_vectors::{Filter, QueryVector, VectorStore};
use rand::{SeedableRng, rngs::StdRng};

/// Values of 64 kB in all 256 records.
const RECORDS: usize = 256;
const VALUE: usize = 64_000;

fn options() -> LmdbOptions {
    let mut options = exact();
    options.spare_bytes = 0;
    options
}

fn key(number: usize) -> Key {
    format!("record/{number}")
}

fn taken(folder: &Path) -> u64 {
    fs::metadata(folder.join("kb/data.mdb")).unwrap().blocks() * 512
}

#[tokio::test]
async fn deleted_records_leave_no_space_while_others_are_written_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = LmdbStore::open(folder.path(), options()).unwrap();
    let (state, vectors) = (store.state(), store.vectors());
    let mut rng = StdRng::seed_from_u64(3);
    let points: Vec<_> = (0..500).map(|n| point(n, &mut rng)).collect();
    vectors.ensure(&spec(&name("points"))).await.unwrap();
    vectors.upsert(&name("points"), points).await.unwrap();
    let vector = QueryVector::Dense(common::vector(&mut rng));
    let hits = search(&vectors, &name("points"), vector.clone(), &Filter::all(), 500).await;
    assert_eq!(hits.len(), 500);
    for number in 0..RECORDS {
        let write = Write::put(key(number), Expect::Any, vec![number as u8; VALUE]);
        state.apply(vec![write]).await.unwrap();
    }
    let full = taken(folder.path());
    assert!(full > (RECORDS * VALUE) as u64, "{full}");
    for number in 0..RECORDS {
        state.apply(vec![Write::delete(key(number), Expect::Any)]).await.unwrap();
    }
    // Ten seconds pass between two looks for free space.
    let started = Instant::now();
    let mut number = 0;
    while taken(folder.path()) > full / 4 {
        if started.elapsed() > Duration::from_secs(60) {
            assert!(taken(folder.path()) >= full, "{} of {full} bytes are left", taken(folder.path()));
            lkr_test_support::skip("the file system of temporary files has no holes");
            return;
        }
        number += 1;
        let write = Write::put(key(number % 8), Expect::Any, number.to_string());
        state.apply(vec![write]).await.unwrap();
        assert_eq!(search(&vectors, &name("points"), vector.clone(), &Filter::all(), 500).await, hits);
    }
    drop((state, vectors, store));
    let check = StoreCheck::new(folder.path(), options()).unwrap();
    let findings: Vec<_> = check.findings().iter().map(|finding| finding.what.clone()).collect();
    assert_eq!(findings, Vec::<String>::new());
}
