//! Batches of queries: several threads, one snapshot.

use std::{
    iter,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use heed::RoTxn;
use lkr_vectors::{Hit, Query, QueryVector, may_block};
use tokio::{sync::OwnedSemaphorePermit, task::JoinHandle};

use super::{
    cache::OriginTable,
    dense::{self, DenseQuery},
    filter, registry,
    rows::origin,
    scope::PointScope,
    sparse,
    write::check_dims,
};
use crate::{
    env::{Kb, Snapshot},
    error::{Failure, InternalResult},
    shared::StoreShared,
};

/// How often transactions are reopened to see the same snapshot while commits intervene.
const SNAPSHOT_ATTEMPTS: usize = 16;

/// Runs queries and returns their hits in order. If the future is dropped, each thread ends after its current query.
pub(crate) async fn batch(shared: &Arc<StoreShared>, queries: Vec<Query>) -> InternalResult<Vec<Vec<Hit>>> {
    let searches = Arc::clone(&shared.searches);
    let (is_worker, threads) = (may_block(), shared.options.search_threads.min(queries.len()).max(1));
    // A thread that is one of the workers waits for none of those that hold the permits. Without one, it works alone.
    let (permit, threads) = match is_worker.then(|| Arc::clone(&searches).try_acquire_owned()) {
        None => (Some(Arc::new(searches.acquire_owned().await.map_err(Failure::internal)?)), threads),
        Some(Ok(permit)) => (Some(Arc::new(permit)), threads),
        Some(Err(_)) => (None, 1),
    };
    let queries = CancelOnDrop(Arc::new(QueryBatch { queries, next: AtomicUsize::new(0) }));
    let worker = |txn| BatchWorker {
        txn,
        _permit: permit.clone(),
        shared: Arc::clone(shared),
        queries: Arc::clone(&queries.0),
    };
    let mut snapshots = snapshots(&shared.kb, threads)?;
    let own = snapshots.pop_if(|_| is_worker).map(worker);
    let helpers: Vec<_> = snapshots.into_iter().map(|txn| Helper::start(worker(txn))).collect();
    let mut results = own.map(|own| own.run()).transpose()?.unwrap_or_default();
    for helper in helpers {
        if !is_worker || helper.has_begun() {
            results.extend(helper.task.await.map_err(Failure::internal)??);
        }
    }
    results.sort_unstable_by_key(|(at, _)| *at);
    Ok(results.into_iter().map(|(_, hits)| hits).collect())
}

/// A query's number and its hits.
type Answered = (usize, Vec<Hit>);

/// The queries of a batch; each thread takes the next one.
struct QueryBatch {
    queries: Vec<Query>,
    next: AtomicUsize,
}

impl QueryBatch {
    fn take(&self) -> Option<(usize, &Query)> {
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        self.queries.get(at).map(|query| (at, query))
    }
}

/// Stops the batch when the caller stops waiting: once this is dropped, no more queries are taken.
struct CancelOnDrop(Arc<QueryBatch>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.next.store(self.0.queries.len(), Ordering::Relaxed);
    }
}

/// A worker on a thread of the blocking pool.
struct Helper {
    is_claimed: Arc<AtomicBool>,
    task: JoinHandle<InternalResult<Vec<Answered>>>,
}

impl Helper {
    fn start(worker: BatchWorker) -> Self {
        let is_claimed = Arc::new(AtomicBool::new(false));
        let claimed = Arc::clone(&is_claimed);
        let run = move || if claimed.swap(true, Ordering::Relaxed) { Ok(Vec::new()) } else { worker.run() };
        Self { is_claimed, task: tokio::task::spawn_blocking(run) }
    }

    /// Whether it runs or has run queries. If it has not begun, it will run none, and must not be waited for: all threads of the
    /// pool may be waiting like this one.
    fn has_begun(&self) -> bool {
        self.is_claimed.swap(true, Ordering::Relaxed)
    }
}

