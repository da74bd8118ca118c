//! The only thread that writes to `kb`. It runs all waiting jobs in one transaction and commits once (group commit).

use std::{
    collections::VecDeque,
    iter::repeat_n,
    panic::{AssertUnwindSafe, catch_unwind},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use heed::RwTxn;
use tokio::sync::{mpsc, oneshot};

use crate::{
    env::Environment,
    error::{Failure, InternalResult},
    file_system,
};

/// The maximum number of waiting jobs, and of jobs in one commit. See docs/studies.md#group-commit.
const QUEUE_CAPACITY: usize = 1_024;
const MAX_GROUP: usize = 256;
/// A group that has run for this long takes no more jobs, which bounds the latency of its first job.
const MAX_GROUP_TIME: Duration = Duration::from_millis(100);

/// While so many jobs arrive within this time, as several documents that are ingested at once have, a group waits for more jobs
/// before it begins: each commit costs as much CPU time as dozens of rows. The jobs of one document are fewer. See
/// docs/studies.md#group-commit.
const FREQUENT_JOBS: usize = 16;
const FREQUENT_WITHIN: Duration = Duration::from_millis(200);
const GATHERING_PAUSE: Duration = Duration::from_millis(5);

/// Sends work to the thread, which ends when the last sender is dropped and all work is done.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    work: mpsc::Sender<Work>,
}

/// What the thread does.
enum Work {
    /// In a write transaction, with others.
    Write(Box<dyn Job>),
    /// While no write transaction is open.
    Between(Box<dyn FnOnce() + Send>),
}

impl Writer {
    /// Starts the thread. `may_commit` is asked before each commit, and `committed` is called after it.
    pub(crate) fn start(
        env: Environment,
        may_commit: impl Fn() -> InternalResult<()> + Send + 'static,
        committed: impl Fn() + Send + 'static,
    ) -> std::io::Result<(Self, JoinHandle<()>)> {
        let (work, waiting) = mpsc::channel(QUEUE_CAPACITY);
        let thread = thread::Builder::new()
            .name("lkr-writer".to_owned())
            .spawn(move || run_writer(&env, waiting, &may_commit, committed))?;
        Ok((Self { work }, thread))
    }

    /// A writer that refuses all jobs.
    pub(crate) fn closed() -> Self {
        Self { work: mpsc::channel(1).0 }
    }

    /// Runs `work` in a write transaction, and returns when it is durable.
    ///
    /// `work` may run again if the commit fails, so it must validate its request before it writes: any other failure
    /// rolls back the whole transaction. Accepted work runs even if the caller stops waiting.
    pub(crate) async fn write<T, F>(&self, work: F) -> InternalResult<T>
    where
        T: Send + 'static,
        F: FnMut(&mut RwTxn) -> InternalResult<T> + Send + 'static,
    {
        let (job, response) = WriteJob::boxed(work);
        self.work.send(job).await.map_err(|_| writer_stopped())?;
        response.await.unwrap_or_else(|_| Err(writer_stopped()))
    }

    /// [`write`](Self::write) for a thread outside the runtime.
    pub(crate) fn write_blocking<T, F>(&self, work: F) -> InternalResult<T>
    where
        T: Send + 'static,
        F: FnMut(&mut RwTxn) -> InternalResult<T> + Send + 'static,
    {
        let (job, response) = WriteJob::boxed(work);
        self.work.blocking_send(job).map_err(|_| writer_stopped())?;
        response.blocking_recv().unwrap_or_else(|_| Err(writer_stopped()))
    }

    /// Runs `task` on the thread while no write transaction is open, for a thread outside the runtime. A panic is a failure.
    pub(crate) fn between_blocking<T: Send + 'static>(
        &self,
        task: impl FnOnce() -> InternalResult<T> + Send + 'static,
    ) -> InternalResult<T> {
        let (reply, response) = oneshot::channel();
        let run = move || {
            let done = catch_unwind(AssertUnwindSafe(task));
            // The caller may have stopped waiting.
            let _ =
                reply.send(done.unwrap_or_else(|_| Err(Failure::internal("a task of the writer panicked"))));
        };
        self.work.blocking_send(Work::Between(Box::new(run))).map_err(|_| writer_stopped())?;
        response.blocking_recv().unwrap_or_else(|_| Err(writer_stopped()))
    }

    pub(crate) fn is_alive(&self) -> bool {
        !self.work.is_closed()
    }
}

fn writer_stopped() -> Failure {
    Failure::unavailable("the writer thread has ended")
}

/// A unit of work with the channel for its result.
trait Job: Send {
    /// Runs the work and keeps its result; `false` if the transaction must be rolled back.
    fn run(&mut self, txn: &mut RwTxn) -> bool;
    /// Sends the kept result, or the failure of the commit.
    fn reply(self: Box<Self>, committed: InternalResult<()>, env: &Environment);
}

