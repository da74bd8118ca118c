//! Putting accepted tasks into the queue.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use lkr_catalog::{Task, Texts};
use lkr_domain::{Creator, TaskId};
use lkr_state::{TaskQueue, Work};
use tokio::{sync::Mutex, task::unconstrained};

use crate::{Error, ErrorKind, Result, gc::Gc, text_budget::SHORT_BYTES};

/// The flow of documents that were added without an account.
const ANONYMOUS: &str = "anonymous";

/// How long the numbers of queued tasks are used, because counting reads the whole queue.
const COUNTS_KEPT: Duration = Duration::from_secs(1);

/// The tasks that are queued at once. Chosen, not measured.
const AT_ONCE: usize = 100;

/// The numbers of queued tasks by flow.
#[derive(Debug)]
struct Counts {
    read_at: Instant,
    tasks: HashMap<String, u64>,
}

/// The task queue with its limit. A task whose record is stored but which could not be queued is queued by the janitor.
#[derive(Debug)]
pub(crate) struct Queueing {
    queue: Arc<dyn TaskQueue>,
    texts: Texts,
    limit: u64,
    gc: Arc<Gc>,
    /// Whether an accepted task may be missing from the queue.
    is_incomplete: AtomicBool,
    /// Known once the queue is half full.
    counts: Mutex<Option<Counts>>,
}

impl Queueing {
    pub(crate) fn new(queue: Arc<dyn TaskQueue>, texts: Texts, limit: u64, gc: Arc<Gc>) -> Self {
        Self { queue, texts, limit, gc, is_incomplete: AtomicBool::new(false), counts: Mutex::default() }
    }

    /// Fails with `Overloaded` if the queue has no room for a task that is about several documents, or that was accepted before.
    pub(crate) async fn check_room(&self, operation: &'static str) -> Result<()> {
        self.check_total(operation, 1).await.map(drop)
    }

    /// Fails with `Overloaded` if the queue has no room for one document of each of `creators`.
    ///
    /// An account may have as many tasks queued as places are free: a dynamic threshold with the factor 1 (Choudhury and Hahne,
    /// "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", IEEE/ACM Transactions on Networking 6, 1998). So one
    /// account takes half of the queue at most, two that want more get a third each, and there is always room for another.
    pub(crate) async fn check_room_of(
        &self,
        operation: &'static str,
        creators: impl IntoIterator<Item = &Creator>,
    ) -> Result<()> {
        let mut more: HashMap<String, u64> = HashMap::new();
        for creator in creators {
            *more.entry(flow_of(creator)).or_default() += 1;
        }
        let all = more.values().sum();
        let free = self.check_total(operation, all).await?;
        // No account has more than all have.
        if self.limit - free + all <= free {
            return Ok(());
        }
        let mut counts = self.counts.lock().await;
        let counts = match &mut *counts {
            Some(counts) if counts.read_at.elapsed() < COUNTS_KEPT => counts,
            outdated => outdated.insert(Counts { read_at: Instant::now(), tasks: self.queue.flows().await? }),
        };
        for (flow, more) in &more {
            let queued = counts.tasks.get(flow).copied().unwrap_or_default();
            if queued + more > free {
                let whose = if flow == ANONYMOUS { "requests without an account" } else { "this account" };
                let reason = format!(
                    "the queue is full for {whose}: {queued} tasks are queued, at most {free} are allowed, as many as places \
                     are free"
                );
                return Err(Error::new(ErrorKind::Overloaded, operation, reason));
            }
        }
        // Until they are counted again, these count too.
        for (flow, more) in more {
            *counts.tasks.entry(flow).or_default() += more;
        }
        Ok(())
    }

    /// The number of free places, of which `more` are wanted.
    async fn check_total(&self, operation: &'static str, more: u64) -> Result<u64> {
        let queued = self.queue.len().await?;
        let free = self.limit.saturating_sub(queued);
        if more <= free {
            return Ok(free);
        }
        let reason =
            format!("the queue is full: {queued} tasks are queued, at most {} are allowed", self.limit);
        Err(Error::new(ErrorKind::Overloaded, operation, reason))
    }

