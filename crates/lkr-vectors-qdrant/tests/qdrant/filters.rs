//! Random filters select the points that `Filter::matches` selects.

use std::collections::BTreeMap;

use lkr_domain::{
    DocId,
    filter::{Instant, Number, Operand, Range, RangeEnd, ValueTest},
};
use lkr_vectors::{Condition, Filter, Include, Point, Tags, VectorStore};
use lkr_vectors_qdrant::QdrantVectors;
use proptest::{
    prelude::*,
    strategy::ValueTree as _,
    test_runner::{Config, RngSeed, TestRunner},
};

use crate::support::{create, id, on_loopback, point, real_options};

const POINTS: u32 = 120;
const FILTERS: u32 = 400;

/// Keys that need escaping, and some that do not.
fn key() -> impl Strategy<Value = String> {
    let long = "k".repeat(300);
    proptest::sample::select(vec![
        "a".to_owned(),
        "metadata.größe".to_owned(),
        "[0].\"x\"".to_owned(),
        String::new(),
        long,
    ])
}

fn value() -> impl Strategy<Value = String> {
    let instant =
        (0..4_i64, 0..3_u32).prop_map(|(second, nanos)| format!("1970-01-01T00:00:0{second}.{nanos:09}Z"));
    let number = prop_oneof![
        (-3..3_i32).prop_map(|n| n.to_string()),
        any::<f64>().prop_filter("finite", |x| x.is_finite()).prop_map(|x| x.to_string()),
        Just("9007199254740993".to_owned()),
        Just("1e-320".to_owned()),
    ];
    prop_oneof![
        3 => "[ab]{0,3}",
        2 => "[ab]{5,13}",
        2 => "(abcdef|é語\u{10ffff}|\\x00){0,4}[ab\\x00\u{ff}]{0,2}",
        2 => number,
        2 => instant,
        1 => Just("1969-12-31T23:59:59.9Z".to_owned()),
        1 => (990..1010_usize).prop_map(|length| "x".repeat(length)),
    ]
}

fn tags() -> impl Strategy<Value = Tags> {
    proptest::collection::btree_map(key(), value(), 0..5).prop_map(|tags: BTreeMap<_, _>| Tags::from(tags))
}

fn operand() -> impl Strategy<Value = Operand> {
    (value(), any::<bool>()).prop_map(|(text, is_typed)| {
        let number = Number::parse(&text).map(Operand::Number);
        let typed = number.or_else(|| Instant::parse(&text).map(Operand::Instant)).filter(|_| is_typed);
        typed.unwrap_or(Operand::Text(text))
    })
}

fn test() -> impl Strategy<Value = ValueTest> {
    let end =
        || (operand(), any::<bool>()).prop_map(|(operand, is_included)| RangeEnd { operand, is_included });
    prop_oneof![
        proptest::collection::vec(operand(), 0..4).prop_map(ValueTest::any_of),
        end().prop_map(|end| ValueTest::Range(Range::From(end))),
        end().prop_map(|end| ValueTest::Range(Range::To(end))),
        (end(), end()).prop_map(|(a, b)| ValueTest::Range(Range::Between(a, b))),
        (value(), 0..8_usize)
            .prop_map(|(text, length)| ValueTest::Prefix(text.chars().take(length).collect())),
        any::<bool>().prop_map(ValueTest::Exists),
    ]
}

fn condition() -> impl Strategy<Value = Condition> {
    let doc = || (0..14_u32).prop_map(|n| point(n * 10).origin.doc_id);
    let leaf = prop_oneof![
        1 => proptest::collection::vec((0..POINTS + 5).prop_map(id), 0..60).prop_map(Condition::Ids),
        1 => proptest::collection::vec(doc(), 0..5).prop_map(|docs: Vec<DocId>| Condition::Docs(docs)),
        1 => (doc(), prop_oneof![Just(1_u64), Just(u64::MAX)]).prop_map(|(doc, revision)| Condition::Revision(doc, revision)),
        2 => (key(), proptest::collection::vec(value(), 0..4)).prop_map(|(key, any)| Condition::Tag { key, any }),
        6 => (key(), test()).prop_map(|(key, test)| Condition::Value { key, test }),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let conditions = || proptest::collection::vec(inner.clone(), 0..3);
        let filter = (conditions(), conditions()).prop_map(|(must, must_not)| Filter { must, must_not });
        proptest::collection::vec(filter, 0..3).prop_map(Condition::Any)
    })
}

fn filter() -> impl Strategy<Value = Filter> {
    let conditions = || proptest::collection::vec(condition(), 0..3);
    (conditions(), conditions()).prop_map(|(must, must_not)| Filter { must, must_not })
}

async fn random_filters_select_what_matches_selects(store: QdrantVectors) {
    let name = create(&store).await;
    let mut runner = TestRunner::new(Config { rng_seed: RngSeed::Fixed(7), ..Config::default() });
    let mut draw = |n: u32| {
        let mut point = point(n);
        point.tags = tags().new_tree(&mut runner).unwrap().current();
        point.origin.revision = if n.is_multiple_of(3) { u64::MAX } else { 1 };
        point
    };
    let points: Vec<Point> = (0..POINTS).map(&mut draw).collect();
    store.upsert(&name, points.clone()).await.unwrap();
    let mut selected = 0;
    for _ in 0..FILTERS {
        let filter = filter().new_tree(&mut runner).unwrap().current();
        let matching = points.iter().filter(|point| filter.matches(point.id, &point.origin, &point.tags));
        let expected: Vec<_> = matching.map(|point| (point.id, point.tags.clone())).collect();
        let page = store.scroll(&name, &filter, None, usize::MAX, Include::Payload).await.unwrap();
        let found: Vec<_> = page.points.into_iter().map(|point| (point.id, point.tags)).collect();
        assert_eq!(found, expected, "{filter:?}");
        selected += usize::from(!expected.is_empty() && expected.len() < points.len());
    }
    assert!(selected > FILTERS as usize / 8, "only {selected} filters select a part of the points");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_filters_select_what_matches_selects_on_loopback() {
    let (store, _server) = on_loopback().await;
    random_filters_select_what_matches_selects(store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_filters_select_what_matches_selects_on_a_real_server() {
    let Some((options, _guard)) = real_options() else { return };
    random_filters_select_what_matches_selects(QdrantVectors::open(options).await.unwrap()).await;
}
