use serde_json::json;

use super::support::*;
use crate::{CollectionSpec, Condition, ErrorKind, Filter, Include, Point, PointOrigin};

/// A point with everything in it.
fn full(n: u32) -> Point {
    Point {
        origin: PointOrigin {
            doc_id: doc(7),
            revision: u64::MAX,
            ordinal: u32::MAX,
            l2: Some(id(8)),
            l3: Some(id(9)),
        },
        tags: tags(&[("category", "Möbel/机器"), ("metadata.作者", "Ōe 🦉 \"quoted\" \\ \n"), ("empty", "")]),
        dense: Some(unit(vec![0.1, -0.2, 0.3, 0.4])),
        sparse: sparse(&[(0, 0.25), (77, 1.5), (u32::MAX, 3.125)]),
        payload: json!({ "text": "ein Satz\u{0}mit Null", "nested": [{ "a": [1, 2.5, null, true] }] }),
        ..point(n)
    }
}

/// What was stored is answered with everything, or with payload and tags alone.
pub async fn points_come_back_whole(store: Store) {
    let name = made(&store).await;
    store.upsert(&name, vec![full(1), point(2)]).await.unwrap();
    let found = store.get(&name, &[id(1), id(2)], Include::All).await.unwrap();
    assert_same(found[0].as_ref().unwrap(), &full(1));
    assert_same(found[1].as_ref().unwrap(), &point(2));
    let bare = Point { dense: None, sparse: sparse(&[]), ..full(1) };
    let found = store.get(&name, &[id(1)], Include::Payload).await.unwrap();
    assert_eq!(found[0].as_ref().unwrap(), &bare);
    let only = Filter::only(Condition::Ids(vec![id(1)]));
    let page = store.scroll(&name, &only, None, 10, Include::All).await.unwrap();
    assert_same(&page.points[0], &full(1));
    let page = store.scroll(&name, &only, None, 10, Include::Payload).await.unwrap();
    assert_eq!(page.points, [bare]);
}

/// A payload is any JSON value, and the store does not look inside.
pub async fn payloads_of_every_kind_come_back(store: Store) {
    let name = made(&store).await;
    let long = "ü".repeat(100_000);
    let payloads = [
        json!(null),
        json!(true),
        json!(-0.25),
        json!(u64::MAX),
        json!(i64::MIN),
        json!("text"),
        json!([]),
        json!({}),
        json!({ "": { " ": [[[]], {}, null] }, "ключ": "鍵", "$oid": 1, "id": "x", "tags": {} }),
        json!({ "long": long }),
    ];
    let points = payloads.iter().zip(0..).map(|(payload, n)| Point { payload: payload.clone(), ..point(n) });
    store.upsert(&name, points.collect()).await.unwrap();
    for (payload, n) in payloads.iter().zip(0..) {
        let found = store.get(&name, &[id(n)], Include::Payload).await.unwrap();
        assert_eq!(&found[0].as_ref().unwrap().payload, payload);
    }
}

/// Answers stand where their ids stood, with gaps for those that are not there.
pub async fn get_keeps_the_order_of_the_ids(store: Store) {
    let name = made(&store).await;
    store.upsert(&name, (0..20).map(point).collect()).await.unwrap();
    let wanted = [19, 3, 400, 3, 0, 401, 11];
    let found = store.get(&name, &wanted.map(id), Include::All).await.unwrap();
    let found: Vec<_> = found.iter().map(|point| point.as_ref().map(|point| number(point.id))).collect();
    assert_eq!(found, [Some(19), Some(3), None, Some(3), Some(0), None, Some(11)]);
}

/// A point's old tags, terms, vector and origin are gone when another of its id is stored.
pub async fn a_replaced_point_leaves_nothing_behind(store: Store) {
    let name = made(&store).await;
    let mut old = full(1);
    old.sparse = sparse(&[(1, 1.0), (2, 1.0)]);
    store.upsert(&name, vec![old, with_sparse(2, &[(1, 1.0)])]).await.unwrap();
    let mut new = with_sparse(1, &[(3, 1.0)]);
    new.tags = tags(&[("kind", "new")]);
    store.upsert(&name, vec![new.clone()]).await.unwrap();

    assert_eq!(count(&store, &name).await, 2);
    assert_same(store.get(&name, &[id(1)], Include::All).await.unwrap()[0].as_ref().unwrap(), &new);
    assert!(ask_dense(&store, &name, &[0.1, -0.2, 0.3, 0.4]).await.is_empty(), "the vector is gone");
    assert!(ask_sparse(&store, &name, &[(2, 1.0)]).await.is_empty(), "the term is gone");
    let hits = ask_sparse(&store, &name, &[(1, 1.0)]).await;
    assert_eq!(numbers(&hits), [2]);
    assert_score(&hits[0], idf(2, 1));
    let by_tag = |key: &str, value: &str| {
        Filter::only(Condition::Tag { key: key.to_owned(), any: vec![value.to_owned()] })
    };
    for (filter, expected) in [
        (by_tag("empty", ""), 0),
        (by_tag("kind", "new"), 1),
        (Filter::only(Condition::Docs(vec![doc(7)])), 0),
        (Filter::only(Condition::Revision(doc(7), u64::MAX)), 0),
        (Filter::only(Condition::Revision(doc(0), 1)), 2),
    ] {
        assert_eq!(store.count(&name, &filter).await.unwrap(), expected, "{filter:?}");
    }
}

