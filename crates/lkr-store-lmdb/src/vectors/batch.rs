//! Batches of queries: several threads, one snapshot. A batch may begin before all of its queries are known.

use std::{
    collections::VecDeque,
    iter, mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use lkr_vectors::{Hit, Query, may_block};
use tokio::{
    sync::{OwnedSemaphorePermit, oneshot},
    task::yield_now,
};

use super::{query::run_query, registry};
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
        None => (Some(searches.acquire_owned().await.map_err(Failure::internal)?), threads),
        Some(Ok(permit)) => (Some(permit), threads),
        Some(Err(_)) => (None, 1),
    };
    Batch::open(shared, queries, threads, permit)?.finish(&[]).await
}

/// Opens a batch that will have more queries. `None` if it has none yet, or if too many other searches run.
pub(crate) fn begin(shared: &Arc<StoreShared>, queries: Vec<Query>) -> InternalResult<Option<Batch>> {
    if queries.is_empty() {
        return Ok(None);
    }
    let Ok(permit) = Arc::clone(&shared.searches).try_acquire_owned() else { return Ok(None) };
    let threads = shared.options.search_threads.max(1);
    let mut batch = Batch::open(shared, queries, threads, Some(permit))?;
    if batch.suits_two_threads() {
        batch.start_helper()?;
    }
    Ok(Some(batch))
}

/// A query's number in its batch, and its hits.
type Answered = (usize, Vec<Hit>);

/// A worker that found no more queries, and what it answered.
type Ended = (Worker, InternalResult<Vec<Answered>>);

/// The queries of a batch that no thread has taken yet, with their numbers.
#[derive(Debug)]
struct Queue(Mutex<VecDeque<(usize, Query)>>);

impl Queue {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<(usize, Query)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A batch whose queries are run by threads on the same snapshot. Once it is dropped, each thread ends after its current query.
#[derive(Debug)]
pub(crate) struct Batch {
    queue: Arc<Queue>,
    /// How many queries it has had.
    queries: usize,
    /// Workers without a thread.
    idle: Vec<Worker>,
    helpers: Vec<Helper>,
    /// What helpers that have ended answered.
    answered: Vec<Answered>,
}

impl Batch {
    /// A batch for `threads` threads.
    fn open(
        shared: &Arc<StoreShared>,
        queries: Vec<Query>,
        threads: usize,
        permit: Option<OwnedSemaphorePermit>,
    ) -> InternalResult<Self> {
        let (count, permit) = (queries.len(), permit.map(Arc::new));
        let queue = Arc::new(Queue(Mutex::new(queries.into_iter().enumerate().collect())));
        let worker = |txn| Worker {
            txn,
            _permit: permit.clone(),
            shared: Arc::clone(shared),
            queue: Arc::clone(&queue),
        };
        let idle = snapshots(&shared.kb, threads)?.into_iter().map(worker).collect();
        Ok(Self { queue, queries: count, idle, helpers: Vec::new(), answered: Vec::new() })
    }

    /// Whether its queries are so many, and of so large collections, that two threads should run them. What cannot be read fails once
    /// they run.
    fn suits_two_threads(&self) -> bool {
        let queries = self.queue.waiting();
        let Some(Worker { txn, shared, .. }) = self.idle.last().filter(|_| queries.len() > 1) else {
            return false;
        };
        let points = queries.iter().map(|(_, query)| {
            let entry = registry::require(&shared.kb, txn, &query.collection).ok()?;
            registry::next_id(&shared.kb, txn, entry.number).ok().map(u64::from)
        });
        points.sum::<Option<u64>>().is_some_and(|points| points >= shared.options.begun_alone_below)
    }

    /// Gives one worker a thread.
    fn start_helper(&mut self) -> InternalResult<()> {
        let helper = self.idle.pop().map(Helper::start).transpose()?;
        self.helpers.extend(helper);
        Ok(())
    }