/// A thread of a batch. It holds the permit, because it may outlive the caller. The order of the fields matters: the
/// transaction closes before another batch may open one, and before the store closes.
struct BatchWorker {
    txn: Snapshot,
    _permit: Option<Arc<OwnedSemaphorePermit>>,
    shared: Arc<StoreShared>,
    queries: Arc<QueryBatch>,
}

impl BatchWorker {
    /// Runs queries until none is left.
    fn run(&self) -> InternalResult<Vec<Answered>> {
        let next = || self.queries.take();
        iter::from_fn(next).map(|(at, query)| Ok((at, run_query(&self.shared, &self.txn, query)?))).collect()
    }
}

/// Opens `count` read transactions, on the same snapshot unless commits are faster.
fn snapshots(kb: &Kb, count: usize) -> InternalResult<Vec<Snapshot>> {
    let mut opened = Vec::new();
    for _ in 0..SNAPSHOT_ATTEMPTS {
        opened = (0..count).map(|_| kb.snapshot()).collect::<InternalResult<Vec<_>>>()?;
        if opened.windows(2).all(|pair| pair.iter().map(|snapshot| snapshot.id()).is_sorted_by(|a, b| a == b))
        {
            break;
        }
    }
    Ok(opened)
}

fn run_query(shared: &StoreShared, txn: &RoTxn, query: &Query) -> InternalResult<Vec<Hit>> {
    let kb = &shared.kb;
    let entry = registry::require(kb, txn, &query.collection)?;
    if let QueryVector::Dense(vector) = &query.vector {
        check_dims(&entry, vector.len())?;
        if let Some(value) = vector.iter().find(|value| !value.is_finite()) {
            return Err(Failure::invalid(format!("{value} in a dense vector")));
        }
    }
    let scope = PointScope::read(kb, txn, entry.number, &query.scope)?;
    let filtered = filter::selected(kb, txn, entry.number, &query.filter)?;
    let selected = filtered.map(|filtered| filtered & scope.ids());
    let selected = selected.as_ref().or(scope.restriction());
    let best = match &query.vector {
        QueryVector::Sparse(vector) => {
            let collection = (entry.number, &shared.caches.pending);
            sparse::search(kb, txn, collection, vector, (&scope, selected), query.limit)?
        }
        QueryVector::Dense(vector) => {
            let points = selected.unwrap_or(scope.ids());
            let (collection, total, limit) = (entry.number, scope.total(), query.limit);
            let query = DenseQuery { collection, vector, points, total, limit };
            dense::search(kb, txn, (&shared.clusters, &shared.caches.codes), &query)?
        }
    };
    hits(shared, txn, (entry.number, scope.total()), best, query.limit)
}

