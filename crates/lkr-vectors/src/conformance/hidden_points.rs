use lkr_domain::{PointId, Scope, SpaceName};

use super::{
    model::{DOCS, IDS, TERMS, random_filter, random_point, random_tags},
    rng::Rng,
    support::*,
};
use crate::{Collection, Condition, Filter, Include, Point, Query, QueryVector, SPACE_TAG, ScrollCursor};

/// The spaces that reads are about, and those that they are not.
const READABLE: [&str; 2] = ["red", "green"];
const HIDDEN: [&str; 2] = ["black", "grey"];

/// The first number of a point that is hidden from the start.
const FIRST_HIDDEN: u32 = 1000;

/// Random sequences of writes and reads on two collections. One of them also gets points of other spaces. Every result in
/// the readable spaces is the same, bit for bit.
pub async fn random_points_of_other_spaces_change_no_result(store: Store) {
    for seed in 1..=10 {
        let (mixed, alone) = (create_collection(&store).await, create_collection(&store).await);
        let mut rng = Rng::new(seed);
        for step in 0..125 {
            let context = format!("seed {seed}, step {step}");
            change_both(&store, [&mixed, &alone], &mut rng, &context).await;
            for _ in 0..rng.below(3) {
                change_hidden(&store, &mixed, &mut rng).await;
            }
            compare_queries(&store, [&mixed, &alone], &mut rng, &context).await;
            compare_lists(&store, [&mixed, &alone], &mut rng, &context).await;
        }
        store.drop_collection(&mixed).await.unwrap();
        store.drop_collection(&alone).await.unwrap();
    }
}

async fn change_both(store: &Store, both: [&Collection; 2], rng: &mut Rng, context: &str) {
    match rng.below(10) {
        0..6 => {
            let points: Vec<Point> = (0..rng.below(8)).map(|_| in_one_of(&READABLE, 0, rng)).collect();
            for collection in both {
                store.upsert(collection, points.clone()).await.unwrap();
            }
        }
        6..8 => {
            let docs = Condition::Docs(vec![doc(rng.below(DOCS) as u32)]);
            let filter = in_spaces(&READABLE, random_filter(rng).and(docs));
            let [mixed, alone] = [
                store.delete(both[0], &filter).await.unwrap(),
                store.delete(both[1], &filter).await.unwrap(),
            ];
            assert_eq!(mixed, alone, "{context}: {filter:?}");
        }
        // Most stay readable; some are hidden from now on.
        _ => {
            let filter = in_spaces(&READABLE, random_filter(rng));
            let spaces = if rng.below(3) == 0 { HIDDEN } else { READABLE };
            let tags = in_space(&spaces, random_tags(rng), rng);
            let [mixed, alone] = [
                store.set_tags(both[0], &filter, &tags).await.unwrap(),
                store.set_tags(both[1], &filter, &tags).await.unwrap(),
            ];
            assert_eq!(mixed, alone, "{context}: {filter:?}");
        }
    }
}

/// Changes points that are hidden from the start.
async fn change_hidden(store: &Store, mixed: &Collection, rng: &mut Rng) {
    let hidden_ids = (0..IDS as u32).map(|n| id(FIRST_HIDDEN + n)).collect();
    let only_hidden = Filter::only(Condition::Ids(hidden_ids)).and(random_docs(rng));
    match rng.below(10) {
        0..6 => {
            let points = (0..rng.below(8)).map(|_| in_one_of(&HIDDEN, FIRST_HIDDEN, rng)).collect();
            store.upsert(mixed, points).await.unwrap();
        }
        6 => {
            store.delete(mixed, &only_hidden).await.unwrap();
        }
        // A point without a space is in no scope either.
        7 => {
            let mut tags = random_tags(rng);
            tags.remove(SPACE_TAG);
            store.set_tags(mixed, &only_hidden, &tags).await.unwrap();
        }
        _ => {
            let tags = in_space(&HIDDEN, random_tags(rng), rng);
            store.set_tags(mixed, &only_hidden, &tags).await.unwrap();
        }
    }
}

