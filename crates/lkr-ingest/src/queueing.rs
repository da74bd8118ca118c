//! Putting accepted tasks into the queue.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use lkr_catalog::Task;
use lkr_state::TaskQueue;

use crate::{Error, ErrorKind, Result, gc::Gc};

/// The task queue with its limit. A task whose record is stored but which could not be queued is queued by the janitor.
#[derive(Debug)]
pub(crate) struct Queueing {
    queue: Arc<dyn TaskQueue>,
    limit: u64,
    gc: Arc<Gc>,
    /// Whether an accepted task may be missing from the queue.
    is_incomplete: AtomicBool,
}

impl Queueing {
    pub(crate) fn new(queue: Arc<dyn TaskQueue>, limit: u64, gc: Arc<Gc>) -> Self {
        Self { queue, limit, gc, is_incomplete: AtomicBool::new(false) }
    }

    /// Fails with `Overloaded` if `more` tasks would exceed the limit of the queue.
    pub(crate) async fn check_room(&self, operation: &'static str, more: u64) -> Result<()> {
        let queued = self.queue.len().await?;
        if queued.saturating_add(more) <= self.limit {
            return Ok(());
        }
        let reason =
            format!("the queue is full: {queued} tasks are queued, at most {} are allowed", self.limit);
        Err(Error::new(ErrorKind::Overloaded, operation, reason))
    }

    /// Queues accepted tasks. On failure the janitor queues them later: every accepted task will end.
    pub(crate) async fn push(&self, tasks: &[Task]) {
        for task in tasks.iter().filter(|task| !task.status.has_ended()) {
            if let Err(error) = self.queue.push(task.task_id, Duration::ZERO).await {
                tracing::warn!(task = %task.task_id, %error, "cannot queue a task; the janitor will retry");
                self.requeue_later();
            }
        }
    }

    /// Has the janitor queue every unfinished task that is not in the queue.
    pub(crate) fn requeue_later(&self) {
        self.mark_incomplete();
        self.gc.wake();
    }

    /// As [`requeue_later`](Self::requeue_later), without waking the janitor.
    pub(crate) fn mark_incomplete(&self) {
        self.is_incomplete.store(true, Ordering::Relaxed);
    }

    /// Whether tasks may be missing from the queue. Resets it.
    pub(crate) fn take_incomplete(&self) -> bool {
        self.is_incomplete.swap(false, Ordering::Relaxed)
    }
}