    /// Queues accepted tasks. On failure the janitor queues them later: every accepted task will end.
    pub(crate) async fn push(&self, tasks: &[Task]) {
        let unfinished = tasks.iter().filter(|task| !task.status.has_ended());
        let mut queued = enqueue_all(&*self.queue, &self.texts, unfinished);
        while let Some((task, queued)) = queued.next().await {
            if let Err(error) = queued {
                tracing::warn!(%task, %error, "cannot queue a task; the janitor will retry");
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

/// Queues tasks in the flows of their accounts, and says of each whether that succeeded. Many are queued at once, because a store that
/// waits for the disk commits what waits together. They reach the queue in their order; one that uses several connections may change it
/// among these.
pub(crate) fn enqueue_all<'a>(
    queue: &'a dyn TaskQueue,
    texts: &'a Texts,
    tasks: impl Iterator<Item = &'a Task> + Send + 'a,
) -> BoxStream<'a, (TaskId, Result<()>)> {
    let works = tasks.map(move |task| async move { (task.task_id, work_of(texts, task).await) });
    let enqueue = move |(task, work): (TaskId, Work)| async move {
        // The budget of a task of the runtime would end in the middle, and what is left would be polled in another order.
        let enqueued = unconstrained(queue.enqueue(task, work, Duration::ZERO)).await;
        (task, enqueued.map_err(Error::from))
    };
    stream::iter(works).buffered(AT_ONCE).map(enqueue).buffered(AT_ONCE).boxed()
}

/// What the queue needs to know of a task.
async fn work_of(texts: &Texts, task: &Task) -> Work {
    match task.subject.doc_id() {
        // A text that cannot be read counts as short; the attempt will find out why.
        Some(doc_id) => work(&task.created_by, texts.length(doc_id, task.input.revision).await.unwrap_or(0)),
        // A task over all documents runs beside the workers, so it takes no turn from an account.
        None => Work { flow: "background".to_owned(), ..Work::default() },
    }
}

fn work(creator: &Creator, cost: u64) -> Work {
    Work { flow: flow_of(creator), cost, is_long: cost > SHORT_BYTES }
}

/// The flow of an account's documents.
fn flow_of(creator: &Creator) -> String {
    if creator.id.is_empty() { ANONYMOUS.to_owned() } else { format!("account:{}", creator.id) }
}

#[cfg(test)]
mod tests {
    use lkr_catalog::{Catalog, Originals, TaskInput};
    use lkr_domain::{DocId, SpaceName, SystemClock};
    use lkr_state::{MemoryQueue, MemoryState, Peers};
    use object_store::{
        memory::InMemory,
        throttle::{ThrottleConfig, ThrottledStore},
    };

    use super::*;

    fn queueing(limit: u64) -> Queueing {
        let texts = Texts::new(Arc::new(InMemory::new()));
        let catalog = Catalog::new(Arc::new(MemoryState::default()));
        let gc = Gc::new(Originals::in_folder(std::path::PathBuf::new()), catalog, &Peers::default());
        Queueing::new(Arc::new(MemoryQueue::default()), texts, limit, Arc::new(gc))
    }

    fn account(name: &str) -> Creator {
        Creator { name: name.to_owned(), id: name.to_owned() }
    }

    /// Adds documents until one is refused. Returns their number and why.
    async fn fill(queueing: &Queueing, creator: &Creator) -> (u64, String) {
        for added in 0.. {
            if let Err(error) = queueing.check_room_of("submit document", [creator]).await {
                assert_eq!(error.kind(), ErrorKind::Overloaded);
                return (added, error.to_string());
            }
            queueing.queue.enqueue(TaskId::new(), work(creator, 10), Duration::ZERO).await.unwrap();
        }
        unreachable!("the queue has a limit")
    }

    #[tokio::test]
    async fn burst_of_one_account_leaves_places_for_others() {
        let queueing = queueing(1_000);
        let (of_one, reason) = fill(&queueing, &account("one")).await;
        assert_eq!(of_one, 500);
        assert!(reason.contains("full for this account: 500 tasks are queued, at most 500"), "{reason}");
        assert_eq!(fill(&queueing, &account("two")).await.0, 250);
        let (anonymous, reason) = fill(&queueing, &account("")).await;
        assert!(
            (124..=126).contains(&anonymous) && reason.contains("without an account"),
            "{anonymous} {reason}"
        );
        queueing.check_room_of("submit document", [&account("three")]).await.unwrap();
        queueing.check_room("reclassify").await.unwrap();
        // Several documents at once need a place each.
        let many = vec![account("three"); 100];
        queueing.check_room_of("submit documents", &many[..50]).await.unwrap();
        assert!(queueing.check_room_of("submit documents", &many).await.is_err());
    }

    /// Counting reads the whole queue, so it is not done for each document; those of the same second count nevertheless.
    #[tokio::test]
    async fn documents_that_are_not_queued_yet_count() {
        let queueing = queueing(100);
        fill(&queueing, &account("one")).await;
        let two = account("two");
        let mut admitted = 0;
        while queueing.check_room_of("submit document", [&two]).await.is_ok() {
            admitted += 1;
        }
        assert_eq!(admitted, 50);
    }

    /// Claims keep the order in which tasks were accepted.
    #[tokio::test(start_paused = true)]
    async fn tasks_are_queued_in_their_order_and_do_not_wait_for_one_another() {
        let wait = Duration::from_millis(100);
        let slow = ThrottleConfig { wait_get_per_call: wait, ..ThrottleConfig::default() };
        let texts = Texts::new(Arc::new(ThrottledStore::new(InMemory::new(), slow)));
        let clock = SystemClock;
        let new_task = |_| {
            let input = TaskInput::default();
            Task::ingest(&clock, DocId::new(), SpaceName::default(), account("one"), input)
        };
        let tasks: Vec<Task> = (0..100).map(new_task).collect();
        let queue = Arc::new(MemoryQueue::default());
        let queueing = Queueing { texts, queue: Arc::clone(&queue) as Arc<dyn TaskQueue>, ..queueing(1_000) };
        let begun = tokio::time::Instant::now();
        queueing.push(&tasks).await;
        assert!(begun.elapsed() < wait * 10, "{:?}", begun.elapsed());
        for task in &tasks {
            let claim = queue.claim(Duration::from_secs(60), Duration::ZERO).await.unwrap().unwrap();
            assert_eq!(claim.task, task.task_id);
            queue.finish(&claim).await.unwrap();
        }
    }
}
