//! The one thread that writes to `kb`. It takes what waits, does it in one transaction and commits once.

use std::{
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

/// How many jobs may wait, and how many go into one commit.
const QUEUE_CAPACITY: usize = 1_024;
const MAX_GROUP: usize = 256;
/// A group that has worked for so long takes no more jobs, so that the first of them need not wait for ever.
const MAX_GROUP_TIME: Duration = Duration::from_millis(100);

/// Where jobs are handed in. The thread ends when the last of these is gone and all jobs are done.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    jobs: mpsc::Sender<Box<dyn Job>>,
}

impl Writer {
    /// Starts the thread. `committed` is called after each commit.
    pub(crate) fn start(
        env: Environment,
        committed: impl Fn() + Send + 'static,
    ) -> std::io::Result<(Self, JoinHandle<()>)> {
        let (jobs, waiting) = mpsc::channel(QUEUE_CAPACITY);
        let thread = thread::Builder::new()
            .name("lkr-writer".to_owned())
            .spawn(move || run_writer(&env, waiting, committed))?;
        Ok((Self { jobs }, thread))
    }

    /// A writer that takes no jobs.
    pub(crate) fn closed() -> Self {
        Self { jobs: mpsc::channel(1).0 }
    }

    /// Does `work` in a write transaction, and answers when it is durable.
    ///
    /// `work` may be done again where the commit fails, and must refuse a wrong request before it writes: a failure
    /// that is no refusal takes back everything in its transaction. Once handed in it is done, whether anyone still
    /// waits or not.
    pub(crate) async fn write<T, F>(&self, work: F) -> InternalResult<T>
    where
        T: Send + 'static,
        F: FnMut(&mut RwTxn) -> InternalResult<T> + Send + 'static,
    {
        let (job, response) = WriteJob::boxed(work);
        self.jobs.send(job).await.map_err(|_| writer_stopped())?;
        response.await.unwrap_or_else(|_| Err(writer_stopped()))
    }

    /// [`write`](Self::write) for a thread outside the runtime.
    pub(crate) fn write_blocking<T, F>(&self, work: F) -> InternalResult<T>
    where
        T: Send + 'static,
        F: FnMut(&mut RwTxn) -> InternalResult<T> + Send + 'static,
    {
        let (job, response) = WriteJob::boxed(work);
        self.jobs.blocking_send(job).map_err(|_| writer_stopped())?;
        response.blocking_recv().unwrap_or_else(|_| Err(writer_stopped()))
    }

    pub(crate) fn is_alive(&self) -> bool {
        !self.jobs.is_closed()
    }
}

fn writer_stopped() -> Failure {
    Failure::unavailable("the writing thread is gone")
}

/// Work that is handed in, and where its answer goes.
trait Job: Send {
    /// Does the work and keeps what came of it; `false` where the transaction must not be committed.
    fn run(&mut self, txn: &mut RwTxn) -> bool;
    /// Answers: with what was kept, or with the failure of the commit into `env`.
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
    fn boxed(work: F) -> (Box<dyn Job>, oneshot::Receiver<InternalResult<T>>) {
        let (reply, response) = oneshot::channel();
        (Box::new(Self { work, result: None, reply }), response)
    }
}

impl<T: Send, F: FnMut(&mut RwTxn) -> InternalResult<T> + Send> Job for WriteJob<T, F> {
    fn run(&mut self, txn: &mut RwTxn) -> bool {
        // Whatever a panicking job has written is given up with its transaction.
        let result = catch_unwind(AssertUnwindSafe(|| (self.work)(txn)))
            .unwrap_or_else(|_| Err(Failure::internal("a write panicked")));
        let may_commit = result.as_ref().err().is_none_or(Failure::is_refusal);
        self.result = Some(result);
        may_commit
    }

    fn reply(self: Box<Self>, committed: InternalResult<()>, env: &Environment) {
        let result = self.result.unwrap_or_else(|| Err(writer_stopped()));
        // A large transaction writes before it commits, so that the work itself may find the disk full.
        let reply = committed
            .and(result)
            .map_err(|failure| failure.classify_write_error(|| file_system::free_space(env.path())));
        // The one who asked may have gone away; the work is done all the same.
        let _ = self.reply.send(reply);
    }
}

fn run_writer(env: &Environment, mut waiting: mpsc::Receiver<Box<dyn Job>>, committed: impl Fn()) {
    while let Some(first) = waiting.blocking_recv() {
        let mut group = vec![first];
        if commit_group(env, &mut group, &mut waiting).is_ok() {
            group.into_iter().for_each(|job| job.reply(Ok(()), env));
        } else {
            group.into_iter().for_each(|job| commit_alone(env, job));
        }
        committed();
    }
}

/// Does the jobs of the group, and those that come meanwhile, in one transaction. Where it fails, nothing was done.
fn commit_group(
    env: &Environment,
    group: &mut Vec<Box<dyn Job>>,
    waiting: &mut mpsc::Receiver<Box<dyn Job>>,
) -> InternalResult<()> {
    let started = Instant::now();
    let mut txn = env.write_txn()?;
    let mut done = 0;
    while let Some(job) = group.get_mut(done) {
        if !job.run(&mut txn) {
            return Err(Failure::unavailable("a write of the group failed"));
        }
        done += 1;
        if group.len() < MAX_GROUP
            && started.elapsed() < MAX_GROUP_TIME
            && let Ok(next) = waiting.try_recv()
        {
            group.push(next);
        }
    }
    Ok(txn.commit()?)
}

/// Does one job in a transaction of its own.
fn commit_alone(env: &Environment, mut job: Box<dyn Job>) {
    let committed = env.write_txn().map_err(Failure::from).and_then(|mut txn| {
        if job.run(&mut txn) {
            txn.commit()?;
        }
        Ok(())
    });
    job.reply(committed, env);
}

#[cfg(test)]
mod tests {
    use heed::{Database, types::Bytes};

    use super::*;
    use crate::{
        env::{create_tables, open_env},
        error::FailureKind,
    };

    type Table = Database<'static, Bytes, Bytes>;

    fn started() -> (Environment, Table, Writer, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let env = open_env(dir.path(), 1 << 30, 1).unwrap();
        let [table] = create_tables(&env, ["table"]).unwrap();
        let (writer, _) = Writer::start(env.clone(), || {}).unwrap();
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
    async fn a_failure_takes_nothing_else_with_it() {
        let (env, table, writer, _dir) = started();
        // Behind a job that takes its time the others gather into one group.
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
    async fn what_was_handed_in_is_done_when_nobody_waits() {
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
}
