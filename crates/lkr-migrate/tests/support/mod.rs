//! Knowledge bases to migrate.
#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    clippy::panic,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "each test uses a part of it"
)]

mod failing_blobs;

use std::{
    collections::BTreeMap,
    io::{Seek, Write as _},
    path::Path,
    sync::Arc,
};

use futures_util::TryStreamExt;
use lkr_catalog::{Originals, Texts, original_path};
use lkr_domain::{DocId, Layer, PointId, SparseVector};
use lkr_migrate::{MigrateOptions, Migration, Progress, Stores};
use lkr_state::{Expect, Key, MemoryState, ScanOrder, StateStore, Write};
use lkr_store_lmdb::{LmdbOptions, LmdbStore};
use lkr_vectors::{
    Collection, CollectionSpec, DenseSpec, Filter, Include, MemoryVectors, Point, PointOrigin, Tags,
    VectorStore,
};
use object_store::{ObjectStore, ObjectStoreExt, local::LocalFileSystem, memory::InMemory};
use serde_json::json;
use time::macros::datetime;

pub use failing_blobs::FailingBlobs;

pub const DIMS: usize = 8;

/// Stores in memory, with the originals on the same object store as the texts.
pub fn memory() -> Stores {
    let blobs: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    Stores {
        state: Arc::new(MemoryState::new()),
        vectors: Some(Arc::new(MemoryVectors::new())),
        texts: Some(Arc::clone(&blobs)),
        originals: Some(Originals::on(blobs)),
    }
}

/// A data folder: LMDB, texts and originals in folders.
pub fn data_folder(folder: &Path) -> Stores {
    let mut options = LmdbOptions::default();
    options.map_size = 1 << 28;
    let store = LmdbStore::open(&folder.join("store"), options).unwrap();
    let texts = folder.join("blobs");
    std::fs::create_dir_all(&texts).unwrap();
    let texts = LocalFileSystem::new_with_prefix(texts).unwrap().with_fsync(true);
    Stores {
        state: Arc::new(store.state()),
        vectors: Some(Arc::new(store.vectors())),
        texts: Some(Arc::new(texts)),
        originals: Some(Originals::in_folder(folder.join("uploads"))),
    }
}

/// Small batches, so that small tests have several.
pub fn options() -> MigrateOptions {
    let mut options = MigrateOptions::new(std::env::temp_dir());
    options.points_per_batch = 7;
    options.records_per_batch = 5;
    options.concurrent_blobs = 3;
    options.retry_for = std::time::Duration::from_millis(1);
    options
}

pub fn migration(source: &Stores, target: &Stores) -> Migration {
    Migration::new(source.clone(), target.clone(), options()).unwrap()
}

pub fn quiet(_: Progress) {}

pub fn name(text: &str) -> Collection {
    Collection::new(text).unwrap()
}

pub fn doc(n: u32) -> DocId {
    DocId::from_bytes((u128::from(n) | 1 << 120).to_be_bytes())
}

pub fn point(n: u32) -> Point {
    let dense: Vec<f32> = (0..DIMS).map(|axis| ((n as usize * 31 + axis * 17) % 23) as f32 - 11.0).collect();
    let length = dense.iter().map(|value| value * value).sum::<f32>().sqrt();
    Point {
        id: PointId::from_bytes((u128::from(n) << 64 | u128::from(n)).to_be_bytes()),
        origin: PointOrigin {
            doc_id: doc(n / 10),
            revision: 1,
            ordinal: n % 10,
            l2: n.is_multiple_of(2).then(|| PointId::from_bytes([n as u8; 16])),
            l3: None,
        },
        tags: Tags::from([
            ("space".to_owned(), "default".to_owned()),
            ("category".to_owned(), format!("c{}", n % 3)),
        ]),
        dense: (n % 5 != 4).then(|| dense.iter().map(|value| value / length).collect()),
        sparse: SparseVector::from_pairs([(n, 0.1 + n as f32), (n + 1_000, 1.0 / 3.0)]),
        payload: json!({"text": format!("text {n}"), "cosine": 0.1_f64 + f64::from(n), "path": ["a", null]}),
    }
}

/// Collections of two models, of which the aliases name one, with `points` points in each collection.
pub async fn fill_points(vectors: &dyn VectorStore, points: u32) {
    let mut aliases = Vec::new();
    for layer in Layer::ALL {
        for model in ["sparse", "0123456789ab"] {
            let collection = name(&format!("{layer}.{model}"));
            let dense = (model != "sparse").then(|| DenseSpec { model: model.to_owned(), dims: DIMS });
            let is_dense = dense.is_some();
            vectors.ensure(&CollectionSpec { collection: collection.clone(), dense }).await.unwrap();
            let point = |n| match is_dense {
                true => point(n),
                false => Point { dense: None, ..point(n) },
            };
            vectors.upsert(&collection, (0..points).map(point).collect()).await.unwrap();
            if is_dense {
                aliases.push((layer.into(), collection));
            }
        }
    }
    vectors.switch(&aliases).await.unwrap();
}

