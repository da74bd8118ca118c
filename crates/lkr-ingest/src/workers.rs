//! Starting and stopping the workers, the janitor and the backfill.

use std::{
    iter::repeat_n,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use lkr_catalog::{ActiveTask, Stage, Task, TaskKind};
use lkr_state::Lane;
use tokio::{
    runtime::Handle,
    sync::watch,
    task::{AbortHandle, JoinSet},
};

use crate::{
    ErrorKind, Result, backfill,
    delete_space::delete_space,
    delete_where::delete_where,
    evaluate::evaluate,
    janitor, pipeline,
    reclassify::reclassify,
    reembed::reembed,
    report::Report,
    runner::{Jobs, Runner, StoreWait},
    state::IngestState,
    text_budget::TextPermit,
};

/// How often the fingerprints are followed that other processes change.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(15);

/// The running workers. Dropping it aborts them, which loses nothing.
#[derive(Debug)]
pub struct Workers {
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
    /// Those of the tasks that process documents.
    processing: Vec<AbortHandle>,
    workers: usize,
    busy: Arc<AtomicUsize>,
    store_wait: Arc<StoreWait>,
}

/// What the workers do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkerStatus {
    /// The number of workers, as [`IngestOptions::workers`](crate::IngestOptions::workers) says; 0 once they are stopped.
    pub workers: usize,
    /// The number of tasks in progress. Long texts, tasks over all documents and the spare worker come on top of the workers.
    pub busy: usize,
}

impl Workers {
    /// What they do now.
    #[must_use]
    pub fn status(&self) -> WorkerStatus {
        WorkerStatus { workers: self.workers, busy: self.busy.load(Ordering::Relaxed) }
    }

    /// Why they wait for a store, if they do.
    #[must_use]
    pub fn waits_for_store(&self) -> Option<&'static str> {
        self.store_wait.reason()
    }

    /// Whether no documents are processed here: there are no workers, or the runtime that they ran on has ended.
    #[must_use]
    pub fn process_nothing(&self) -> bool {
        self.processing.iter().all(AbortHandle::is_finished)
    }

    /// Stops the workers. Documents that are not finished within `timeout` are left to the next start, which continues
    /// with what is stored of them.
    pub async fn shutdown(mut self, timeout: Duration) {
        self.stop.send_replace(true);
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(timeout, all).await.is_err() {
            tracing::info!("workers did not finish in time; the next start continues their documents");
        }
    }
}

/// Queues what an earlier process left and starts everything that runs in the background, on `runtime`.
pub(crate) async fn start(state: &Arc<IngestState>, runtime: &Handle) -> Result<Workers> {
    let (stop, stopped) = watch::channel(false);
    let (mut tasks, busy) = (JoinSet::new(), Arc::new(AtomicUsize::new(0)));
    let store_wait = Arc::<StoreWait>::default();
    let workers = state.options.workers;
    if workers == 0 {
        state.ports.peers.follow_only();
        tasks.spawn_on(run_until(stopped, janitor::run(Arc::clone(state))), runtime);
        return Ok(Workers { stop, tasks, processing: Vec::new(), workers, busy, store_wait });
    }
    if let Err(error) = state.model_change.drop_unused_collections(&state.ports).await {
        tracing::warn!(%error, "cannot drop unused collections; the next start will");
    }
    match janitor::requeue_unfinished(&state.ports).await {
        // The janitor will retry; reading works on a full disk.
        Err(error) if error.kind() == ErrorKind::StoreUnavailable => {
            tracing::warn!(%error, "cannot queue the unfinished tasks; the janitor will retry");
            state.queueing.requeue_later();
        }
        requeued => requeued?,
    }
    let runner = Arc::new(Runner {
        catalog: state.ports.catalog.clone(),
        queue: Arc::clone(&state.ports.queue),
        queueing: Arc::clone(&state.queueing),
        gc: Arc::clone(&state.gc),
        options: state.options.clone(),
        idle: watch::Sender::new(0),
        busy: Arc::clone(&busy),
        store_wait: Arc::clone(&store_wait),
        observer: state.ports.observer.clone(),
        jobs: IngestJobs(Arc::clone(state)),
    });
    // One worker beside the others, so that an account does not wait until another's burst leaves one free.
    let spare = usize::from(workers > 1);
    let lanes = repeat_n(Lane::Short, workers).chain(repeat_n(Lane::Spare, spare));
    let processing: Vec<_> =
        lanes.map(|lane| tasks.spawn_on(Arc::clone(&runner).work(lane, stopped.clone()), runtime)).collect();
    tasks.spawn_on(Arc::clone(&runner).work_on_long_texts(stopped.clone()), runtime);
    tasks.spawn_on(run_until(stopped.clone(), janitor::run(Arc::clone(state))), runtime);
    if state.ports.peers.is_shared() {
        tasks.spawn_on(run_until(stopped.clone(), follow_fingerprints(Arc::clone(state))), runtime);
    }
    tasks.spawn_on(run_until(stopped, backfill::run(Arc::clone(state))), runtime);
    Ok(Workers { stop, tasks, processing, workers, busy, store_wait })
}

/// Reads what other processes change in the fingerprints of documents, before the marks of the changes expire.
async fn follow_fingerprints(state: Arc<IngestState>) {
    loop {
        tokio::time::sleep(FOLLOW_INTERVAL).await;
        if let Err(error) = state.duplicates.keep_up(&state.ports.catalog).await {
            tracing::debug!(%error, "cannot read changes of fingerprints; will retry");
        }
    }
}

async fn run_until(mut stopped: watch::Receiver<bool>, work: impl Future<Output = ()>) {
    tokio::select! {
        () = work => {}
        _ = stopped.wait_for(|stop| *stop) => {}
    }
}

/// The jobs of ingestion.
struct IngestJobs(Arc<IngestState>);

impl Jobs for IngestJobs {
    fn first_stage(&self, kind: TaskKind) -> Stage {
        match kind {
            TaskKind::Ingest | TaskKind::Replace => Stage::Parse,
            TaskKind::Reembed => Stage::Embed,
            TaskKind::Reclassify => Stage::Classify,
            TaskKind::Evaluate => Stage::Evaluate,
            TaskKind::DeleteSpace | TaskKind::DeleteWhere => Stage::Delete,
        }
    }

    async fn reserve(&self, task: &Task) -> TextPermit {
        let doc_id = task.subject.doc_id()?;
        let length = self.0.ports.texts.length(doc_id, task.input.revision).await.ok()?;
        self.0.text_budget.acquire(length).await
    }

    async fn perform(
        &self,
        active: ActiveTask,
        task: &Task,
        report: &Report,
        share: TextPermit,
    ) -> Result<()> {
        let state = &*self.0;
        match task.kind {
            TaskKind::Ingest | TaskKind::Replace => {
                pipeline::ingest(state, active, task, report, share).await
            }
            TaskKind::Reembed => reembed(state, active, task, report).await,
            TaskKind::Reclassify => reclassify(&state.ports, &state.changes, active, task, report).await,
            TaskKind::Evaluate => evaluate(&state.ports, active, task, report).await,
            TaskKind::DeleteSpace => delete_space(state, active, task, report).await,
            TaskKind::DeleteWhere => delete_where(state, active, task, report).await,
        }
    }

    async fn clean_up(&self, task: &Task) -> Result<()> {
        janitor::clean_up_after(&self.0, task).await
    }
}
