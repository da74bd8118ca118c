//! From a data folder to Redis, Qdrant's protocol and S3's, and back, killed on the way.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

#[path = "support/mod.rs"]
mod support;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use lkr_blobs_s3::S3Config;
use lkr_catalog::Originals;
use lkr_domain::Layer;
use lkr_migrate::{Migration, Stores, unfinished_migration};
use lkr_state::{FailingState, MemoryState, StateStore};
use lkr_state_redis::{RedisConfig, RedisStore};
use lkr_test_qdrant::Loopback;
use lkr_test_support::{RedisServer, S3Server};
use lkr_vectors::{Hit, Query, QueryVector};
use lkr_vectors_qdrant::{QdrantOptions, QdrantVectors};
use object_store::{ObjectStore, memory::InMemory};
use support::{Content, content, data_folder, fill, migration, options, point, quiet};

/// The servers. What is not installed is replaced by a store in memory, after a visible skip.
struct Servers {
    redis: Option<RedisServer>,
    qdrant: Loopback,
    s3: Option<S3Server>,
    memory: (Arc<dyn StateStore>, Arc<dyn ObjectStore>),
}

impl Servers {
    async fn start() -> Self {
        let s3 = S3Server::start();
        if let Some(s3) = &s3 {
            s3.create_bucket("lkr");
        }
        let memory: (Arc<dyn StateStore>, Arc<dyn ObjectStore>) =
            (Arc::new(MemoryState::new()), Arc::new(InMemory::new()));
        Self { redis: RedisServer::start(), qdrant: Loopback::start().await, s3, memory }
    }

    /// Connections of a process.
    async fn open(&self) -> Stores {
        let state: Arc<dyn StateStore> = match &self.redis {
            Some(server) => {
                let config = RedisConfig {
                    command_timeout: Duration::from_secs(10),
                    write_timeout: Duration::from_secs(20),
                    ..RedisConfig::new(server.url())
                };
                Arc::new(RedisStore::open(config, None).await.unwrap().store.state())
            }
            None => Arc::clone(&self.memory.0),
        };
        let blobs: Arc<dyn ObjectStore> = match &self.s3 {
            Some(server) => {
                let location = "s3://lkr/kb".parse().unwrap();
                let endpoint = Some(server.url().parse().unwrap());
                let config = S3Config { endpoint, ..S3Config::new(location, "us-east-1", "id", "secret") };
                lkr_blobs_s3::open(&config).unwrap()
            }
            None => Arc::clone(&self.memory.1),
        };
        let vectors = QdrantVectors::open(QdrantOptions::new(self.qdrant.url())).await.unwrap();
        Stores {
            state,
            vectors: Some(Arc::new(vectors)),
            texts: Some(Arc::clone(&blobs)),
            originals: Some(Originals::on(blobs)),
        }
    }
}

/// The hits of some dense and sparse queries in all layers.
async fn answers(stores: &Stores) -> Vec<Vec<Hit>> {
    let mut queries = Vec::new();
    for n in [0, 3, 17, 30] {
        let point = point(n);
        let vectors = [point.dense.map(QueryVector::Dense), Some(QueryVector::Sparse(point.sparse))];
        for vector in vectors.into_iter().flatten() {
            queries.extend(Layer::ALL.map(|layer| Query {
                collection: layer.into(),
                vector: vector.clone(),
                scope: lkr_domain::Scope::All,
                filter: lkr_vectors::Filter::all(),
                limit: 10,
            }));
        }
    }
    stores.vectors.as_ref().unwrap().query_batch(&queries).await.unwrap()
}

/// How much a vector may change, as a share of its length, and so a score: a data folder has half precision, and Qdrant
/// scales vectors to length 1.
const ROUNDING: f32 = 1e-3;

/// The contents are equal but for the rounding of vectors.
fn assert_same_content(mut found: Content, expected: &Content) {
    let length =
        |values: &mut dyn Iterator<Item = f32>| values.map(|value| value * value).sum::<f32>().sqrt();
    for (key, point) in &mut found.points {
        let own = expected.points.get(key).and_then(|point| point.dense.as_ref());
        if let (Some(dense), Some(own)) = (&mut point.dense, own) {
            let off = length(&mut dense.iter().zip(own).map(|(a, b)| a - b));
            assert!(off <= ROUNDING * length(&mut own.iter().copied()), "{key:?}: {dense:?}, not {own:?}");
            dense.clone_from(own);
        }
    }
    assert!(found == *expected, "other records, points, aliases or files");
}

/// The answers have the same scores, but for rounding. Hits of nearly the same score may have changed places.
fn assert_same_answers(found: &[Vec<Hit>], expected: &[Vec<Hit>]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found.len(), expected.len());
        let differs = |(a, b): (&Hit, &Hit)| (a.score - b.score).abs() > ROUNDING;
        assert!(!found.iter().zip(expected).any(differs), "{found:?}, not {expected:?}");
    }
}

/// The target whose records fail after some operations.
fn dying(target: Stores, operations: u64) -> Stores {
    let left = AtomicU64::new(operations);
    let state = FailingState::new(Arc::clone(&target.state), move |_| {
        let over = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        over.is_err().then_some(lkr_state::ErrorKind::Internal)
    });
    Stores { state: Arc::new(state), ..target }
}

#[tokio::test(flavor = "multi_thread")]
async fn data_folder_comes_back_from_shared_stores_with_equal_answers() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let servers = Servers::start().await;
    let source = data_folder(from.path());
    fill(&source, 4).await;
    let (before, answers_before) = (content(&source).await, answers(&source).await);
    for operations in [10, 30, 40] {
        let target = dying(servers.open().await, operations);
        let killed = Migration::new(source.clone(), target, options()).unwrap();
        killed.run(&quiet).await.unwrap_err();
        let shared = servers.open().await;
        assert!(unfinished_migration(&*shared.state).await.unwrap().is_some(), "{operations}");
    }
    let shared = servers.open().await;
    let mut patient = options();
    patient.retry_for = Duration::from_secs(30);
    let there = Migration::new(source.clone(), shared.clone(), patient.clone()).unwrap();
    let report = there.run(&quiet).await.unwrap();
    assert_same_content(content(&shared).await, &before);
    drop((source, there));

    for operations in [10, 30, 40] {
        let target = dying(data_folder(to.path()), operations);
        let killed = Migration::new(servers.open().await, target, options()).unwrap();
        killed.run(&quiet).await.unwrap_err();
    }
    let back = data_folder(to.path());
    let again =
        Migration::new(servers.open().await, back.clone(), patient).unwrap().run(&quiet).await.unwrap();
    // The checksums are of the vectors that each side holds, so they differ by the rounding.
    assert_eq!(report.points, again.points);
    assert_same_content(content(&back).await, &before);
    assert_same_answers(&answers(&back).await, &answers_before);
    migration(&data_folder(from.path()), &back).verify(&quiet).await.unwrap();
}
