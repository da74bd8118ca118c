use lkr_domain::DocId;

use super::support::*;
use crate::{Collection, Condition, Filter, Point, PointOrigin, QueryVector};

/// Twelve points of three documents; the first document has two revisions. Dense and sparse queries find each point.
fn test_points() -> Vec<Point> {
    (0..12)
        .map(|n| {
            let revision = if n < 2 { 1 } else { 2 };
            let colour = ["red", "green", "blue"][n as usize % 3];
            let mut pairs = vec![("colour", colour)];
            if n % 4 == 0 {
                pairs.push(("metadata.größe", "groß"));
            }
            if n == 11 {
                pairs = vec![("colour", ""), ("Colour", "red"), ("colour.red", "red")];
            }
            Point {
                origin: PointOrigin { doc_id: doc(n / 4), revision, ordinal: n, l2: None, l3: None },
                tags: tags(&pairs),
                dense: Some(unit(vec![1.0, n as f32, 0.0, 0.0])),
                sparse: sparse(&[(1, 2.0 - n as f32 / 12.0)]),
                ..point(n)
            }
        })
        .collect()
}

fn tag(key: &str, any: &[&str]) -> Condition {
    Condition::Tag { key: key.to_owned(), any: any.iter().map(|value| (*value).to_owned()).collect() }
}

fn ids(point_numbers: &[u32]) -> Condition {
    Condition::Ids(point_numbers.iter().copied().map(id).collect())
}

fn docs(point_numbers: &[u32]) -> Condition {
    Condition::Docs(point_numbers.iter().copied().map(doc).collect())
}

fn expectations() -> Vec<(Filter, Vec<u32>)> {
    let everything: Vec<u32> = (0..12).collect();
    let mut table = single_conditions();
    table.extend([
        (Filter::all(), everything.clone()),
        (Filter::only(tag("colour", &["red"])).and(docs(&[1])), vec![6]),
        (Filter::only(tag("colour", &["red"])).and(tag("colour", &["blue"])), vec![]),
        (Filter::only(ids(&[1, 2, 3])).and(ids(&[3, 4])), vec![3]),
        (Filter::only(docs(&[0])).and(ids(&[])), vec![]),
        (Filter::all().and_not(docs(&[0, 2])), vec![4, 5, 6, 7]),
        (Filter::all().and_not(ids(&[])), everything.clone()),
        (Filter::all().and_not(tag("colour", &[])), everything.clone()),
        (Filter::all().and_not(tag("no such key", &["x"])), everything),
        (Filter::all().and_not(tag("colour", &["red", "green"])), vec![2, 5, 8, 11]),
        (Filter::all().and_not(docs(&[0])).and_not(tag("colour", &["red", "blue"])), vec![4, 7, 10, 11]),
        (Filter::only(docs(&[0])).and_not(Condition::Revision(doc(0), 2)), vec![0, 1]),
        (Filter::only(docs(&[0])).and_not(docs(&[0])), vec![]),
        (Filter::only(tag("metadata.größe", &["groß"])).and_not(ids(&[4])), vec![0, 8]),
    ]);
    table
}

fn single_conditions() -> Vec<(Filter, Vec<u32>)> {
    vec![
        (Filter::only(ids(&[7, 0, 99])), vec![0, 7]),
        (Filter::only(ids(&[])), vec![]),
        (Filter::only(docs(&[2, 0])), vec![0, 1, 2, 3, 8, 9, 10, 11]),
        (Filter::only(docs(&[50])), vec![]),
        (Filter::only(docs(&[])), vec![]),
        (Filter::only(Condition::Docs(vec![DocId::from_bytes([0; 16])])), vec![]),
        (Filter::only(Condition::Revision(doc(0), 1)), vec![0, 1]),
        (Filter::only(Condition::Revision(doc(0), 2)), vec![2, 3]),
        (Filter::only(Condition::Revision(doc(0), 3)), vec![]),
        (Filter::only(Condition::Revision(doc(9), 1)), vec![]),
        (Filter::only(tag("colour", &["red"])), vec![0, 3, 6, 9]),
        (Filter::only(tag("colour", &["red", "blue", "red"])), vec![0, 2, 3, 5, 6, 8, 9]),
        (Filter::only(tag("colour", &[])), vec![]),
        (Filter::only(tag("colour", &[""])), vec![11]),
        (Filter::only(tag("colour", &["re", "RED", "red "])), vec![]),
        (Filter::only(tag("Colour", &["red"])), vec![11]),
        (Filter::only(tag("colou", &["red", "rred"])), vec![]),
        (Filter::only(tag("", &["red"])), vec![]),
        (Filter::only(tag("metadata.größe", &["groß"])), vec![0, 4, 8]),
    ]
}

/// Every operation interprets each kind of condition in the same way, in `must` and in `must_not`.
pub async fn filters_select_the_same_points_in_every_operation(store: Store) {
    let name = create_collection(&store).await;
    store.upsert(&name, test_points()).await.unwrap();
    for (filter, expected) in expectations() {
        assert_filter_selects(&store, &name, &filter, &expected).await;
        let by_matches: Vec<u32> = test_points()
            .iter()
            .filter(|point| filter.matches(point.id, &point.origin, &point.tags))
            .map(|point| point_number(point.id))
            .collect();
        assert_eq!(by_matches, expected, "Filter::matches with {filter:?}");
    }
    for (filter, expected) in expectations() {
        let deleted = store.delete(&name, &filter).await.unwrap();
        assert_eq!(deleted, expected.len() as u64, "delete with {filter:?}");
        assert_eq!(count(&store, &name).await, 12 - deleted, "delete with {filter:?}");
        store.upsert(&name, test_points()).await.unwrap();
        let new = tags(&[("colour", "new")]);
        let tagged = store.set_tags(&name, &filter, &new).await.unwrap();
        assert_eq!(tagged, expected.len() as u64, "set_tags with {filter:?}");
        assert_filter_selects(&store, &name, &Filter::only(tag("colour", &["new"])), &expected).await;
        store.upsert(&name, test_points()).await.unwrap();
    }
}

async fn assert_filter_selects(store: &Store, name: &Collection, filter: &Filter, expected: &[u32]) {
    assert_eq!(store.count(name, filter).await.unwrap(), expected.len() as u64, "count with {filter:?}");
    let mut all = scroll_all(store, name, filter, 2).await;
    all.sort_unstable();
    assert_eq!(all, expected, "scroll with {filter:?}");
    let dense = QueryVector::Dense(vec![1.0, 0.0, 0.0, 0.0]);
    let sparse = QueryVector::Sparse(sparse(&[(1, 1.0)]));
    for vector in [dense, sparse] {
        let hits = search(store, name, vector, filter, 100).await.unwrap();
        assert_eq!(point_numbers(&hits), expected, "query with {filter:?}");
    }
}