struct WriteJob<T, F> {
    work: F,
    result: Option<InternalResult<T>>,
    reply: oneshot::Sender<InternalResult<T>>,
}

impl<T, F> WriteJob<T, F>
where
    T: Send + 'static,
    F: FnMut(&mut RwTxn) -> InternalResult<T> + Send + 'static,
{
    fn boxed(work: F) -> (Work, oneshot::Receiver<InternalResult<T>>) {
        let (reply, response) = oneshot::channel();
        (Work::Write(Box::new(Self { work, result: None, reply })), response)
    }
}

impl<T: Send, F: FnMut(&mut RwTxn) -> InternalResult<T> + Send> Job for WriteJob<T, F> {
    fn run(&mut self, txn: &mut RwTxn) -> bool {
        // The writes of a panicking job are rolled back with its transaction.
        let result = catch_unwind(AssertUnwindSafe(|| (self.work)(txn)))
            .unwrap_or_else(|_| Err(Failure::internal("a write panicked")));
        let may_commit = result.as_ref().err().is_none_or(Failure::is_refusal);
        self.result = Some(result);
        may_commit
    }

    fn reply(self: Box<Self>, committed: InternalResult<()>, env: &Environment) {
        let result = self.result.unwrap_or_else(|| Err(writer_stopped()));
        // A large transaction writes before it commits, so the work itself may hit a full disk.
        let reply = committed
            .and(result)
            .map_err(|failure| failure.classify_write_error(|| file_system::free_space(env.path())));
        // The caller may have stopped waiting.
        let _ = self.reply.send(reply);
    }
}

fn run_writer(
    env: &Environment,
    mut waiting: mpsc::Receiver<Work>,
    may_commit: &dyn Fn() -> InternalResult<()>,
    committed: impl Fn(),
) {
    let mut arrivals = Arrivals::default();
    while let Some(first) = waiting.blocking_recv() {
        let first = match first {
            Work::Write(job) => job,
            Work::Between(task) => {
                task();
                continue;
            }
        };
        if arrivals.are_frequent(Instant::now()) {
            thread::sleep(GATHERING_PAUSE);
        }
        let (mut group, mut between) = (vec![first], None);
        let committed_together =
            commit_group(env, may_commit, &mut group, &mut between, &mut waiting).is_ok();
        arrivals.note(group.len(), Instant::now());
        if committed_together {
            group.into_iter().for_each(|job| job.reply(Ok(()), env));
        } else {
            group.into_iter().for_each(|job| commit_alone(env, may_commit, job));
        }
        committed();
        if let Some(task) = between {
            task();
        }
    }
}

/// When the last jobs arrived.
#[derive(Debug, Default)]
struct Arrivals(VecDeque<Instant>);

impl Arrivals {
    /// Notes the jobs of a group.
    fn note(&mut self, jobs: usize, now: Instant) {
        self.0.extend(repeat_n(now, jobs.min(FREQUENT_JOBS)));
        self.0.drain(..self.0.len().saturating_sub(FREQUENT_JOBS));
    }

    fn are_frequent(&self, now: Instant) -> bool {
        let first = self.0.front().filter(|_| self.0.len() == FREQUENT_JOBS);
        first.is_some_and(|first| now.duration_since(*first) <= FREQUENT_WITHIN)
    }
}

/// Runs the group, and jobs that arrive meanwhile, in one transaction. On failure nothing is written. A task that must run
/// outside of transactions ends the group and is left in `between`.
fn commit_group(
    env: &Environment,
    may_commit: &dyn Fn() -> InternalResult<()>,
    group: &mut Vec<Box<dyn Job>>,
    between: &mut Option<Box<dyn FnOnce() + Send>>,
    waiting: &mut mpsc::Receiver<Work>,
) -> InternalResult<()> {
    let started = Instant::now();
    let mut txn = env.write_txn()?;
    let mut done = 0;
    while let Some(job) = group.get_mut(done) {
        if !job.run(&mut txn) {
            return Err(Failure::unavailable("a write of the group failed"));
        }
        done += 1;
        if group.len() < MAX_GROUP && started.elapsed() < MAX_GROUP_TIME && between.is_none() {
            match waiting.try_recv() {
                Ok(Work::Write(next)) => group.push(next),
                Ok(Work::Between(task)) => *between = Some(task),
                Err(_) => {}
            }
        }
    }
    may_commit()?;
    Ok(txn.commit()?)
}