async fn compare_queries(store: &Store, both: [&Collection; 2], rng: &mut Rng, context: &str) {
    let filter = random_filter(rng);
    let scopes = [&READABLE[..], &READABLE[..1], &READABLE[1..]];
    let scope: Scope =
        scopes[rng.below(3) as usize].iter().map(|name| SpaceName::new(*name).unwrap()).collect();
    let vectors = [
        QueryVector::Dense(rng.dense(DIMS)),
        QueryVector::Sparse(rng.sparse(6, TERMS)),
        QueryVector::Sparse(rng.sparse(2, TERMS)),
    ];
    let batch = |collection: &Collection| -> Vec<Query> {
        let queries = vectors.iter().flat_map(|vector| [(vector, 3), (vector, 200)]);
        let query = |(vector, limit): (&QueryVector, usize)| Query {
            scope: scope.clone(),
            ..query(collection, vector.clone(), &filter, limit)
        };
        queries.map(query).collect()
    };
    let mixed = store.query_batch(&batch(both[0])).await.unwrap();
    let alone = store.query_batch(&batch(both[1])).await.unwrap();
    let bits = |hits: &[crate::Hit]| -> Vec<(PointId, u32)> {
        hits.iter().map(|hit| (hit.id, hit.score.to_bits())).collect()
    };
    for (mixed, alone) in mixed.iter().zip(&alone) {
        assert_eq!(mixed, alone, "{context}: {scope:?} {filter:?}");
        assert_eq!(bits(mixed), bits(alone), "{context}: {scope:?} {filter:?}");
    }
}

/// Compares counts and the pages of scrolls.
async fn compare_lists(store: &Store, both: [&Collection; 2], rng: &mut Rng, context: &str) {
    let filter = in_spaces(&READABLE, random_filter(rng));
    let [mixed, alone] =
        [store.count(both[0], &filter).await.unwrap(), store.count(both[1], &filter).await.unwrap()];
    assert_eq!(mixed, alone, "{context}: {filter:?}");
    let limit = 1 + rng.below(10) as usize;
    let [mixed, alone] =
        [pages(store, both[0], &filter, limit).await, pages(store, both[1], &filter, limit).await];
    assert_eq!(mixed, alone, "{context}: {filter:?}");
}

async fn pages(store: &Store, collection: &Collection, filter: &Filter, limit: usize) -> Vec<Vec<Point>> {
    let (mut pages, mut after): (_, Option<ScrollCursor>) = (Vec::new(), None);
    loop {
        let page = store.scroll(collection, filter, after.as_ref(), limit, Include::All).await.unwrap();
        pages.push(page.points);
        after = page.next;
        if after.is_none() {
            return pages;
        }
    }
}

/// A random point of one of the spaces. Its number is at least `first`.
fn in_one_of(spaces: &[&str], first: u32, rng: &mut Rng) -> Point {
    let point = random_point(rng);
    let tags = in_space(spaces, point.tags, rng);
    Point { id: id(first + point_number(point.id)), tags, ..point }
}

fn in_space(spaces: &[&str], mut tags: crate::Tags, rng: &mut Rng) -> crate::Tags {
    let space = spaces[rng.below(spaces.len() as u64) as usize];
    tags.insert(SPACE_TAG.to_owned(), space.to_owned());
    tags
}

/// The filter, restricted to some spaces.
fn in_spaces(spaces: &[&str], filter: Filter) -> Filter {
    let any = spaces.iter().map(|space| (*space).to_owned()).collect();
    filter.and(Condition::Tag { key: SPACE_TAG.to_owned(), any })
}

fn random_docs(rng: &mut Rng) -> Condition {
    Condition::Docs((0..1 + rng.below(4)).map(|_| doc(rng.below(DOCS) as u32)).collect())
}