/// Of several points of one id in one call the last is stored, and counted once.
pub async fn the_last_of_equal_ids_counts(store: Store) {
    let name = made(&store).await;
    let versions = [(1, 1.0), (2, 1.0), (3, 1.0)].map(|term| with_sparse(1, &[term]));
    store
        .upsert(&name, vec![versions[0].clone(), with_sparse(2, &[(1, 1.0)]), versions[1].clone()])
        .await
        .unwrap();
    assert_eq!(count(&store, &name).await, 2);
    assert_score(&ask_sparse(&store, &name, &[(1, 1.0)]).await[0], idf(2, 1));
    assert_eq!(numbers(&ask_sparse(&store, &name, &[(2, 1.0)]).await), [1]);
    store.upsert(&name, vec![versions[0].clone(), versions[1].clone(), versions[2].clone()]).await.unwrap();
    assert!(ask_sparse(&store, &name, &[(2, 1.0)]).await.is_empty());
    let hits = ask_sparse(&store, &name, &[(1, 1.0), (3, 1.0)]).await;
    assert_eq!(numbers(&hits), [1, 2]);
    assert_score(&hits[0], idf(2, 1));
}

/// Wrong dimensions, a number that is not finite, a vector where the collection has none: nothing is written.
pub async fn a_wrong_point_refuses_the_whole_batch(store: Store) {
    let name = made(&store).await;
    store.upsert(&name, vec![with_sparse(1, &[(1, 1.0)])]).await.unwrap();
    let wrong: [Vec<f32>; 6] = [
        vec![],
        vec![1.0, 0.0, 0.0],
        vec![1.0, 0.0, 0.0, 0.0, 0.0],
        vec![f32::NAN, 0.0, 0.0, 1.0],
        vec![f32::INFINITY, 0.0, 0.0, 0.0],
        vec![0.0, 0.0, 0.0, f32::NEG_INFINITY],
    ];
    for vector in wrong {
        let bad = Point { dense: Some(vector.clone()), ..point(3) };
        for at in 0..3 {
            let mut batch = vec![with_sparse(1, &[(2, 1.0)]), with_dense(2, &[1.0, 0.0, 0.0, 0.0])];
            batch.insert(at, bad.clone());
            assert_kind(store.upsert(&name, batch).await, ErrorKind::Invalid);
            assert_eq!(scrolled(&store, &name, &Filter::all(), 10).await, [1], "{vector:?}");
            assert_eq!(numbers(&ask_sparse(&store, &name, &[(1, 1.0), (2, 1.0)]).await), [1]);
        }
    }
    let bare = CollectionSpec { collection: fresh(), dense: None };
    store.ensure(&bare).await.unwrap();
    let batch = vec![point(1), with_dense(2, &[1.0, 0.0, 0.0, 0.0])];
    assert_kind(store.upsert(&bare.collection, batch).await, ErrorKind::Invalid);
    assert_eq!(count(&store, &bare.collection).await, 0);
}

/// Nothing in, nothing out.
pub async fn empty_batches_do_nothing(store: Store) {
    let name = made(&store).await;
    store.upsert(&name, vec![]).await.unwrap();
    assert_eq!(count(&store, &name).await, 0);
    assert_eq!(store.get(&name, &[], Include::All).await.unwrap(), []);
    assert_eq!(store.query_batch(&[]).await.unwrap(), Vec::<Vec<_>>::new());
    assert_eq!(store.delete(&name, &Filter::all()).await.unwrap(), 0);
    assert_eq!(store.set_tags(&name, &Filter::all(), &tags(&[("a", "b")])).await.unwrap(), 0);
    assert!(ask_dense(&store, &name, &[1.0, 0.0, 0.0, 0.0]).await.is_empty());
    assert!(ask_sparse(&store, &name, &[(1, 1.0)]).await.is_empty());
    let page = store.scroll(&name, &Filter::all(), None, 10, Include::All).await.unwrap();
    assert!(page.points.is_empty() && page.next.is_none());
}

/// A delete removes the points that pass from every read, and says how many there were.
pub async fn delete_removes_what_passes(store: Store) {
    let name = made(&store).await;
    let points =
        (0..30).map(|n| Point { sparse: sparse(&[(1, 1.0)]), ..with_dense(n, &[1.0, n as f32, 0.0, 0.0]) });
    store.upsert(&name, points.collect()).await.unwrap();
    let second = Filter::only(Condition::Docs(vec![doc(1)]));
    assert_eq!(store.delete(&name, &second).await.unwrap(), 10);
    assert_eq!(store.delete(&name, &second).await.unwrap(), 0, "there are none left");
    assert_eq!(count(&store, &name).await, 20);
    assert_eq!(store.get(&name, &[id(9), id(10)], Include::Payload).await.unwrap()[1], None);
    let left: Vec<u32> = (0..10).chain(20..30).collect();
    let mut dense = numbers(&ask_dense(&store, &name, &[1.0, 0.0, 0.0, 0.0]).await);
    dense.sort_unstable();
    assert_eq!(dense, left);
    assert_eq!(numbers(&ask_sparse(&store, &name, &[(1, 1.0)]).await), left);
    assert_eq!(store.delete(&name, &Filter::all()).await.unwrap(), 20);
    assert_eq!(count(&store, &name).await, 0);
}

