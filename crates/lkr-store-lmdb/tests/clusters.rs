//! Clusters find the same points as the exact scan: after updates, deletions and damage to its folder.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

#[path = "support/common.rs"]
mod common;

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use common::{built, id, name, open, point, search, spec, vector};
use lkr_store_lmdb::{LmdbStore, LmdbVectors, StoreCheck};
use lkr_vectors::{Collection, Condition, Filter, MemoryVectors, Point, QueryVector, VectorStore};
use rand::{RngExt, SeedableRng, rngs::StdRng};

const LIMIT: usize = 10;

/// A modification of a folder of clusters.
type Damage = fn(&Path);

/// A store with clusters, and the expected points.
struct Case {
    vectors: Option<LmdbVectors>,
    folder: tempfile::TempDir,
    reference: MemoryVectors,
    name: Collection,
    rng: StdRng,
}

impl Case {
    async fn new(points: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (reference, name) = (MemoryVectors::new(), name("points"));
        reference.ensure(&spec(&name)).await.unwrap();
        let mut case = Self { folder, vectors: None, reference, name, rng: StdRng::seed_from_u64(3) };
        case.open();
        case.vectors().ensure(&spec(&case.name)).await.unwrap();
        case.add(0..points).await;
        built(case.vectors(), &case.name).await;
        case
    }

    fn open(&mut self) {
        self.vectors = Some(open(self.folder.path()).vectors());
    }

    fn close(&mut self) {
        self.vectors = None;
    }

    fn vectors(&self) -> &LmdbVectors {
        self.vectors.as_ref().unwrap()
    }

    async fn add(&mut self, numbers: std::ops::Range<u32>) {
        let points: Vec<Point> = numbers.map(|n| point(n, &mut self.rng)).collect();
        for batch in points.chunks(250) {
            self.vectors().upsert(&self.name, batch.to_vec()).await.unwrap();
            self.reference.upsert(&self.name, batch.to_vec()).await.unwrap();
        }
    }

    async fn delete(&mut self, numbers: impl Iterator<Item = u32>) {
        let gone = Filter::only(Condition::Ids(numbers.map(id).collect()));
        self.vectors().delete(&self.name, &gone).await.unwrap();
        self.reference.delete(&self.name, &gone).await.unwrap();
    }

    /// The share of the exact results that was found. Found points must exist and have exact cosines.
    async fn recall(&mut self, filter: &Filter) -> f64 {
        let (mut found, mut expected) = (0, 0);
        for _ in 0..60 {
            let vector = QueryVector::Dense(vector(&mut self.rng));
            let hits = search(self.vectors(), &self.name, vector.clone(), filter, LIMIT).await;
            let exact = search(&self.reference, &self.name, vector.clone(), filter, 100_000).await;
            assert_eq!(hits.len(), exact.len().min(LIMIT));
            for hit in &hits {
                assert!(exact.contains(hit), "{hit:?}");
            }
            let best: BTreeSet<_> = exact.iter().take(LIMIT).map(|hit| hit.id).collect();
            found += hits.iter().filter(|hit| best.contains(&hit.id)).count();
            expected += best.len();
        }
        f64::from(found as u32) / f64::from(expected as u32)
    }

    async fn check(&mut self) {
        let fifth = Condition::Tag { key: "fifth".to_owned(), any: vec!["1".to_owned(), "4".to_owned()] };
        for filter in [Filter::all(), Filter::only(fifth.clone()), Filter::all().and_not(fifth)] {
            let recall = self.recall(&filter).await;
            assert!(recall >= 0.95, "{recall} for {filter:?}");
        }
    }

