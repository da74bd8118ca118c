//! Putting accepted tasks into the queue.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use lkr_catalog::{Task, Texts};
use lkr_domain::Creator;
use lkr_state::{TaskQueue, Work};

use crate::{Error, ErrorKind, Result, gc::Gc, text_budget::SHORT_BYTES};

/// The task queue with its limit. A task whose record is stored but which could not be queued is queued by the janitor.
#[derive(Debug)]
pub(crate) struct Queueing {
    queue: Arc<dyn TaskQueue>,
    texts: Texts,
    limit: u64,
    gc: Arc<Gc>,
    /// Whether an accepted task may be missing from the queue.
    is_incomplete: AtomicBool,
}

impl Queueing {
    pub(crate) fn new(queue: Arc<dyn TaskQueue>, texts: Texts, limit: u64, gc: Arc<Gc>) -> Self {
        Self { queue, texts, limit, gc, is_incomplete: AtomicBool::new(false) }
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
            if let Err(error) = enqueue(&*self.queue, &self.texts, task).await {
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

/// Queues a task in the flow of its account.
pub(crate) async fn enqueue(queue: &dyn TaskQueue, texts: &Texts, task: &Task) -> Result<()> {
    let work = match task.subject.doc_id() {
        // A text that cannot be read counts as short; the attempt will find out why.
        Some(doc_id) => work(&task.created_by, texts.length(doc_id, task.input.revision).await.unwrap_or(0)),
        // A task over all documents runs beside the workers, so it takes no turn from an account.
        None => Work { flow: "background".to_owned(), ..Work::default() },
    };
    Ok(queue.enqueue(task.task_id, work, Duration::ZERO).await?)
}

fn work(creator: &Creator, cost: u64) -> Work {
    let flow = if creator.id.is_empty() { "anonymous".to_owned() } else { format!("account:{}", creator.id) };
    Work { flow, cost, is_long: cost > SHORT_BYTES }
}