    /// Runs the queries so far, and returns their hits in order. A thread that may block runs them itself, and lets other futures
    /// run after each. If the future is dropped, [`finish`](Self::finish) runs what is left.
    pub(crate) async fn begun(&mut self) -> InternalResult<Vec<Vec<Hit>>> {
        if may_block() {
            while let Some(answered) = self.idle.last().and_then(Worker::run_next) {
                self.answered.push(answered?);
                yield_now().await;
            }
        } else if self.helpers.is_empty() {
            self.start_helper()?;
        }
        while let Some(helper) = self.helpers.last_mut() {
            let ended = (&mut helper.ended).await;
            self.helpers.pop();
            self.take_answers(ended.map_err(Failure::internal)?)?;
        }
        self.answered.sort_unstable_by_key(|(number, _)| *number);
        Ok(self.answered.iter().map(|(_, hits)| hits.clone()).collect())
    }

    fn take_answers(&mut self, (worker, answered): Ended) -> InternalResult<()> {
        self.idle.push(worker);
        self.answered.extend(answered?);
        Ok(())
    }

    /// Runs what is left and `more`, and returns the hits of all queries in order.
    pub(crate) async fn finish(mut self, more: &[Query]) -> InternalResult<Vec<Vec<Hit>>> {
        let is_worker = may_block();
        let ended = self.add(more);
        for helper in ended {
            self.take_answers(helper.end().await?)?;
        }
        let own = self.idle.pop_if(|_| is_worker);
        let for_helpers = self.queue.waiting().len().saturating_sub(usize::from(own.is_some()));
        let runs_itself = own.is_some();
        while self.helpers.len() < for_helpers && !self.idle.is_empty() {
            match self.start_helper() {
                // The system refuses a thread.
                Err(_) if runs_itself => break,
                started => started?,
            }
        }
        let mut results = mem::take(&mut self.answered);
        results.extend(own.map(|own| own.run(&AtomicBool::new(false))).transpose()?.unwrap_or_default());
        for helper in mem::take(&mut self.helpers) {
            if !runs_itself || helper.has_begun() {
                results.extend(helper.end().await?.1?);
            }
        }
        results.sort_unstable_by_key(|(number, _)| *number);
        Ok(results.into_iter().map(|(_, hits)| hits).collect())
    }

    /// Adds queries, and returns the helpers that will not take them, because they found none left before.
    fn add(&mut self, more: &[Query]) -> Vec<Helper> {
        let mut waiting = self.queue.waiting();
        waiting.extend(more.iter().enumerate().map(|(n, query)| (self.queries + n, query.clone())));
        self.queries += more.len();
        self.helpers.extract_if(.., |helper| helper.found_none.load(Ordering::Relaxed)).collect()
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.queue.waiting().clear();
    }
}

/// A worker on a thread of the store's.
#[derive(Debug)]
struct Helper {
    is_claimed: Arc<AtomicBool>,
    /// Whether it found no more queries, so that it ends. It changes while the queue is locked.
    found_none: Arc<AtomicBool>,
    ended: oneshot::Receiver<Ended>,
}

impl Helper {
    fn start(worker: Worker) -> InternalResult<Self> {
        let (is_claimed, found_none) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (claimed, none) = (Arc::clone(&is_claimed), Arc::clone(&found_none));
        let shared = Arc::clone(&worker.shared);
        let (ending, ended) = oneshot::channel();
        let run = move || {
            let answered =
                if claimed.swap(true, Ordering::Relaxed) { Ok(Vec::new()) } else { worker.run(&none) };
            // Nobody waits for it if the batch was dropped, or has ended before it began.
            let _ = ending.send((worker, answered));
        };
        shared.helpers.run(run).map_err(Failure::internal)?;
        Ok(Self { is_claimed, found_none, ended })
    }

    /// Whether it runs or has run queries. If it has not begun, it will run none, and waiting for it would be in vain: all threads of
    /// the store's may be busy for others.
    fn has_begun(&self) -> bool {
        self.is_claimed.swap(true, Ordering::Relaxed)
    }

    /// Its worker and what it answered.
    async fn end(self) -> InternalResult<Ended> {
        self.ended.await.map_err(Failure::internal)
    }
}

/// What runs the queries of a batch. It holds the permit, because it may outlive the caller. The order of the fields matters:
/// the transaction closes before another batch may open one, and before the store closes.
#[derive(Debug)]
struct Worker {
    txn: Snapshot,
    _permit: Option<Arc<OwnedSemaphorePermit>>,
    shared: Arc<StoreShared>,
    queue: Arc<Queue>,
}

impl Worker {
    /// Runs queries until none is left; then it sets `found_none`.
    fn run(&self, found_none: &AtomicBool) -> InternalResult<Vec<Answered>> {
        let next = || {
            let mut waiting = self.queue.waiting();
            let next = waiting.pop_front();
            found_none.store(next.is_none(), Ordering::Relaxed);
            next
        };
        iter::from_fn(next).map(|next| self.answer(next)).collect()
    }

