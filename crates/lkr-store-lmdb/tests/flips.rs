//! Opens a killed store after bytes of its clusters were flipped. A child process opens it, because LMDB may end the process.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

#[path = "support/common.rs"]
mod common;

use std::{
    env, fs,
    path::Path,
    process::{Command, Stdio},
};

use common::{built, name, open, options, point, search, spec};
use lkr_store_lmdb::LmdbStore;
use lkr_vectors::{Filter, Include, QueryVector, VectorStore};
use rand::{RngExt, SeedableRng, rngs::StdRng};

/// The variable with the folder of the child process.
const FOLDER: &str = "LKR_FLIPS_FOLDER";
const POINTS: u32 = 600;
const ROUNDS: u64 = 30;

/// Opens the folder, searches, lets the clusters be rebuilt if necessary, and searches again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    let Some(folder) = env::var_os(FOLDER) else { return };
    let store = LmdbStore::open(folder.as_ref(), options()).unwrap();
    let vectors = store.vectors();
    for _ in 0..2 {
        let page = vectors.scroll(&name("points"), &Filter::all(), None, POINTS as usize, Include::All).await;
        let points = page.unwrap().points;
        assert_eq!(points.len(), POINTS as usize);
        let mut found = 0;
        for point in points.iter().step_by(5) {
            let vector = QueryVector::Dense(point.dense.clone().unwrap());
            let hits = search(&vectors, &name("points"), vector, &Filter::all(), 3).await;
            // Hits are scored by stored vectors, not by clusters.
            found += usize::from(hits.first().is_some_and(|hit| hit.score > 0.999));
        }
        assert!(found > 100, "{found} of 120");
        built(&vectors, &name("points")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flipped_bytes_in_unclosed_clusters_do_not_end_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    store.vectors().ensure(&spec(&name("points"))).await.unwrap();
    let mut rng = StdRng::seed_from_u64(11);
    let points = (0..POINTS).map(|n| point(n, &mut rng)).collect();
    store.vectors().upsert(&name("points"), points).await.unwrap();
    built(&store.vectors(), &name("points")).await;
    for round in 0..ROUNDS {
        let copied = tempfile::tempdir().unwrap();
        copy(folder.path(), copied.path());
        let clusters = fs::read_dir(copied.path().join("clusters")).unwrap().next().unwrap().unwrap().path();
        // The state of the folder while it is being written to.
        fs::remove_file(clusters.join("seal")).ok();
        let data = clusters.join("data.mdb");
        let mut bytes = fs::read(&data).unwrap();
        for _ in 0..1 << (round % 6) {
            // Anywhere, or in references to other pages.
            let at = match round % 2 {
                0 => rng.random_range(0..bytes.len()),
                _ => rng.random_range(0..bytes.len() / 4_096) * 4_096 + rng.random_range(0..64),
            };
            bytes[at] ^= 1 << rng.random_range(0..8);
        }
        fs::write(&data, bytes).unwrap();
        let mut child = Command::new(env::current_exe().unwrap());
        child.args(["--exact", "child", "--nocapture"]).env(FOLDER, copied.path());
        let output = child.stdout(Stdio::null()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "round {round}: {}\n{stderr}", output.status);
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}