/// A point that was deleted can be stored again, with other vectors and tags, any number of times.
pub async fn a_deleted_id_can_return(store: Store) {
    let name = made(&store).await;
    for round in 1..6_u32 {
        let mut back = with_dense(1, &[1.0, round as f32, 0.0, 0.0]);
        back.sparse = sparse(&[(round, 1.0)]);
        store.upsert(&name, vec![back.clone(), with_sparse(2, &[(9, 1.0)])]).await.unwrap();
        assert_eq!(count(&store, &name).await, 2);
        let hits = ask_dense(&store, &name, &[1.0, round as f32, 0.0, 0.0]).await;
        assert_eq!(numbers(&hits), [1]);
        assert_score(&hits[0], 1.0);
        let terms: Vec<_> = (1..9).map(|term| (term, 1.0)).collect();
        let hits = ask_sparse(&store, &name, &terms).await;
        assert_eq!(numbers(&hits), [1]);
        assert_score(&hits[0], idf(2, 1));
        assert_eq!(store.delete(&name, &Filter::only(Condition::Ids(vec![id(1)]))).await.unwrap(), 1);
    }
}

/// All tags of the points that pass are replaced, and nothing else of them.
pub async fn set_tags_replaces_tags(store: Store) {
    let name = made(&store).await;
    let tag = |key: &str, value: &str| Condition::Tag { key: key.to_owned(), any: vec![value.to_owned()] };
    let old = |n| Point { tags: tags(&[("kind", "old"), ("shelf", "a")]), ..full(n) };
    store.upsert(&name, vec![old(1), old(2), with_tags(3, &[("kind", "other")])]).await.unwrap();
    let new = tags(&[("kind", "neu 🙂"), ("metadata.k", "v")]);
    let passing = Filter::only(tag("kind", "old")).and(Condition::Ids(vec![id(1), id(3)]));
    assert_eq!(store.set_tags(&name, &passing, &new).await.unwrap(), 1);
    let found = store.get(&name, &[id(1), id(2), id(3)], Include::All).await.unwrap();
    assert_same(found[0].as_ref().unwrap(), &Point { tags: new, ..full(1) });
    assert_same(found[1].as_ref().unwrap(), &old(2));
    for (condition, expected) in [
        (tag("kind", "old"), 1),
        (tag("kind", "neu 🙂"), 1),
        (tag("metadata.k", "v"), 1),
        (tag("shelf", "a"), 1),
    ] {
        assert_eq!(
            store.count(&name, &Filter::only(condition.clone())).await.unwrap(),
            expected,
            "{condition:?}"
        );
    }
    assert_eq!(store.set_tags(&name, &Filter::all(), &tags(&[])).await.unwrap(), 3);
    assert_eq!(store.count(&name, &Filter::only(tag("kind", "other"))).await.unwrap(), 0);
    assert_eq!(numbers(&ask_sparse(&store, &name, &[(77, 1.0)]).await), [1, 2], "vectors stay");
}

/// Keys and values of any length differ where only their last character does, and a point may have many.
pub async fn long_tags_are_compared_whole(store: Store) {
    let name = made(&store).await;
    let long = |length: usize, last: &str| "x".repeat(length) + last;
    let lengths = [100, 254, 510, 511, 1000, 5000];
    let points = (0..12).map(|n| {
        let (last, pairs) = (["a", "b"][n as usize % 2], lengths.iter());
        let by_value = pairs.clone().map(|length| (format!("key.{length}"), long(*length, last)));
        let by_key = pairs.map(|length| (long(*length, last), "value".to_owned()));
        Point { tags: by_value.chain(by_key).collect(), ..point(n) }
    });
    let points: Vec<Point> = points.collect();
    store.upsert(&name, points.clone()).await.unwrap();
    for length in lengths {
        for (last, expected) in [("a", 6), ("b", 6), ("c", 0), ("", 0)] {
            let by_value = Condition::Tag { key: format!("key.{length}"), any: vec![long(length, last)] };
            let by_key = Condition::Tag { key: long(length, last), any: vec!["value".to_owned()] };
            for condition in [by_value, by_key] {
                let found = store.count(&name, &Filter::only(condition.clone())).await.unwrap();
                assert_eq!(found, expected, "{length} {last}: {condition:?}");
            }
        }
    }
    let found = store.get(&name, &[id(3)], Include::Payload).await.unwrap();
    assert_eq!(found[0].as_ref().unwrap().tags, points[3].tags);
}
