use serde_json::json;

use super::support::*;
use crate::{CollectionSpec, Condition, ErrorKind, Filter, Include, Point, PointOrigin};

/// A point with a value in every field.
fn complete_point(n: u32) -> Point {
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

/// `Include::All` returns the point as stored, `Include::Payload` returns it without vectors, and `Include::Content` also
/// without tags.
pub async fn get_and_scroll_return_points_as_stored(store: Store) {
    let name = create_collection(&store).await;
    store.upsert(&name, vec![complete_point(1), point(2)]).await.unwrap();
    let found = store.get(&name, &[id(1), id(2)], Include::All).await.unwrap();
    assert_points_equal(found[0].as_ref().unwrap(), &complete_point(1));
    assert_points_equal(found[1].as_ref().unwrap(), &point(2));
    let bare = Point { dense: None, sparse: sparse(&[]), ..complete_point(1) };
    let found = store.get(&name, &[id(1)], Include::Payload).await.unwrap();
    assert_eq!(found[0].as_ref().unwrap(), &bare);
    let content = Point { tags: tags(&[]), ..bare.clone() };
    let found = store.get(&name, &[id(1)], Include::Content).await.unwrap();
    assert_eq!(found[0].as_ref().unwrap(), &content);
    let only = Filter::only(Condition::Ids(vec![id(1)]));
    let page = store.scroll(&name, &only, None, 10, Include::All).await.unwrap();
    assert_points_equal(&page.points[0], &complete_point(1));
    let page = store.scroll(&name, &only, None, 10, Include::Payload).await.unwrap();
    assert_eq!(page.points, [bare]);
    let page = store.scroll(&name, &only, None, 10, Include::Content).await.unwrap();
    assert_eq!(page.points, [content]);
}

/// A payload may be any JSON value.
pub async fn payload_of_any_json_value_is_returned_unchanged(store: Store) {
    let name = create_collection(&store).await;
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

/// The result for each id is at the position of the id, `None` if it does not exist.
pub async fn get_returns_points_in_the_order_of_the_ids(store: Store) {
    let name = create_collection(&store).await;
    store.upsert(&name, (0..20).map(point).collect()).await.unwrap();
    let requested = [19, 3, 400, 3, 0, 401, 11];
    let found = store.get(&name, &requested.map(id), Include::All).await.unwrap();
    let found: Vec<_> =
        found.iter().map(|point| point.as_ref().map(|point| point_number(point.id))).collect();
    assert_eq!(found, [Some(19), Some(3), None, Some(3), Some(0), None, Some(11)]);
}

/// After a replacement no query or filter finds the old tags, terms, vector or origin.
pub async fn upsert_of_an_existing_id_removes_the_old_point_from_every_index(store: Store) {
    let name = create_collection(&store).await;
    let mut old = complete_point(1);
    old.sparse = sparse(&[(1, 1.0), (2, 1.0)]);
    store.upsert(&name, vec![old, with_sparse(2, &[(1, 1.0)])]).await.unwrap();
    let mut new = with_sparse(1, &[(3, 1.0)]);
    new.tags = tags(&[("kind", "new")]);
    store.upsert(&name, vec![new.clone()]).await.unwrap();

    assert_eq!(count(&store, &name).await, 2);
    assert_points_equal(store.get(&name, &[id(1)], Include::All).await.unwrap()[0].as_ref().unwrap(), &new);
    assert!(
        search_dense(&store, &name, &[0.1, -0.2, 0.3, 0.4]).await.is_empty(),
        "the old vector must be removed"
    );
    assert!(search_sparse(&store, &name, &[(2, 1.0)]).await.is_empty(), "the old term must be removed");
    let hits = search_sparse(&store, &name, &[(1, 1.0)]).await;
    assert_eq!(point_numbers(&hits), [2]);
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

/// If a batch contains an id twice, the last point is stored and counted once.
pub async fn upsert_of_equal_ids_in_one_batch_stores_the_last(store: Store) {
    let name = create_collection(&store).await;
    let versions = [(1, 1.0), (2, 1.0), (3, 1.0)].map(|term| with_sparse(1, &[term]));
    store
        .upsert(&name, vec![versions[0].clone(), with_sparse(2, &[(1, 1.0)]), versions[1].clone()])
        .await
        .unwrap();
    assert_eq!(count(&store, &name).await, 2);
    assert_score(&search_sparse(&store, &name, &[(1, 1.0)]).await[0], idf(2, 1));
    assert_eq!(point_numbers(&search_sparse(&store, &name, &[(2, 1.0)]).await), [1]);
    store.upsert(&name, vec![versions[0].clone(), versions[1].clone(), versions[2].clone()]).await.unwrap();
    assert!(search_sparse(&store, &name, &[(2, 1.0)]).await.is_empty());
    let hits = search_sparse(&store, &name, &[(1, 1.0), (3, 1.0)]).await;
    assert_eq!(point_numbers(&hits), [1, 2]);
    assert_score(&hits[0], idf(2, 1));
}

/// Wrong dimensions, a number that is not finite, or a vector in a collection without dense vectors.
pub async fn upsert_with_one_invalid_point_stores_nothing(store: Store) {
    let name = create_collection(&store).await;
    store.upsert(&name, vec![with_sparse(1, &[(1, 1.0)])]).await.unwrap();
    let invalid_vectors: [Vec<f32>; 6] = [
        vec![],
        vec![1.0, 0.0, 0.0],
        vec![1.0, 0.0, 0.0, 0.0, 0.0],
        vec![f32::NAN, 0.0, 0.0, 1.0],
        vec![f32::INFINITY, 0.0, 0.0, 0.0],
        vec![0.0, 0.0, 0.0, f32::NEG_INFINITY],
    ];
    for vector in invalid_vectors {
        let invalid = Point { dense: Some(vector.clone()), ..point(3) };
        for position in 0..3 {
            let mut batch = vec![with_sparse(1, &[(2, 1.0)]), with_dense(2, &[1.0, 0.0, 0.0, 0.0])];
            batch.insert(position, invalid.clone());
            assert_kind(store.upsert(&name, batch).await, ErrorKind::Invalid);
            assert_eq!(scroll_all(&store, &name, &Filter::all(), 10).await, [1], "{vector:?}");
            assert_eq!(point_numbers(&search_sparse(&store, &name, &[(1, 1.0), (2, 1.0)]).await), [1]);
        }
    }
    let bare = CollectionSpec { collection: unique_name(), dense: None };
    store.ensure(&bare).await.unwrap();
    let batch = vec![point(1), with_dense(2, &[1.0, 0.0, 0.0, 0.0])];
    assert_kind(store.upsert(&bare.collection, batch).await, ErrorKind::Invalid);
    assert_eq!(count(&store, &bare.collection).await, 0);
}

/// All points are stored. If those of an earlier collection are refused, none of the last collection are.
pub async fn upsert_of_several_collections_stores_the_last_after_the_others(store: Store) {
    let (first, second, last) =
        (create_collection(&store).await, create_collection(&store).await, create_collection(&store).await);
    let counts =
        async || [count(&store, &first).await, count(&store, &second).await, count(&store, &last).await];
    let vector = |n, vector: &[f32]| with_dense(n, vector);
    let batch = |points: Vec<Point>| {
        vec![(first.clone(), points), (second.clone(), vec![]), (last.clone(), vec![point(3)])]
    };
    store.upsert_all(vec![]).await.unwrap();
    assert_kind(store.upsert_all(batch(vec![vector(1, &[1.0, 0.0])])).await, ErrorKind::Invalid);
    assert_eq!(counts().await, [0, 0, 0]);
    let unknown = vec![(unique_name(), vec![point(1)]), (last.clone(), vec![point(3)])];
    assert_kind(store.upsert_all(unknown).await, ErrorKind::NotFound);
    assert_eq!(counts().await, [0, 0, 0]);
    store.upsert_all(batch(vec![vector(1, &[1.0, 0.0, 0.0, 0.0]), point(2)])).await.unwrap();
    assert_eq!(counts().await, [2, 0, 1]);
    assert_eq!(point_numbers(&search_dense(&store, &first, &[1.0, 0.0, 0.0, 0.0]).await), [1]);
}

/// Empty batches succeed, and operations on an empty collection return nothing.
pub async fn empty_batches_change_nothing(store: Store) {
    let name = create_collection(&store).await;
    store.upsert(&name, vec![]).await.unwrap();
    assert_eq!(count(&store, &name).await, 0);
    assert_eq!(store.get(&name, &[], Include::All).await.unwrap(), []);
    assert_eq!(store.query_batch(&[]).await.unwrap(), Vec::<Vec<_>>::new());
    assert_eq!(store.delete(&name, &Filter::all()).await.unwrap(), 0);
    assert_eq!(store.set_tags(&name, &Filter::all(), &tags(&[("a", "b")])).await.unwrap(), 0);
    assert!(search_dense(&store, &name, &[1.0, 0.0, 0.0, 0.0]).await.is_empty());
    assert!(search_sparse(&store, &name, &[(1, 1.0)]).await.is_empty());
    let page = store.scroll(&name, &Filter::all(), None, 10, Include::All).await.unwrap();
    assert!(page.points.is_empty() && page.next.is_none());
}

/// No read returns a deleted point, and `delete` returns the number of points it removed.
pub async fn delete_removes_matching_points_from_every_index(store: Store) {
    let name = create_collection(&store).await;
    let points =
        (0..30).map(|n| Point { sparse: sparse(&[(1, 1.0)]), ..with_dense(n, &[1.0, n as f32, 0.0, 0.0]) });
    store.upsert(&name, points.collect()).await.unwrap();
    let second_document = Filter::only(Condition::Docs(vec![doc(1)]));
    assert_eq!(store.delete(&name, &second_document).await.unwrap(), 10);
    assert_eq!(
        store.delete(&name, &second_document).await.unwrap(),
        0,
        "a second delete must remove nothing"
    );
    assert_eq!(count(&store, &name).await, 20);
    assert_eq!(store.get(&name, &[id(9), id(10)], Include::Payload).await.unwrap()[1], None);
    let remaining: Vec<u32> = (0..10).chain(20..30).collect();
    let mut dense = point_numbers(&search_dense(&store, &name, &[1.0, 0.0, 0.0, 0.0]).await);
    dense.sort_unstable();
    assert_eq!(dense, remaining);
    assert_eq!(point_numbers(&search_sparse(&store, &name, &[(1, 1.0)]).await), remaining);
    assert_eq!(store.delete(&name, &Filter::all()).await.unwrap(), 20);
    assert_eq!(count(&store, &name).await, 0);
}

/// A deleted id can be stored again with other vectors and tags, repeatedly.
pub async fn deleted_id_can_be_stored_again(store: Store) {
    let name = create_collection(&store).await;
    for round in 1..6_u32 {
        let mut point = with_dense(1, &[1.0, round as f32, 0.0, 0.0]);
        point.sparse = sparse(&[(round, 1.0)]);
        store.upsert(&name, vec![point, with_sparse(2, &[(9, 1.0)])]).await.unwrap();
        assert_eq!(count(&store, &name).await, 2);
        let hits = search_dense(&store, &name, &[1.0, round as f32, 0.0, 0.0]).await;
        assert_eq!(point_numbers(&hits), [1]);
        assert_score(&hits[0], 1.0);
        let terms: Vec<_> = (1..9).map(|term| (term, 1.0)).collect();
        let hits = search_sparse(&store, &name, &terms).await;
        assert_eq!(point_numbers(&hits), [1]);
        assert_score(&hits[0], idf(2, 1));
        assert_eq!(store.delete(&name, &Filter::only(Condition::Ids(vec![id(1)]))).await.unwrap(), 1);
    }
}

/// All tags of matching points are replaced; other fields and other points do not change.
pub async fn set_tags_replaces_only_tags_of_matching_points(store: Store) {
    let name = create_collection(&store).await;
    let tag = |key: &str, value: &str| Condition::Tag { key: key.to_owned(), any: vec![value.to_owned()] };
    let old = |n| Point { tags: tags(&[("kind", "old"), ("group", "a")]), ..complete_point(n) };
    store.upsert(&name, vec![old(1), old(2), with_tags(3, &[("kind", "other")])]).await.unwrap();
    let new = tags(&[("kind", "neu 🙂"), ("metadata.k", "v")]);
    let matching = Filter::only(tag("kind", "old")).and(Condition::Ids(vec![id(1), id(3)]));
    assert_eq!(store.set_tags(&name, &matching, &new).await.unwrap(), 1);
    let found = store.get(&name, &[id(1), id(2), id(3)], Include::All).await.unwrap();
    assert_points_equal(found[0].as_ref().unwrap(), &Point { tags: new, ..complete_point(1) });
    assert_points_equal(found[1].as_ref().unwrap(), &old(2));
    for (condition, expected) in [
        (tag("kind", "old"), 1),
        (tag("kind", "neu 🙂"), 1),
        (tag("metadata.k", "v"), 1),
        (tag("group", "a"), 1),
    ] {
        assert_eq!(
            store.count(&name, &Filter::only(condition.clone())).await.unwrap(),
            expected,
            "{condition:?}"
        );
    }
    assert_eq!(store.set_tags(&name, &Filter::all(), &tags(&[])).await.unwrap(), 3);
    assert_eq!(store.count(&name, &Filter::only(tag("kind", "other"))).await.unwrap(), 0);
    assert_eq!(point_numbers(&search_sparse(&store, &name, &[(77, 1.0)]).await), [1, 2], "vectors must stay");
}

/// Long keys and values that differ only in their last character are distinct; a point may have many of them.
pub async fn long_tags_are_compared_in_full(store: Store) {
    let name = create_collection(&store).await;
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