    /// Runs one query; `None` if none is left.
    fn run_next(&self) -> Option<InternalResult<Answered>> {
        let next = self.queue.waiting().pop_front()?;
        Some(self.answer(next))
    }

    fn answer(&self, (number, query): (usize, Query)) -> InternalResult<Answered> {
        Ok((number, run_query(&self.shared, &self.txn, &query)?))
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

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Waker},
    };

    use lkr_domain::{Scope, SparseVector};
    use lkr_vectors::{Collection, CollectionSpec, Filter, QueryVector, VectorStore, on_blocking_thread};
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
        opened_with(dir, LmdbOptions::default()).await
    }

    async fn opened_with(dir: &std::path::Path, options: LmdbOptions) -> Arc<StoreShared> {
        let options = LmdbOptions { search_threads: THREADS, ..options };
        let vectors = LmdbStore::open(dir, options).unwrap().vectors();
        let collection = Collection::new("points").unwrap();
        vectors.ensure(&CollectionSpec { collection, dense: None }).await.unwrap();
        vectors.shared
    }

    #[tokio::test]
    async fn dropped_searches_keep_their_permits_until_their_threads_end() {
        let dir = tempfile::tempdir().unwrap();
        let shared = opened(dir.path()).await;
        let before = shared.kb.reader_slots();
        let mut running = Vec::new();
        for _ in 0..MAX_CONCURRENT_BATCHES {
            let mut dropped = begin(&shared, queries()).unwrap().unwrap();
            running.extend(dropped.idle.pop());
        }
        assert_eq!(shared.searches.available_permits(), 0);
        let mut waiting = pin!(batch(&shared, queries()));
        assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let opened = shared.kb.reader_slots() - before;
        assert!(opened < MAX_CONCURRENT_BATCHES + THREADS, "{opened} transactions");

        drop(running.pop());
        assert_eq!(waiting.await.unwrap(), vec![Vec::new(); THREADS]);
        drop(running);
        // All permits are released.
        drop(shared.searches.acquire_many(MAX_CONCURRENT_BATCHES as u32).await.unwrap());
    }

    /// Does `work` on the only thread of the pool, and waits until all permits are given back, those of helpers that did not
    /// begin, too.
    fn on_the_only_thread<T, F>(work: impl FnOnce(Arc<StoreShared>) -> F + Send + 'static) -> T
    where
        T: Send + 'static,
        F: Future<Output = T>,
    {
        let dir = tempfile::tempdir().unwrap();
        let runtime = runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            let shared = opened(dir.path()).await;
            let searching = Arc::clone(&shared);
            let done = on_blocking_thread(move || work(searching)).await.unwrap();
            drop(shared.searches.acquire_many(MAX_CONCURRENT_BATCHES as u32).await.unwrap());
            done
        })
    }

    #[test]
    fn thread_that_may_block_needs_no_other_one() {
        let both = on_the_only_thread(|searching| async move {
            let permits = searching.searches.acquire_many(MAX_CONCURRENT_BATCHES as u32).await.unwrap();
            let without = batch(&searching, queries()).await.unwrap();
            drop(permits);
            let with_permit = batch(&searching, queries()).await.unwrap();
            let name = Collection::new("points").unwrap();
            let read = StoreShared::read(&searching, move |kb, txn| registry::require(kb, txn, &name));
            (with_permit, without, read.await.is_ok())
        });
        let none = vec![Vec::new(); THREADS];
        assert_eq!(both, (none.clone(), none, true));
    }

    #[test]
    fn begun_batch_needs_no_other_thread_if_its_end_may_block() {
        let hits = on_the_only_thread(|searching| async move {
            let begun = begin(&searching, queries()).unwrap().unwrap();
            begun.finish(&queries()).await.unwrap()
        });
        assert_eq!(hits, vec![Vec::new(); 2 * THREADS]);
    }

    #[tokio::test]
    async fn batch_is_begun_only_while_searches_leave_a_permit() {
        let dir = tempfile::tempdir().unwrap();
        let shared = opened(dir.path()).await;
        let others = shared.searches.acquire_many(MAX_CONCURRENT_BATCHES as u32).await.unwrap();
        assert!(begin(&shared, queries()).unwrap().is_none());
        drop(others);
        assert!(begin(&shared, Vec::new()).unwrap().is_none());
        let begun = begin(&shared, queries()).unwrap().unwrap();
        assert_eq!((begun.helpers.len(), begun.idle.len()), (0, THREADS));
    }

    #[tokio::test]
    async fn thread_of_a_begun_batch_that_found_no_query_left_begins_again() {
        let dir = tempfile::tempdir().unwrap();
        let shared = opened(dir.path()).await;
        let mut begun = begin(&shared, queries()).unwrap().unwrap();
        let queue = Arc::clone(&begun.queue);
        let held = queue.waiting();
        assert!(pin!(begun.begun()).poll(&mut Context::from_waker(Waker::noop())).is_pending());
        drop(held);
        while !begun.helpers[0].found_none.load(Ordering::Relaxed) {
            task::yield_now().await;
        }
        let ended = begun.add(&queries());
        assert_eq!((ended.len(), begun.helpers.len(), begun.idle.len()), (1, 0, THREADS - 1));
        let (_, answered) = ended.into_iter().next().unwrap().end().await.unwrap();
        assert_eq!(answered.unwrap().len(), THREADS);
        assert_eq!(begun.queue.waiting().len(), THREADS);
    }

    #[tokio::test]
    async fn begun_batch_of_large_collections_has_a_second_thread_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let options = LmdbOptions { begun_alone_below: 0, ..LmdbOptions::default() };
        let shared = opened_with(dir.path(), options).await;
        let one = begin(&shared, queries().drain(..1).collect()).unwrap().unwrap();
        assert_eq!((one.helpers.len(), one.idle.len()), (0, THREADS));
        drop(one);
        let mut begun = begin(&shared, queries()).unwrap().unwrap();
        assert_eq!((begun.helpers.len(), begun.idle.len()), (1, THREADS - 1));
        assert_eq!(begun.begun().await.unwrap(), vec![Vec::new(); THREADS]);
        assert_eq!(begun.finish(&queries()).await.unwrap(), vec![Vec::new(); 2 * THREADS]);
    }

    #[tokio::test]
    async fn begun_batch_answers_its_first_queries_and_then_all() {
        let dir = tempfile::tempdir().unwrap();
        let shared = opened(dir.path()).await;
        let mut begun = begin(&shared, queries()).unwrap().unwrap();
        assert_eq!(begun.begun().await.unwrap(), vec![Vec::new(); THREADS]);
        assert_eq!((begun.helpers.len(), begun.idle.len()), (0, THREADS));
        assert_eq!(begun.finish(&queries()).await.unwrap(), vec![Vec::new(); 2 * THREADS]);
    }

    #[test]
    fn thread_that_may_block_runs_begun_queries_one_by_one() {
        let (waiting, first, all) = on_the_only_thread(|searching| async move {
            let mut begun = begin(&searching, queries()).unwrap().unwrap();
            let mut waiting = Vec::new();
            for _ in 0..THREADS {
                assert!(pin!(begun.begun()).poll(&mut Context::from_waker(Waker::noop())).is_pending());
                waiting.push(begun.queue.waiting().len());
            }
            (waiting, begun.begun().await.unwrap(), begun.finish(&queries()).await.unwrap())
        });
        assert_eq!(waiting, (0..THREADS).rev().collect::<Vec<_>>(), "the future was dropped each time");
        assert_eq!((first.len(), all.len()), (THREADS, 2 * THREADS));
    }

    #[tokio::test]
    async fn dropped_batch_takes_no_more_queries() {
        let dir = tempfile::tempdir().unwrap();
        let shared = opened(dir.path()).await;
        let batch = Batch::open(&shared, queries(), 1, None).unwrap();
        let queue = Arc::clone(&batch.queue);
        assert_eq!(queue.waiting().pop_front().map(|(number, _)| number), Some(0));
        drop(batch);
        assert!(queue.waiting().is_empty());
    }
}
