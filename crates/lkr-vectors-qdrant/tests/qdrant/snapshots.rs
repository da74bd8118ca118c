//! Snapshots, beyond the suite.

use std::{fs, path::Path, time::Duration};

use lkr_domain::SparseVector;
use lkr_test_qdrant::Loopback;
use lkr_vectors::{Condition, ErrorKind, Filter, Include, Point, Tags, VectorStore};
use lkr_vectors_qdrant::{QdrantOptions, QdrantVectors};
use tempfile::TempDir;

use crate::support::{
    Guard, collection, create, id, on_loopback, options, point, points, real_options, spec,
};

const POINTS: u32 = 2_000;

/// While a snapshot is written, points are replaced, deleted and tagged, and a collection is dropped. The copy has none of
/// it.
async fn snapshot_is_of_the_moment_of_its_beginning(
    store: QdrantVectors,
    restored: Guard,
    to: QdrantOptions,
) {
    let (name, dropped) = (create(&store).await, collection("dropped"));
    store.ensure(&spec(&dropped)).await.unwrap();
    for name in [&name, &dropped] {
        store.upsert(name, points(0..POINTS)).await.unwrap();
    }
    let folder = TempDir::new().unwrap();
    let copy = folder.path().join("copy");
    let copying = tokio::spawn({
        let (store, copy) = (store.clone(), copy.clone());
        async move { store.snapshot(&copy).await }
    });
    wait_for_partial(folder.path()).await;
    let tags = Tags::from([("changed".to_owned(), "yes".to_owned())]);
    let mut changes = 0;
    while !copying.is_finished() || changes == 0 {
        let n = POINTS - 1 - changes * 7 % 900;
        let mut replaced = point(n);
        replaced.payload = "replaced".into();
        store.upsert(&name, vec![replaced, point(POINTS + changes)]).await.unwrap();
        let other = Filter::only(Condition::Ids(vec![id(POINTS - 950 - changes)]));
        store.delete(&name, &other).await.unwrap();
        let third = Filter::only(Condition::Docs(vec![point(changes % 100).origin.doc_id]));
        store.set_tags(&name, &third, &tags).await.unwrap();
        changes += 1;
        if changes == 1 {
            store.drop_collection(&dropped).await.unwrap();
        }
    }
    copying.await.unwrap().unwrap();
    assert_eq!(store.describe(&dropped).await.unwrap(), None);

    let copied = QdrantVectors::restore(to, &copy).await.unwrap();
    for name in [&name, &dropped] {
        assert_eq!(
            copied.count(name, &Filter::all()).await.unwrap(),
            u64::from(POINTS),
            "{name} after {changes} changes"
        );
        let page = copied.scroll(name, &Filter::all(), None, usize::MAX, Include::Payload).await.unwrap();
        for (found, n) in page.points.iter().zip(0..) {
            let expected = Point { dense: None, sparse: SparseVector::default(), ..point(n) };
            assert_eq!(*found, expected);
        }
    }
    drop(restored);
}

/// Waits until the snapshot has begun: its first file is made while no write runs.
async fn wait_for_partial(folder: &Path) {
    let has_files = |path: &Path| fs::read_dir(path).is_ok_and(|mut files| files.next().is_some());
    while !fs::read_dir(folder).unwrap().any(|partial| has_files(&partial.unwrap().path())) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshot_is_of_the_moment_of_its_beginning_on_loopback() {
    let (store, _server) = on_loopback().await;
    let server = Loopback::start().await;
    let to = options(&server.url());
    Box::pin(snapshot_is_of_the_moment_of_its_beginning(store, Guard::Loopback { _server: server }, to))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshot_is_of_the_moment_of_its_beginning_on_a_real_server() {
    let Some((from, _guard)) = real_options() else { return };
    let (to, guard) = real_options().unwrap();
    let store = QdrantVectors::open(from).await.unwrap();
    Box::pin(snapshot_is_of_the_moment_of_its_beginning(store, guard, to)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_snapshot_leaves_nothing_behind() {
    let (store, _server) = on_loopback().await;
    let name = create(&store).await;
    store.upsert(&name, points(0..POINTS)).await.unwrap();
    let folder = TempDir::new().unwrap();
    let copying = tokio::spawn({
        let (store, to) = (store.clone(), folder.path().join("copy"));
        async move { store.snapshot(&to).await }
    });
    wait_for_partial(folder.path()).await;
    copying.abort();
    assert!(copying.await.is_err_and(|error| error.is_cancelled()));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    store.drop_collection(&name).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_snapshot_is_refused_and_nothing_of_it_stays() {
    let (store, _server) = on_loopback().await;
    let name = create(&store).await;
    store.upsert(&name, points(0..50)).await.unwrap();
    let folder = TempDir::new().unwrap();
    let copy = folder.path().join("copy");
    store.snapshot(&copy).await.unwrap();

    let server = Loopback::start().await;
    let restore = async || QdrantVectors::restore(options(&server.url()), &copy).await.map(drop);
    let file = copy.join("points-0");
    let intact = fs::read(&file).unwrap();
    let mut flipped = intact.clone();
    flipped[intact.len() / 2] ^= 4;
    for damaged in [flipped.as_slice(), &intact[..intact.len() - 1], &intact[..4], &[]] {
        fs::write(&file, damaged).unwrap();
        let error = restore().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(server.data.state().collections.is_empty(), "{error}");
    }
    fs::write(&file, &intact).unwrap();
    let manifest = fs::read_to_string(copy.join("manifest.json")).unwrap();
    for damaged in [String::new(), manifest.replace("\"version\": 1", "\"version\": 2")] {
        fs::write(copy.join("manifest.json"), damaged).unwrap();
        assert_eq!(restore().await.unwrap_err().kind(), ErrorKind::Corrupt);
    }
    fs::write(copy.join("manifest.json"), manifest).unwrap();
    restore().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restore_into_a_store_with_collections_is_a_conflict() {
    let (store, server) = on_loopback().await;
    create(&store).await;
    let folder = TempDir::new().unwrap();
    let copy = folder.path().join("copy");
    store.snapshot(&copy).await.unwrap();
    let mut taken = options(&server.url());
    taken.prefix = "taken_".to_owned();
    let first = QdrantVectors::restore(taken.clone(), &copy).await.unwrap();
    let error = QdrantVectors::restore(taken, &copy).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert_eq!(first.collections().await.unwrap().len(), 1);
}
