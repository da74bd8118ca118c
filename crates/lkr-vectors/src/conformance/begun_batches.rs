use std::time::Duration;

use super::support::*;
use crate::{BegunBatch, Collection, Condition, ErrorKind, Filter, Query, QueryVector, on_blocking_thread};

/// Begins a batch. A store may refuse while threads of earlier batches end; `None` if it begins none at all.
async fn begin(store: &Store, queries: &[Query]) -> Option<Box<dyn BegunBatch>> {
    for _ in 0..50 {
        let begun = store.begin_batch(queries).unwrap();
        if begun.is_some() {
            return begun;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    None
}

/// Three queries that a batch begins with, and three that it gets at its end.
fn queries(name: &Collection) -> (Vec<Query>, Vec<Query>) {
    let all = Filter::all();
    let terms = |term| query(name, QueryVector::Sparse(sparse(&[(term, 1.0)])), &all, 9);
    let dense = |vector: [f32; DIMS]| query(name, QueryVector::Dense(vector.to_vec()), &all, 9);
    let more = vec![dense([1.0, 0.0, 0.0, 0.0]), terms(2), dense([0.0, 1.0, 0.0, 0.0])];
    (vec![terms(1), terms(7), terms(2)], more)
}

/// A begun batch answers like a whole one, on any thread, and sees the state in which it began. Stores that begin none are not
/// tested.
pub async fn begun_batch_sees_the_state_in_which_it_began(store: Store) {
    let name = create_collection(&store).await;
    let point = |n: u32| {
        let angle = n as f32 / 10.0;
        let mut point = with_dense(n, &[angle.cos(), angle.sin(), 0.0, 0.0]);
        point.sparse = sparse(&[(1, n as f32), (2, 9.0 - n as f32)]);
        point
    };
    store.upsert(&name, (1..6).map(point).collect()).await.unwrap();
    let (first, more) = queries(&name);
    let whole: Vec<Query> = first.iter().chain(&more).cloned().collect();
    let expected = store.query_batch(&whole).await.unwrap();
    assert!(expected.iter().filter(|hits| hits.len() == 5).count() == 5, "{expected:?}");
    for (may_block, early) in [(false, false), (true, false), (false, true), (true, true)] {
        let Some(mut begun) = begin(&store, &first).await else { return };
        if early {
            // The first call is given up.
            poll_once(begun.begun());
            assert_eq!(begun.begun().await.unwrap(), expected[..first.len()]);
        } else if may_block {
            // A thread that may block answers some of the first queries, and all of them if it is asked again.
            let some_then_all = on_blocking_thread(move || async move {
                poll_once(begun.begun());
                let first = begun.begun().await;
                (begun, first)
            });
            let (batch, hits) = some_then_all.await.unwrap();
            assert_eq!(hits.unwrap(), expected[..first.len()]);
            begun = batch;
        }
        store.upsert(&name, vec![point(8)]).await.unwrap();
        store.delete(&name, &Filter::only(Condition::Ids(vec![id(2)]))).await.unwrap();
        let more = more.clone();
        let hits = if may_block {
            on_blocking_thread(move || async move { begun.finish(&more).await }).await.unwrap()
        } else {
            begun.finish(&more).await
        };
        assert_eq!(hits.unwrap(), expected);
        store.upsert(&name, vec![point(2)]).await.unwrap();
        store.delete(&name, &Filter::only(Condition::Ids(vec![id(8)]))).await.unwrap();
    }
    for early in [false, true] {
        let mut begun = begin(&store, &first).await.unwrap();
        if early {
            assert_eq!(begun.begun().await.unwrap(), expected[..first.len()]);
        }
        let begun = on_blocking_thread(move || async move {
            // Given up after some queries.
            poll_once(begun.begun());
            begun
        });
        let begun = begun.await.unwrap();
        assert_eq!(begun.finish(&[]).await.unwrap(), expected[..first.len()]);
    }
}

/// A query that is invalid fails the batch at its end, whether it was known at the beginning or not, and before if it was.
pub async fn invalid_query_fails_a_begun_batch_at_its_end(store: Store) {
    let name = create_collection(&store).await;
    let (first, more) = queries(&name);
    let too_long = query(&name, QueryVector::Dense(vec![1.0; DIMS + 1]), &Filter::all(), 9);
    let missing = query(&unique_name(), first[0].vector.clone(), &Filter::all(), 9);
    for (invalid, kind) in [(too_long, ErrorKind::Invalid), (missing, ErrorKind::NotFound)] {
        let with_invalid = [vec![invalid.clone()], first.clone()].concat();
        let Some(begun) = begin(&store, &with_invalid).await else { return };
        assert_kind(begun.finish(&more).await, kind);
        let mut begun = begin(&store, &with_invalid).await.unwrap();
        assert_kind(begun.begun().await, kind);
        drop(begun);
        let begun = begin(&store, &first).await.unwrap();
        assert_kind(begun.finish(&[more.clone(), vec![invalid]].concat()).await, kind);
    }
}

/// Dropping begun batches, after none or some of their queries were run, leaves the store usable.
pub async fn dropped_begun_batches_leave_the_store_usable(store: Store) {
    let name = create_collection(&store).await;
    store.upsert(&name, vec![with_sparse(1, &[(1, 1.0)])]).await.unwrap();
    let (first, more) = queries(&name);
    for round in 0..100 {
        let Some(mut begun) = store.begin_batch(&first).unwrap() else { continue };
        if round % 5 == 0 {
            poll_once(begun.begun());
        }
        if round % 2 == 0 {
            tokio::task::yield_now().await;
        }
        if round % 3 == 0 {
            poll_once(begun.finish(&more));
        }
    }
    let hits = store.query_batch(&first).await.unwrap();
    assert_eq!(hits.iter().map(Vec::len).collect::<Vec<_>>(), [1, 0, 0]);
}
