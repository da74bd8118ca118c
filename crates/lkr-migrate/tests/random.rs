//! Random contents, killed at random places.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

#[path = "support/mod.rs"]
mod support;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use lkr_domain::{PointId, SparseVector};
use lkr_migrate::{Migration, Stores, TABLE, Treatment};
use lkr_state::{Expect, FailingState, StateStore, Write};
use lkr_vectors::{Collection, CollectionSpec, DenseSpec, Point, PointOrigin, Tags};
use proptest::prelude::*;
use serde_json::{Value, json};
use support::{content, doc, memory, migration, name, options, quiet};

const DIMS: usize = 3;

/// Keys of the rows that are copied for ever, and unknown ones.
fn key() -> impl Strategy<Value = String> {
    let copied: Vec<&str> =
        TABLE.iter().filter(|row| row.treatment == Treatment::Copy).map(|row| row.key).collect();
    let known = (proptest::sample::select(copied), "[a-z0-9/é]{1,12}").prop_map(|(key, rest)| {
        match key.ends_with('/') {
            true => format!("{key}{rest}"),
            false => key.to_owned(),
        }
    });
    prop_oneof![4 => known, 1 => "x-[ -~]{1,30}"]
}

fn records() -> impl Strategy<Value = BTreeMap<String, Vec<u8>>> {
    proptest::collection::btree_map(key(), proptest::collection::vec(any::<u8>(), 0..80), 0..40)
}

fn number() -> impl Strategy<Value = f32> {
    proptest::num::f32::NORMAL | proptest::num::f32::SUBNORMAL | proptest::num::f32::ZERO
}

fn payload() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL).prop_map(Value::from),
        ".{0,10}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(".{0,5}", inner, 0..4).prop_map(|members| json!(members)),
        ]
    })
}

prop_compose! {
    fn point()(
        id in any::<[u8; 16]>(),
        revision in any::<u64>(),
        ordinal in any::<u32>(),
        (l2, l3) in any::<(Option<[u8; 16]>, Option<[u8; 16]>)>(),
        tags in proptest::collection::btree_map(".{0,8}", ".{0,20}", 0..4),
        dense in proptest::option::of(proptest::collection::vec(number(), DIMS)),
        sparse in proptest::collection::vec((any::<u32>(), number()), 0..6),
        payload in payload(),
    ) -> Point {
        let [l2, l3] = [l2, l3].map(|parent| parent.map(PointId::from_bytes));
        Point {
            id: PointId::from_bytes(id),
            origin: PointOrigin { doc_id: doc(ordinal), revision, ordinal, l2, l3 },
            tags: Tags::from(tags),
            dense,
            sparse: SparseVector::from_pairs(sparse),
            payload,
        }
    }
}

async fn filled(records: BTreeMap<String, Vec<u8>>, collections: BTreeMap<String, Vec<Point>>) -> Stores {
    let stores = memory();
    let step = records.into_iter().map(|(key, value)| Write::put(key, Expect::Any, value));
    stores.state.apply(step.collect()).await.unwrap();
    let vectors = stores.vectors.as_ref().unwrap();
    let mut aliases: Vec<(Collection, Collection)> = Vec::new();
    for (collection, points) in collections {
        let collection = name(&collection);
        let dense = Some(DenseSpec { model: "m".to_owned(), dims: DIMS });
        vectors.ensure(&CollectionSpec { collection: collection.clone(), dense }).await.unwrap();
        vectors.upsert(&collection, points).await.unwrap();
        aliases.push((name("l2"), collection));
    }
    vectors.switch(&aliases).await.unwrap();
    stores
}

async fn migrate_there_and_back(source: Stores, kills: Vec<u64>) {
    let (target, back) = (memory(), memory());
    let before = content(&source).await;
    for (from, to) in [(&source, &target), (&target, &back)] {
        for &operations in &kills {
            let left = AtomicU64::new(operations);
            let state = FailingState::new(Arc::clone(&to.state), move |_| {
                let over = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
                over.is_err().then_some(lkr_state::ErrorKind::Internal)
            });
            let state: Arc<dyn StateStore> = Arc::new(state);
            let killed = Migration::new(from.clone(), Stores { state, ..to.clone() }, options()).unwrap();
            if killed.run(&quiet).await.is_ok() {
                break;
            }
        }
        // A run that ended before it was killed left a complete target.
        let is_complete = content(to).await == before;
        let unfinished = lkr_migrate::unfinished_migration(&*to.state).await.unwrap().is_some();
        if unfinished || !is_complete {
            migration(from, to).run(&quiet).await.unwrap();
        }
        assert_eq!(content(to).await, before);
        migration(from, to).verify(&quiet).await.unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_contents_come_back_after_random_kills(
        records in records(),
        collections in proptest::collection::btree_map(
            "[a-k][a-z0-9._-]{0,8}", proptest::collection::vec(point(), 0..30), 0..4),
        kills in proptest::collection::vec(0_u64..60, 0..4),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { migrate_there_and_back(filled(records, collections).await, kills).await });
    }
}