/// Runs one job in a transaction of its own.
fn commit_alone(env: &Environment, may_commit: &dyn Fn() -> InternalResult<()>, mut job: Box<dyn Job>) {
    let committed = env.write_txn().map_err(Failure::from).and_then(|mut txn| {
        if job.run(&mut txn) {
            may_commit()?;
            txn.commit()?;
        }
        Ok(())
    });
    job.reply(committed, env);
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use heed::{Database, types::Bytes};

    use super::*;
    use crate::{
        env::{Map, create_tables, open_env},
        error::FailureKind,
    };

    type Table = Database<'static, Bytes, Bytes>;

    fn started() -> (Environment, Table, Writer, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let env = open_env(dir.path(), Map::default(), 1).unwrap();
        let [table] = create_tables(&env, ["table"]).unwrap();
        let (writer, _) = Writer::start(env.clone(), || Ok(()), || {}).unwrap();
        (env, table, writer, dir)
    }

    fn put(
        writer: &Writer,
        table: Table,
        key: u8,
        end: fn() -> InternalResult<()>,
    ) -> impl Future<Output = InternalResult<()>> {
        writer.write(move |txn| {
            table.put(txn, &[key], b"value")?;
            end()
        })
    }

    #[tokio::test]
    async fn failed_job_in_group_does_not_affect_other_jobs() {
        let (env, table, writer, _dir) = started();
        // While the slow job runs, the others gather into one group.
        let slow = writer.write(|_| {
            thread::sleep(Duration::from_millis(20));
            Ok(())
        });
        let (slow, good, failed, panicked, refused, last) = tokio::join!(
            slow,
            put(&writer, table, 1, || Ok(())),
            put(&writer, table, 2, || Err(Failure::corrupt("found in the middle"))),
            put(&writer, table, 3, || panic!("on purpose")),
            writer.write(|_| Err::<(), _>(Failure::conflict("refused"))),
            put(&writer, table, 4, || Ok(())),
        );
        slow.and(good).and(last).unwrap();
        assert_eq!(failed.unwrap_err().kind(), FailureKind::Corrupt);
        assert_eq!(panicked.unwrap_err().kind(), FailureKind::Internal);
        assert_eq!(refused.unwrap_err().kind(), FailureKind::Conflict);
        let txn = env.read_txn().unwrap();
        let keys: Vec<u8> = table.iter(&txn).unwrap().map(|row| row.unwrap().0[0]).collect();
        assert_eq!(keys, [1, 4]);
        assert!(writer.is_alive());
    }

    #[tokio::test]
    async fn accepted_write_with_dropped_future_is_committed() {
        let (env, table, writer, _dir) = started();
        {
            let mut dropped = Box::pin(put(&writer, table, 1, || Ok(())));
            let waker = std::task::Waker::noop();
            let poll = dropped.as_mut().poll(&mut std::task::Context::from_waker(waker));
            assert!(poll.is_pending());
        }
        put(&writer, table, 2, || Ok(())).await.unwrap();
        assert_eq!(table.len(&env.read_txn().unwrap()).unwrap(), 2);
    }

    #[tokio::test]
    async fn frequent_jobs_gather_before_they_are_committed() {
        let dir = tempfile::tempdir().unwrap();
        let env = open_env(dir.path(), Map::default(), 1).unwrap();
        let [table] = create_tables(&env, ["table"]).unwrap();
        let commits = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&commits);
        let (writer, _) = Writer::start(
            env,
            || Ok(()),
            move || {
                counter.fetch_add(1, Ordering::SeqCst);
            },
        )
        .unwrap();
        // On a busy machine, the second job of a pair may arrive after the commit of the first, so a bad attempt is repeated.
        for _ in 0..20 {
            let mut gathered = 0;
            for round in 0..40 {
                let before = commits.load(Ordering::SeqCst);
                let late = async {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    put(&writer, table, 2, || Ok(())).await
                };
                let (first, late) = tokio::join!(put(&writer, table, 1, || Ok(())), late);
                first.and(late).unwrap();
                // The callback runs after the replies.
                tokio::time::sleep(Duration::from_millis(1)).await;
                gathered += usize::from(round >= 10 && commits.load(Ordering::SeqCst) == before + 1);
            }
            if gathered > 10 {
                return;
            }
        }
        panic!("in no attempt were more than 10 of 30 pairs committed together");
    }

    #[test]
    fn jobs_are_frequent_if_many_came_lately() {
        let (mut arrivals, now) = (Arrivals::default(), Instant::now());
        arrivals.note(FREQUENT_JOBS - 1, now);
        assert!(!arrivals.are_frequent(now));
        arrivals.note(1, now + FREQUENT_WITHIN);
        assert!(arrivals.are_frequent(now + FREQUENT_WITHIN));
        assert!(!arrivals.are_frequent(now + FREQUENT_WITHIN + Duration::from_millis(1)));
        arrivals.note(10 * FREQUENT_JOBS, now + 2 * FREQUENT_WITHIN);
        assert_eq!(arrivals.0.len(), FREQUENT_JOBS);
        assert!(arrivals.are_frequent(now + 3 * FREQUENT_WITHIN));
    }
}