/// A record for each of some keys as the parts of lkr write them, and counters.
pub async fn fill_records(state: &dyn StateStore, documents: u32) {
    let put = |key: String, value: String| Write::put(key, Expect::Any, value);
    for n in 0..documents {
        let id = doc(n);
        let step = vec![
            put(format!("doc/{id}"), format!("{{\"v\":\"1\",\"title\":\"document {n}\"}}")),
            put(format!("simhash/{id}"), n.to_string()),
            put(format!("in-space/default/{id}"), String::new()),
            put(format!("simhash-change/{id}"), "left out".to_owned()),
            Write::increment("generation"),
            Write::increment("generation/default"),
        ];
        state.apply(step).await.unwrap();
    }
    let single = ["version", "settings", "auth/initialised", "webhook/hooks", "from-a-later-version/x"];
    let step = single.map(|key| put(key.to_owned(), format!("value of {key}")));
    state.apply(step.to_vec()).await.unwrap();
}

pub async fn fill_blobs(stores: &Stores, documents: u32) {
    let (texts, originals) = (stores.texts.as_ref().unwrap(), stores.originals.as_ref().unwrap());
    for n in 0..documents {
        for (path, text) in Texts::paths(doc(n), 1).into_iter().zip(["text", "blocks", "notes"]) {
            // Longer than a part of an upload.
            let content = match (n, text) {
                (0, "text") => vec![b'x'; 6 * 1024 * 1024],
                _ => format!("{text} of {n}").into_bytes(),
            };
            texts.put(&path.into(), content.into()).await.unwrap();
        }
        let mut file = tempfile::tempfile().unwrap();
        let content = format!("original {n}");
        file.write_all(content.as_bytes()).unwrap();
        file.rewind().unwrap();
        let path = original_path(doc(n), "file.pdf", datetime!(2026-03-01 12:00 UTC));
        originals.put(&path, &file, content.len() as u64).await.unwrap();
    }
}

/// Fills all parts.
pub async fn fill(stores: &Stores, documents: u32) {
    fill_points(&**stores.vectors.as_ref().unwrap(), documents * 10).await;
    fill_blobs(stores, documents).await;
    fill_records(&*stores.state, documents).await;
}

/// Everything that a side has and that is copied, in a form that can be compared without this crate's own comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Content {
    pub records: BTreeMap<Key, Vec<u8>>,
    pub points: BTreeMap<(String, PointId), Point>,
    pub aliases: Vec<Option<CollectionSpec>>,
    pub files: BTreeMap<String, Vec<u8>>,
}

pub async fn content(stores: &Stores) -> Content {
    let records = stores.state.scan("", None, ScanOrder::Ascending, 100_000).await.unwrap();
    let is_copied = |key: &Key| !key.starts_with("simhash-change/");
    let records = records.into_iter().filter(|(key, _)| is_copied(key));
    let records = records.map(|(key, record)| (key, record.value.to_vec())).collect();
    let (mut points, mut aliases) = (BTreeMap::new(), Vec::new());
    if let Some(vectors) = &stores.vectors {
        for spec in vectors.collections().await.unwrap() {
            let collection = spec.collection;
            let page =
                vectors.scroll(&collection, &Filter::all(), None, 100_000, Include::All).await.unwrap();
            let named = |point: Point| ((collection.name().to_owned(), point.id), point);
            points.extend(page.points.into_iter().map(named));
        }
        for layer in Layer::ALL {
            aliases.push(vectors.describe(&layer.into()).await.unwrap());
        }
    }
    let mut files = BTreeMap::new();
    if let Some(texts) = &stores.texts {
        for folder in Texts::FOLDERS {
            let list: Vec<_> = texts.list(Some(&folder.into())).try_collect().await.unwrap();
            for meta in list {
                let bytes = texts.get(&meta.location).await.unwrap().bytes().await.unwrap();
                files.insert(meta.location.to_string(), bytes.to_vec());
            }
        }
    }
    if let Some(originals) = &stores.originals {
        for path in originals.stored().await.unwrap() {
            let stored = originals.get(&path).await.unwrap().unwrap();
            let parts: Vec<_> = stored.read(0..stored.size_bytes).await.unwrap().try_collect().await.unwrap();
            files.insert(path, parts.concat());
        }
    }
    Content { records, points, aliases, files }
}