/// The hits in a collection of `total` points, highest score first, ties by id.
fn hits(
    shared: &StoreShared,
    txn: &RoTxn,
    (collection, total): (u16, u64),
    best: Vec<(f32, u32)>,
    limit: usize,
) -> InternalResult<Vec<Hit>> {
    let (kb, origins) = (&shared.kb, &shared.caches.origins);
    let known = if shared.clusters.scans_all(total) {
        // Those of a point that the table does not have are read below.
        let all = |table: &OriginTable, _, _| best.iter().map(|(_, id)| table.get(*id)).collect::<Vec<_>>();
        origins.read(kb, txn, collection, OriginTable::default, all)?
    } else {
        origins.forget(collection);
        Vec::new()
    };
    let known = known.into_iter().chain(iter::repeat(None));
    let hit = |((score, id), known): ((f32, u32), Option<_>)| {
        let (id, origin) = known.map_or_else(|| origin(kb, txn, collection, id), Ok)?;
        Ok(Hit { id, origin, score })
    };
    let mut hits = best.into_iter().zip(known).map(hit).collect::<InternalResult<Vec<_>>>()?;
    hits.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
    hits.truncate(limit);
    Ok(hits)
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        sync::mpsc,
        task::{Context, Waker},
    };

    use lkr_domain::{Scope, SparseVector};
    use lkr_vectors::{Collection, CollectionSpec, Filter, VectorStore, on_blocking_thread};
    use tokio::{runtime, task};

    use super::*;
    use crate::{LmdbOptions, LmdbStore, shared::MAX_CONCURRENT_BATCHES};

    const THREADS: usize = 3;

    /// Queries without results in the collection `points`, enough of them that each thread gets some.
    fn queries() -> Vec<Query> {
        let query = Query {
            collection: Collection::new("points").unwrap(),
            vector: QueryVector::Sparse(SparseVector::default()),
            scope: Scope::All,
            filter: Filter::all(),
            limit: 1,
        };
        vec![query; THREADS]
    }

    async fn opened(dir: &std::path::Path) -> Arc<StoreShared> {
        let options = LmdbOptions { search_threads: THREADS, ..LmdbOptions::default() };
        let vectors = LmdbStore::open(dir, options).unwrap().vectors();
        let collection = Collection::new("points").unwrap();
        vectors.ensure(&CollectionSpec { collection, dense: None }).await.unwrap();
        vectors.shared
    }

    #[test]
    fn dropped_searches_keep_their_permits_until_their_threads_end() {
        let dir = tempfile::tempdir().unwrap();
        // The only blocking thread is busy, so no search makes progress.
        let runtime = runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            let shared = opened(dir.path()).await;
            let (release, held) = mpsc::channel::<()>();
            let busy = task::spawn_blocking(move || held.recv());
            let before = shared.kb.reader_slots();
            for _ in 0..2 * MAX_CONCURRENT_BATCHES {
                let search = pin!(batch(&shared, queries()));
                assert!(search.poll(&mut Context::from_waker(Waker::noop())).is_pending());
            }
            assert_eq!(shared.searches.available_permits(), 0);
            let opened = shared.kb.reader_slots() - before;
            // The builder's permits are fewer than those of one more search.
            assert!(opened < (MAX_CONCURRENT_BATCHES + 1) * THREADS, "{opened} transactions");

            drop(release);
            assert!(busy.await.unwrap().is_err());
            assert_eq!(batch(&shared, queries()).await.unwrap(), vec![Vec::new(); THREADS]);
            // All permits are released.
            drop(shared.searches.acquire_many(MAX_CONCURRENT_BATCHES as u32).await.unwrap());
        });
    }

    #[test]
    fn thread_that_may_block_needs_no_other_one() {
        let dir = tempfile::tempdir().unwrap();
        // The work has the only thread of the pool.
        let runtime = runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            let shared = opened(dir.path()).await;
            let searching = Arc::clone(&shared);
            let both = on_blocking_thread(move || async move {
                let permits = searching.searches.acquire_many(MAX_CONCURRENT_BATCHES as u32).await.unwrap();
                let without = batch(&searching, queries()).await.unwrap();
                drop(permits);
                let with_permit = batch(&searching, queries()).await.unwrap();
                let name = Collection::new("points").unwrap();
                let read = StoreShared::read(&searching, move |kb, txn| registry::require(kb, txn, &name));
                (with_permit, without, read.await.is_ok())
            });
            let none = vec![Vec::new(); THREADS];
            assert_eq!(both.await.unwrap(), (none.clone(), none, true));
            // Helpers that did not begin have given back their permits.
            drop(shared.searches.acquire_many(MAX_CONCURRENT_BATCHES as u32).await.unwrap());
        });
    }

    #[test]
    fn dropped_batch_takes_no_more_queries() {
        let cancel_on_drop =
            CancelOnDrop(Arc::new(QueryBatch { queries: queries(), next: AtomicUsize::new(0) }));
        let queries = Arc::clone(&cancel_on_drop.0);
        assert_eq!(queries.take().map(|(at, _)| at), Some(0));
        drop(cancel_on_drop);
        assert!(queries.take().is_none());
    }
}
