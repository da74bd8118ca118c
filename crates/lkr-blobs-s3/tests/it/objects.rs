use std::{collections::BTreeSet, sync::Arc};

use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::{
    Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, buffered::BufWriter, path::Path,
};
use tokio::io::AsyncWriteExt;

use crate::support::{bytes, server, store, store_in_bucket};

/// As lkr-catalog stores files.
const PART_BYTES: usize = 5 * 1024 * 1024;

async fn listed(store: &Arc<dyn ObjectStore>) -> BTreeSet<String> {
    let metas: Vec<_> = store.list(None).try_collect().await.unwrap();
    metas.into_iter().map(|meta| meta.location.to_string()).collect()
}

#[tokio::test]
async fn objects_are_stored_read_listed_and_deleted_whatever_their_names_are() {
    let Some(store) = store_in_bucket("odd-names") else { return };
    let names = [
        "texts/0k/0197f3a2-1",
        "2026/01/0197f3a2_Größe & Maß.pdf",
        "2026/01/0197f3a2_名前 テスト（一）.txt",
        "2026/01/0197f3a2_e\u{301}\u{1f642}.md",
        "2026/01/0197f3a2_a+b=c;d@e,f!g$h'(i)~.txt",
        "2026/01/0197f3a2_100%25 %2F ?#.txt",
        "2026/01/0197f3a2_\"q\"<x>|`{y}^[z]*.txt",
        "2026/01/0197f3a2_.txt",
    ];
    let paths = names.map(|name| Path::parse(name).unwrap());
    for (path, name) in paths.iter().zip(names) {
        let content = format!("the content of {name}");
        store.put(path, content.clone().into()).await.unwrap();
        assert_eq!(store.head(path).await.unwrap().size, content.len() as u64, "{name}");
        assert_eq!(store.get(path).await.unwrap().bytes().await.unwrap(), content, "{name}");
        let end = store.get_range(path, 4..11).await.unwrap();
        assert_eq!(end, &content.as_bytes()[4..11], "{name}");
    }
    assert_eq!(listed(&store).await, names.map(str::to_owned).into());
    let in_folder: Vec<_> = store.list(Some(&Path::from("texts"))).try_collect().await.unwrap();
    assert_eq!(in_folder.len(), 1);
    for path in &paths {
        store.delete(path).await.unwrap();
        assert!(matches!(store.get(path).await, Err(Error::NotFound { .. })), "{path}");
        // lkr deletes what may be missing.
        store.delete(path).await.unwrap();
    }
    assert!(listed(&store).await.is_empty());
}

#[tokio::test]
async fn stores_with_different_prefixes_do_not_see_each_other() {
    let Some(server) = server() else { return };
    server.create_bucket("two-prefixes");
    let [one, two] =
        ["s3://two-prefixes/one", "s3://two-prefixes/one-more"].map(|at| store(&server.url(), at));
    one.put(&Path::from("a"), "one".into()).await.unwrap();
    assert!(listed(&two).await.is_empty());
    assert!(matches!(two.head(&Path::from("a")).await, Err(Error::NotFound { .. })));
    let bucket = store(&server.url(), "s3://two-prefixes");
    assert_eq!(listed(&bucket).await, BTreeSet::from(["one/a".to_owned()]));
}

#[tokio::test]
async fn listing_is_complete_beyond_one_page() {
    let Some(store) = store_in_bucket("many-objects") else { return };
    let puts = stream::iter(0..1_005).map(|number| {
        let store = Arc::clone(&store);
        async move { store.put(&Path::from(format!("texts/{number:04}")), "text".into()).await }
    });
    puts.buffer_unordered(16).try_collect::<Vec<_>>().await.unwrap();
    assert_eq!(listed(&store).await.len(), 1_005);
}

#[tokio::test]
async fn one_of_many_conditional_puts_succeeds() {
    let Some(store) = store_in_bucket("races") else { return };
    for round in 0..5 {
        let path = Path::from(format!("race-{round}"));
        let creates = (0..20).map(|task| {
            let (store, path) = (Arc::clone(&store), path.clone());
            tokio::spawn(async move {
                let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
                (task, store.put_opts(&path, format!("task {task}").into(), options).await)
            })
        });
        let created: Vec<_> = stream::iter(creates).buffer_unordered(20).try_collect().await.unwrap();
        let (won, lost): (Vec<_>, Vec<_>) = created.into_iter().partition(|(_, result)| result.is_ok());
        assert_eq!(won.len(), 1, "round {round}: {won:?}");
        assert!(
            lost.iter().all(|(_, result)| matches!(result, Err(Error::AlreadyExists { .. }))),
            "{lost:?}"
        );
        let content = store.get(&path).await.unwrap().bytes().await.unwrap();
        assert_eq!(content, format!("task {}", won[0].0));
    }
}

#[tokio::test]
async fn large_file_is_uploaded_in_parts_and_read_back_whole() {
    let Some(store) = store_in_bucket("large-files") else { return };
    let (path, content) = (Path::from("2026/01/large.bin"), bytes(30 * 1_000_000));
    let mut writer = BufWriter::with_capacity(Arc::clone(&store), path.clone(), PART_BYTES);
    for part in content.chunks(64 * 1024) {
        writer.write_all(part).await.unwrap();
    }
    writer.shutdown().await.unwrap();
    assert!(store.get(&path).await.unwrap().bytes().await.unwrap() == content);
    let (from, to) = (PART_BYTES - 10, PART_BYTES + 10);
    let range = store.get_range(&path, from as u64..to as u64).await.unwrap();
    assert_eq!(range, &content[from..to]);
    assert_eq!(server().unwrap().open_uploads("large-files"), 0);
}

#[tokio::test]
async fn unfinished_upload_leaves_no_object() {
    let Some(store) = store_in_bucket("unfinished") else { return };
    let (path, content) = (Path::from("2026/01/large.bin"), bytes(12 * 1_000_000));
    let write = async || {
        let mut writer = BufWriter::with_capacity(Arc::clone(&store), path.clone(), PART_BYTES);
        writer.write_all(&content).await.unwrap();
        writer
    };
    write().await.abort().await.unwrap();
    assert_eq!(server().unwrap().open_uploads("unfinished"), 0);
    drop(write().await);
    assert!(listed(&store).await.is_empty());
    assert!(matches!(store.head(&path).await, Err(Error::NotFound { .. })));
    // What was dropped stays until the bucket's rule removes it, and does not prevent another upload.
    assert_eq!(server().unwrap().open_uploads("unfinished"), 1);
    write().await.shutdown().await.unwrap();
    assert_eq!(store.head(&path).await.unwrap().size, content.len() as u64);
}

#[tokio::test]
async fn object_is_copied_over_another() {
    let Some(store) = store_in_bucket("copies") else { return };
    let [from, to] = ["2026/01/Größe +1.txt", "2026/02/名前.txt"].map(|name| Path::parse(name).unwrap());
    store.put(&from, PutPayload::from_static(b"original")).await.unwrap();
    store.put(&to, PutPayload::from_static(b"other")).await.unwrap();
    store.copy(&from, &to).await.unwrap();
    for path in [&from, &to] {
        assert_eq!(store.get(path).await.unwrap().bytes().await.unwrap(), "original");
    }
}