    fn folder_of_clusters(&self) -> PathBuf {
        let mut folders = fs::read_dir(self.folder.path().join("clusters")).unwrap();
        folders.next().unwrap().unwrap().path()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_after_churn_still_find_the_nearest() {
    let mut case = Case::new(2_000).await;
    case.check().await;
    let mut next = 2_000;
    for _ in 0..3 {
        let half: Vec<u32> = (0..next).filter(|_| case.rng.random_bool(0.5)).collect();
        case.delete(half.into_iter()).await;
        case.check().await;
        case.add(next..next + 1_000).await;
        next += 1_000;
        case.check().await;
        built(case.vectors(), &case.name).await;
        case.check().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_after_reopening_are_reused() {
    let mut case = Case::new(800).await;
    case.close();
    let folder = case.folder_of_clusters();
    assert!(folder.join("seal").exists(), "sealed when closed");
    case.open();
    built(case.vectors(), &case.name).await;
    case.check().await;
    assert_eq!(case.folder_of_clusters(), folder, "not built anew");
    // Written to and closed again.
    case.add(800..1_000).await;
    built(case.vectors(), &case.name).await;
    case.close();
    case.open();
    built(case.vectors(), &case.name).await;
    case.check().await;
    assert_eq!(case.folder_of_clusters(), folder);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_that_cannot_be_opened_at_first_are_reused_later() {
    let mut case = Case::new(800).await;
    case.close();
    let folder = case.folder_of_clusters();
    // Each session writes a mark to the folder, by way of a file of this name. A folder in its place fails that, as a full disk does.
    let obstacle = folder.join("lineage.partial");
    fs::create_dir(&obstacle).unwrap();
    case.open();
    // Searches wait until the first attempt has failed, and scan all vectors then.
    case.check().await;
    fs::remove_dir(&obstacle).unwrap();
    built(case.vectors(), &case.name).await;
    case.check().await;
    assert_eq!(case.folder_of_clusters(), folder, "not built anew");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_damaged_between_runs_are_rebuilt() {
    let mut case = Case::new(800).await;
    let damages: [(&str, Damage); 9] = [
        ("the folder is gone", |folder| fs::remove_dir_all(folder).unwrap()),
        ("all folders are gone", |folder| fs::remove_dir_all(folder.parent().unwrap()).unwrap()),
        ("half the file is gone", |folder| resize(folder, |length| length / 2)),
        ("the last byte is gone", |folder| resize(folder, |length| length - 1)),
        ("the file is empty", |folder| resize(folder, |_| 0)),
        ("one bit in each page is flipped", |folder| flip(folder, 4_096)),
        ("one bit is flipped", |folder| flip(folder, u64::MAX)),
        ("the file is something else", |folder| fs::write(folder.join("data.mdb"), "text").unwrap()),
        ("the mark is something else", |folder| fs::write(folder.join("lineage"), "text").unwrap()),
    ];
    for (what, damage) in damages {
        case.close();
        let before = case.folder_of_clusters();
        damage(&before);
        case.open();
        case.check().await;
        let replaced = async {
            while before.exists() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_mins(1), replaced).await;
        assert!(waited.is_ok(), "the folder is still used when {what}");
        built(case.vectors(), &case.name).await;
        let recall = case.recall(&Filter::all()).await;
        assert!(recall >= 0.95, "{recall} when {what}");
    }
}

fn resize(folder: &Path, to: fn(u64) -> u64) {
    let file = File::options().write(true).open(folder.join("data.mdb")).unwrap();
    file.set_len(to(file.metadata().unwrap().len())).unwrap();
}

/// Flips one bit in each `part` bytes of the file.
fn flip(folder: &Path, part: u64) {
    let mut file = File::options().read(true).write(true).open(folder.join("data.mdb")).unwrap();
    let length = file.metadata().unwrap().len();
    let mut at = length.min(part) / 2;
    while at < length {
        let mut byte = [0];
        file.seek(SeekFrom::Start(at)).unwrap();
        file.read_exact(&mut byte).unwrap();
        file.seek(SeekFrom::Start(at)).unwrap();
        file.write_all(&[byte[0] ^ 4]).unwrap();
        at = at.saturating_add(part).saturating_add(7);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_of_another_state_of_the_store_are_not_used() {
    let mut case = Case::new(500).await;
    let copies = tempfile::tempdir().unwrap();
    let copy = copies.path().join("copy");
    case.vectors().snapshot(&copy).await.unwrap();
    // The store continues and assigns ids that the copy will assign to other points once it replaces the store.
    let mut rng = StdRng::seed_from_u64(4);
    for _ in 0..3 {
        let points: Vec<Point> = (500..700).map(|n| point(n, &mut rng)).collect();
        case.vectors().upsert(&case.name, points).await.unwrap();
    }
    built(case.vectors(), &case.name).await;
    case.close();
    fs::remove_dir_all(case.folder.path().join("kb")).unwrap();
    fs::rename(copy.join("kb"), case.folder.path().join("kb")).unwrap();
    case.open();
    case.add(500..900).await;
    case.check().await;
    built(case.vectors(), &case.name).await;
    case.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_collection_removes_its_clusters() {
    let case = Case::new(500).await;
    case.vectors().drop_collection(&case.name).await.unwrap();
    let other = name("other");
    case.vectors().ensure(&spec(&other)).await.unwrap();
    let mut rng = StdRng::seed_from_u64(9);
    let points: Vec<Point> = (0..300).map(|n| point(n, &mut rng)).collect();
    case.vectors().upsert(&other, points.clone()).await.unwrap();
    built(case.vectors(), &other).await;
    let vector = QueryVector::Dense(points[7].dense.clone().unwrap());
    assert_eq!(search(case.vectors(), &other, vector, &Filter::all(), 1).await[0].id, id(7));
}

/// Nothing opens the clusters of such stores, so their searches must not wait for that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stores_without_a_builder_scan() {
    let mut case = Case::new(500).await;
    case.close();
    let mut options = common::options();
    options.build_threads = 0;
    case.vectors = Some(LmdbStore::open(case.folder.path(), options).unwrap().vectors());
    assert_eq!(case.recall(&Filter::all()).await, 1.0);
    case.close();
    let check = StoreCheck::new(case.folder.path(), common::options()).unwrap();
    case.vectors = Some(check.into_store().unwrap().vectors());
    assert_eq!(case.recall(&Filter::all()).await, 1.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshot_without_clusters_opens_and_rebuilds_them() {
    let mut case = Case::new(500).await;
    let copies = tempfile::tempdir().unwrap();
    case.vectors().snapshot(&copies.path().join("copy")).await.unwrap();
    let copy = LmdbStore::open(&copies.path().join("copy"), common::options()).unwrap();
    case.vectors = Some(copy.vectors());
    case.check().await;
    built(case.vectors(), &case.name).await;
    case.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn graphs_of_earlier_versions_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()));
    let graph = folder.path().join("graph");
    for is_folder in [true, false] {
        if is_folder {
            fs::create_dir_all(graph.join("12")).unwrap();
        }
        fs::write(if is_folder { graph.join("12/data.mdb") } else { graph.clone() }, "a graph").unwrap();
        let store = open(folder.path());
        for _ in 0..200 {
            if !graph.exists() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(!graph.exists());
        drop(store);
    }
}

/// Vectors without a direction have the cosine 0 with each query, which can be more than others have.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vectors_without_a_direction_are_found() {
    let mut case = Case::new(0).await;
    let opposite = |n: u32| {
        let mut vector = vec![-1.0; common::DIMS];
        vector[n as usize % common::DIMS] = -1.5;
        vector
    };
    let points = (0..400).map(|n| {
        let dense = if n % 100 == 7 { vec![0.0; common::DIMS] } else { opposite(n) };
        Point { dense: Some(dense), ..point(n, &mut case.rng) }
    });
    let points: Vec<Point> = points.collect();
    case.vectors().upsert(&case.name, points.clone()).await.unwrap();
    built(case.vectors(), &case.name).await;
    let query = QueryVector::Dense(vec![1.0; common::DIMS]);
    let hits = search(case.vectors(), &case.name, query, &Filter::all(), 4).await;
    assert_eq!(hits.iter().map(|hit| hit.id).collect::<Vec<_>>(), [7, 107, 207, 307].map(id));
}
