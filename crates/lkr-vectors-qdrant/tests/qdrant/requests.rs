//! What the requests contain.

use std::{collections::BTreeSet, sync::Arc};

use lkr_domain::{
    PointId, Scope, SparseVector,
    filter::{Instant, Number, Operand, Range, RangeEnd, ValueTest},
};
use lkr_test_qdrant::Loopback;
use lkr_vectors::{CollectionSpec, Condition, ErrorKind, Filter, Query, QueryVector, Tags, VectorStore};
use lkr_vectors_qdrant::{QdrantVectors, Quantization};
use qdrant_client::qdrant::{WriteOrderingType, quantization_config, vectors_config};

use crate::support::{collection, create, id, on_loopback, options, point, points, spec};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_write_waits_and_is_strongly_ordered() {
    let (store, server) = on_loopback().await;
    let name = create(&store).await;
    store.upsert(&name, points(0..30)).await.unwrap();
    let tags = Tags::from([("a".to_owned(), "b".to_owned())]);
    store.set_tags(&name, &Filter::only(Condition::Ids(vec![id(1)])), &tags).await.unwrap();
    store.delete(&name, &Filter::only(Condition::Ids(vec![id(2)]))).await.unwrap();
    let writes = server.data.state().writes.clone();
    let calls: BTreeSet<&str> = writes.iter().map(|write| write.call).collect();
    assert_eq!(calls, BTreeSet::from(["create_field_index", "delete", "set_payload", "upsert"]));
    for write in writes {
        assert_eq!(
            (write.wait, write.ordering),
            (Some(true), Some(WriteOrderingType::Strong.into())),
            "{write:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_upserts_are_split() {
    let server = Loopback::start().await;
    let mut options = options(&server.url());
    options.max_request_bytes = 10_000;
    let store = QdrantVectors::open(options).await.unwrap();
    let name = create(&store).await;
    let mut batch = points(0..100);
    batch.iter_mut().for_each(|point| point.payload = "x".repeat(1_000).into());
    batch[50].payload = "x".repeat(50_000).into();
    store.upsert(&name, batch).await.unwrap();
    let sizes: Vec<usize> = upsert_sizes(&server);
    assert!(sizes.len() > 10 && sizes.iter().all(|size| (1..10).contains(size)), "{sizes:?}");
    assert_eq!(sizes.iter().sum::<usize>(), 100);
    assert_eq!(store.count(&name, &Filter::all()).await.unwrap(), 100);
}

fn upsert_sizes(server: &Loopback) -> Vec<usize> {
    let writes = server.data.state().writes.clone();
    writes.into_iter().filter(|write| write.call == "upsert").map(|write| write.points).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn delete_that_matches_nothing_sends_no_write() {
    let (store, server) = on_loopback().await;
    let name = create(&store).await;
    for filter in [Filter::all(), Filter::only(Condition::Ids(vec![])), Filter::only(Condition::Any(vec![]))]
    {
        assert_eq!(store.delete(&name, &filter).await.unwrap(), 0);
        assert_eq!(store.set_tags(&name, &filter, &Tags::new()).await.unwrap(), 0);
    }
    assert!(server.data.state().writes.iter().all(|write| write.call == "create_field_index"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn options_decide_how_collections_are_created() {
    let server = Loopback::start().await;
    let mut options = options(&server.url());
    options.shard_number = 3.try_into().unwrap();
    options.replication_factor = 2.try_into().unwrap();
    options.write_consistency_factor = 2.try_into().unwrap();
    options.quantization = Quantization::ScalarInt8;
    options.prefix = "p_".to_owned();
    let store = QdrantVectors::open(options).await.unwrap();
    let name = create(&store).await;
    store.ensure(&CollectionSpec { collection: collection("bare"), dense: None }).await.unwrap();
    let state = server.data.state();
    let creation = &state.collections["p_chunks"].creation;
    assert_eq!(
        (creation.shard_number, creation.replication_factor, creation.write_consistency_factor),
        (Some(3), Some(2), Some(2))
    );
    let quantization = creation.quantization_config.unwrap().quantization.unwrap();
    assert!(matches!(quantization, quantization_config::Quantization::Scalar(_)), "{quantization:?}");
    let vectors =
        |name: &str| match state.collections[name].creation.vectors_config.clone().unwrap().config.unwrap() {
            vectors_config::Config::ParamsMap(map) => {
                map.map.into_iter().map(|(name, params)| (name, params.size)).collect::<Vec<_>>()
            }
            vectors_config::Config::Params(params) => panic!("{params:?}"),
        };
    assert_eq!(vectors("p_chunks"), [("dense".to_owned(), 4)]);
    assert_eq!(vectors("p_bare"), []);
    let indexed: BTreeSet<&str> = state.collections["p_chunks"].schema.keys().map(String::as_str).collect();
    assert_eq!(indexed, BTreeSet::from(["doc_id", "revision", "tokens"]));
    assert_eq!(name.name(), "chunks");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ensure_adds_indexes_that_an_interrupted_one_did_not_add() {
    let (store, server) = on_loopback().await;
    let name = create(&store).await;
    let full_name = server.data.state().collections.keys().next().unwrap().clone();
    server.data.state().collections.get_mut(&full_name).unwrap().schema.remove("tokens");
    store.ensure(&spec(&name)).await.unwrap();
    assert!(server.data.state().collections[&full_name].schema.contains_key("tokens"));
}

/// Every field that a condition compares has an index, also in collections that were made before it was first used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_filter_by_a_field_adds_its_index() {
    let (store, server) = on_loopback().await;
    let name = create(&store).await;
    let from = |operand| ValueTest::Range(Range::From(RangeEnd { operand, is_included: true }));
    let text = |text: &str| from(Operand::Text(text.to_owned()));
    let tests = [
        ("exists", ValueTest::Exists(true)),
        ("equal", ValueTest::any_of(vec![Operand::Text("a".to_owned())])),
        ("prefix", ValueTest::Prefix("a".to_owned())),
        ("number", from(Operand::Number(Number::parse("1").unwrap()))),
        ("instant", from(Operand::Instant(Instant::parse("2026-01-01T00:00:00Z").unwrap()))),
        ("short", text("abcdef")),
        ("long", text("abcdefg")),
    ];
    for (key, test) in tests {
        let filter = Filter::only(Condition::Value { key: key.to_owned(), test });
        store.count(&name, &filter).await.unwrap();
    }
    let expected = BTreeSet::from([
        "doc_id",
        "revision",
        "tokens",
        "tags.k_prefix.text",
        "tags.k_number.number",
        "tags.k_instant.seconds",
        "tags.k_short.chunks[0]",
        "tags.k_long.chunks[0]",
        "tags.k_long.text",
    ]);
    let begun = std::time::Instant::now();
    loop {
        let indexed: BTreeSet<String> = {
            let state = server.data.state();
            state.collections.values().next().unwrap().schema.keys().cloned().collect()
        };
        if indexed.iter().map(String::as_str).eq(expected.iter().copied()) {
            return;
        }
        assert!(begun.elapsed().as_secs() < 10, "{indexed:?}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stores_with_two_prefixes_do_not_see_each_other() {
    let server = Loopback::start().await;
    let open = async |prefix: &str| {
        let mut options = options(&server.url());
        options.prefix = prefix.to_owned();
        QdrantVectors::open(options).await.unwrap()
    };
    let (short, long) = (open("a_").await, open("a_b_").await);
    let name = create(&long).await;
    long.switch(&[(collection("alias"), name.clone())]).await.unwrap();
    assert_eq!(short.collections().await.unwrap(), []);
    assert_eq!(short.describe(&collection("b_chunks")).await.unwrap(), None);
    assert_eq!(long.collections().await.unwrap(), [spec(&name)]);
    assert_eq!(long.describe(&collection("alias")).await.unwrap(), Some(spec(&name)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alias_that_another_store_switched_is_noticed() {
    let (store, server) = on_loopback().await;
    let mut other = options(&server.url());
    other.prefix =
        format!("{store:?}").split("prefix: \"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let other = QdrantVectors::open(other).await.unwrap();
    let (name, alias) = (create(&store).await, collection("alias"));
    store.switch(&[(alias.clone(), name)]).await.unwrap();
    store.upsert(&alias, vec![point(1)]).await.unwrap();

    let mut wide = spec(&collection("wide"));
    wide.dense.as_mut().unwrap().dims = 2;
    other.ensure(&wide).await.unwrap();
    other.switch(&[(alias.clone(), wide.collection.clone())]).await.unwrap();
    let mut narrow = point(2);
    narrow.dense = Some(vec![0.0, 1.0]);
    store.upsert(&alias, vec![narrow]).await.unwrap();
    let query = Query {
        collection: alias,
        vector: QueryVector::Dense(vec![0.0, 1.0]),
        scope: Scope::All,
        filter: Filter::all(),
        limit: 5,
    };
    let hits = store.query_batch(&[query]).await.unwrap().remove(0);
    assert_eq!(hits.iter().map(|hit| hit.id).collect::<Vec<_>>(), [id(2)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limit_amid_many_equal_scores_cuts_by_id() {
    let (store, _server) = on_loopback().await;
    let store: Arc<dyn VectorStore> = Arc::new(store);
    let name = collection("chunks");
    store.ensure(&spec(&name)).await.unwrap();
    store.upsert(&name, points(0..500)).await.unwrap();
    let query = |vector, limit| Query {
        collection: name.clone(),
        vector,
        scope: Scope::All,
        filter: Filter::all(),
        limit,
    };
    for limit in [1, 7, 499, 500, usize::MAX] {
        let batch = [
            query(QueryVector::Sparse(SparseVector::from_pairs([(1, 1.0)])), limit),
            query(QueryVector::Dense(vec![0.6, 0.8, 0.0, 0.0]), limit),
        ];
        for hits in store.query_batch(&batch).await.unwrap() {
            let found: Vec<PointId> = hits.iter().map(|hit| hit.id).collect();
            assert_eq!(found, (0..500.min(limit) as u32).map(id).collect::<Vec<_>>(), "limit {limit}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn api_key_is_sent_and_appears_in_no_debug_output_and_no_error() {
    let server = Loopback::start().await;
    server.data.state().api_key = Some("key-of-this-test".to_owned());
    let mut options = options(&server.url());
    for key in [None, Some("wrong-of-this-test".to_owned())] {
        options.api_key = key;
        let error = QdrantVectors::open(options.clone()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert!(error.reason().contains("Invalid API key"), "{error}");
        assert!(!format!("{error} {error:?} {options:?}").contains("of-this-test"), "{error:?}");
    }
    options.api_key = Some("key-of-this-test".to_owned());
    let store = QdrantVectors::open(options.clone()).await.unwrap();
    let name = create(&store).await;
    assert!(!format!("{options:?} {store:?}").contains("of-this-test"));

    // After the key was changed on the server, the store is away until it is opened with the new one, so that tasks wait.
    server.data.state().api_key = Some("later-key-of-this-test".to_owned());
    let refused = [
        store.count(&name, &Filter::all()).await.unwrap_err(),
        store.upsert(&name, vec![point(0)]).await.unwrap_err(),
        store.health().await.unwrap_err(),
    ];
    for error in refused {
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.reason().contains("Invalid API key"), "{error}");
    }
    server.data.state().api_key = Some("key-of-this-test".to_owned());
    store.health().await.unwrap();

    let (_, address) = server.stop().await;
    let error = store.health().await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("of-this-test"));
    options.url = format!("http://user:password-of-this-test@{address}");
    options.api_key = Some("key-of-this-test\n".to_owned());
    let error = QdrantVectors::open(options.clone()).await.unwrap_err();
    let shown = format!("{options:?} {error} {error:?}");
    assert!(!shown.contains("of-this-test"), "{shown}");
}
