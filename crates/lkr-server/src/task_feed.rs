//! The changes of all tasks, for those who watch them. One poller reads the store for all watchers, and only while there are any.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use actix_web::web::{Bytes, Data};
use lkr::{CHANGE_KEPT, KnowledgeBase, Task, TaskChange, TaskId, TaskInput};
use tokio::{
    sync::broadcast::{self, Receiver, Sender, WeakSender},
    time::{Instant, sleep},
};

use crate::{error::ApiError, http::sse_event, state::AppState, wire::tasks::TaskItem};

/// How often the changes are read. Chosen, not measured.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The most tasks that are read and sent at once.
const BATCH: usize = 100;

/// The batches that a slow watcher may be behind. Beyond that its stream ends, so that it takes no more memory.
const MAX_BEHIND: usize = 64;

/// How long the poller waits for slow watchers before they lose batches.
const PATIENCE: Duration = Duration::from_secs(2);

/// A task, and the event that shows it.
#[derive(Debug, Clone)]
pub(crate) struct TaskEvent {
    /// The task without its input, which can be large.
    pub(crate) task: Task,
    pub(crate) event: Bytes,
}

impl TaskEvent {
    fn new(task: Task) -> Result<Self, ApiError> {
        let event = sse_event("task", &TaskItem::from(task.clone()))?;
        Ok(Self { event, task: Task { input: TaskInput::default(), ..task } })
    }
}

/// Tasks that changed.
pub(crate) type TaskBatch = Arc<[TaskEvent]>;

/// The events of these tasks.
pub(crate) fn batch(tasks: Vec<Task>) -> TaskBatch {
    tasks.into_iter().filter_map(|task| TaskEvent::new(task).ok()).collect()
}

/// Gives each watcher all changes of tasks from its subscription on.
#[derive(Debug, Default)]
pub(crate) struct TaskFeed {
    /// Where the running poller sends; dead if none runs.
    running: Mutex<Option<WeakSender<TaskBatch>>>,
}

impl TaskFeed {
    /// Subscribes to the changes of the state's tasks, and starts the poller unless it runs. It may begin with changes of a
    /// moment before. The receiver is closed when the service stops or changes may have been missed, and lags if it is too slow.
    pub(crate) fn subscribe(state: &Data<AppState>, kb: &KnowledgeBase) -> Receiver<TaskBatch> {
        let mut running = state.task_feed.running();
        if let Some(sender) = running.as_ref().and_then(WeakSender::upgrade) {
            return sender.subscribe();
        }
        let (sender, receiver) = broadcast::channel(MAX_BEHIND);
        *running = Some(sender.downgrade());
        let poller = Poller { state: state.clone(), kb: kb.clone(), sender, known: HashMap::new() };
        tokio::spawn(poller.run());
        receiver
    }

    fn running(&self) -> MutexGuard<'_, Option<WeakSender<TaskBatch>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the changes. Its end closes the receivers.
struct Poller {
    state: Data<AppState>,
    kb: KnowledgeBase,
    sender: Sender<TaskBatch>,
    /// The versions of the changes that were sent. Changes of a moment before the start are sent too: a watcher may have read
    /// those tasks before they changed.
    known: HashMap<TaskId, u64>,
}

impl Poller {
    async fn run(mut self) {
        let mut polled = Instant::now();
        while !self.state.is_stopping() && !self.ends_without_watchers() {
            let started = Instant::now();
            match self.poll().await {
                Ok(()) => polled = started,
                Err(error) => tracing::debug!(%error, "changes of tasks not read; retrying"),
            }
            if polled.elapsed() > CHANGE_KEPT / 2 {
                tracing::warn!("changes of tasks may have been missed; streams of all tasks end");
                return;
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Whether there are no watchers. Then the next one starts another poller.
    fn ends_without_watchers(&self) -> bool {
        let mut running = self.state.task_feed.running();
        let has_ended = self.sender.receiver_count() == 0;
        if has_ended {
            *running = None;
        }
        has_ended
    }

    /// Sends the tasks that changed since the last poll.
    async fn poll(&mut self) -> lkr::Result<()> {
        let changes = self.kb.task_changes().await?;
        let is_new = |change: &&TaskChange| self.known.get(&change.task_id) != Some(&change.version);
        let changed: Vec<TaskId> = changes.iter().filter(is_new).map(|change| change.task_id).collect();
        for ids in changed.chunks(BATCH) {
            // A task is read after its change, so it is at least as new. A later change is found by the next poll.
            let tasks = self.kb.tasks_with(ids).await?;
            self.wait_for_watchers().await;
            // It fails if there are no watchers.
            let _ = self.sender.send(batch(tasks));
        }
        self.known = changes.into_iter().map(|change| (change.task_id, change.version)).collect();
        Ok(())
    }

    /// Waits while watchers are far behind, but not for long.
    async fn wait_for_watchers(&self) {
        let until = Instant::now() + PATIENCE;
        while self.sender.len() > MAX_BEHIND / 2 && Instant::now() < until {
            sleep(POLL_INTERVAL / 10).await;
        }
    }
}
