//! Batches of queries: one consistent state, several threads.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use heed::RoTxn;
use lkr_vectors::{Hit, Query, QueryVector};

use super::{
    dense::{self, DenseQuery},
    filter, registry, sparse,
    write::{check_dims, origin},
};
use crate::{
    env::{Kb, Snapshot},
    error::{Done, Failure},
    shared::Shared,
};

/// How often transactions are opened again to see the same state, while commits come in between.
const ATTEMPTS: usize = 16;

/// Answers queries in their order.
pub(crate) async fn batch(shared: &Arc<Shared>, queries: Vec<Query>) -> Done<Vec<Vec<Hit>>> {
    let _permit = shared.searches.acquire().await.map_err(Failure::internal)?;
    let workers = shared.options.search_threads.min(queries.len());
    if workers <= 1 {
        return Shared::blocking(shared, move |shared| {
            let txn = shared.kb.env.read_txn()?;
            queries.iter().map(|query| answer(shared, &txn, query)).collect()
        })
        .await;
    }
    let (queries, next) = (Arc::new(queries), Arc::new(AtomicUsize::new(0)));
    let mut tasks = Vec::with_capacity(workers);
    for txn in snapshots(&shared.kb, workers)? {
        let (shared, queries, next) = (Arc::clone(shared), Arc::clone(&queries), Arc::clone(&next));
        tasks.push(tokio::task::spawn_blocking(move || work(&shared, &txn, &queries, &next)));
    }
    let mut answers = Vec::with_capacity(queries.len());
    for task in tasks {
        answers.extend(task.await.map_err(Failure::internal)??);
    }
    answers.sort_unstable_by_key(|(at, _)| *at);
    Ok(answers.into_iter().map(|(_, hits)| hits).collect())
}

/// As many read transactions, of the same state unless commits come faster than they can be opened.
fn snapshots(kb: &Kb, count: usize) -> Done<Vec<Snapshot>> {
    let mut opened = Vec::new();
    for _ in 0..ATTEMPTS {
        opened = (0..count).map(|_| kb.snapshot()).collect::<Done<Vec<_>>>()?;
        if opened.windows(2).all(|pair| pair.iter().map(RoTxn::id).is_sorted_by(|a, b| a == b)) {
            break;
        }
    }
    Ok(opened)
}

/// Takes queries until none is left.
fn work(shared: &Shared, txn: &RoTxn, queries: &[Query], next: &AtomicUsize) -> Done<Vec<(usize, Vec<Hit>)>> {
    let mut answers = Vec::new();
    loop {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let Some(query) = queries.get(at) else { return Ok(answers) };
        answers.push((at, answer(shared, txn, query)?));
    }
}

fn answer(shared: &Shared, txn: &RoTxn, query: &Query) -> Done<Vec<Hit>> {
    let kb = &shared.kb;
    let known = registry::require(kb, txn, &query.collection)?;
    if let QueryVector::Dense(vector) = &query.vector {
        check_dims(&known, vector.len())?;
        if let Some(value) = vector.iter().find(|value| !value.is_finite()) {
            return Err(Failure::invalid(format!("{value} in a dense vector")));
        }
    }
    let selected = filter::selected(kb, txn, known.number, &query.filter)?;
    let selected = selected.as_ref();
    let best = match &query.vector {
        QueryVector::Sparse(vector) => sparse::search(kb, txn, known.number, vector, selected, query.limit)?,
        QueryVector::Dense(vector) => {
            let query = DenseQuery { collection: known.number, vector, selected, limit: query.limit };
            dense::search(kb, txn, &shared.graphs, &query)?
        }
    };
    hits(kb, txn, known.number, best, query.limit)
}

/// The hits, highest score first, ties by id.
fn hits(kb: &Kb, txn: &RoTxn, collection: u16, best: Vec<(f32, u32)>, limit: usize) -> Done<Vec<Hit>> {
    let hit = |(score, id)| {
        let (id, origin) = origin(kb, txn, collection, id)?;
        Ok(Hit { id, origin, score })
    };
    let mut hits = best.into_iter().map(hit).collect::<Done<Vec<_>>>()?;
    hits.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
    hits.truncate(limit);
    Ok(hits)
}
