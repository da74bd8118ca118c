//! Workers: they claim tasks, keep their leases, and write down how the tasks stand and end.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::FutureExt;
use lkr_catalog::{ActiveTask, FailureReason, Progress, Stage, Task, TaskFailure, TaskKind, TaskStatus};
use lkr_state::Claim;
use time::OffsetDateTime;
use tokio::{sync::watch, task::JoinSet};

use crate::{
    Error, ErrorKind, Result, catch_up, classify, evaluate,
    ingestor::Inner,
    janitor,
    pipeline::{self, Report},
    reembed,
};

/// How long a worker waits for a task before it looks around.
const CLAIM_WAIT: Duration = Duration::from_secs(5);

/// How often the progress of a task is written down.
const PROGRESS_EVERY: Duration = Duration::from_millis(500);

/// The longest pause between two attempts.
const MAX_BACKOFF: Duration = Duration::from_secs(300);

/// How the task under work stands.
type Reports = watch::Receiver<(Stage, Progress)>;

/// The running workers. Dropping it ends them where they are, which loses nothing.
#[derive(Debug)]
pub struct Workers {
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl Workers {
    /// Ends the workers within `patience`: documents under work are finished if that is time enough, else left to
    /// the next start, which goes on with what they stored.
    pub async fn shutdown(mut self, patience: Duration) {
        self.stop.send_replace(true);
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(patience, all).await.is_err() {
            tracing::info!("documents under work are left to the next start");
        }
    }
}

pub(crate) async fn start(inner: &Arc<Inner>) -> Result<Workers> {
    if let Err(error) = reembed::tidy(inner).await {
        tracing::warn!(%error, "collections that are not in use could not be dropped; the next start does");
    }
    match janitor::requeue(inner).await {
        // The janitor tries it again; a full disk keeps nobody from reading.
        Err(error) if error.kind() == ErrorKind::StoreAway => {
            tracing::warn!(%error, "what has not ended is queued later");
            inner.unqueued.store(true, Ordering::Relaxed);
        }
        requeued => requeued?,
    }
    let (stop, stopped) = watch::channel(false);
    let mut tasks = JoinSet::new();
    for _ in 0..inner.options.workers.max(1) {
        tasks.spawn(work(Arc::clone(inner), stopped.clone()));
    }
    tasks.spawn(until(stopped.clone(), janitor::run(Arc::clone(inner))));
    tasks.spawn(until(stopped, catch_up::run(Arc::clone(inner))));
    Ok(Workers { stop, tasks })
}

async fn until(mut stopped: watch::Receiver<bool>, work: impl Future<Output = ()>) {
    tokio::select! {
        () = work => {}
        _ = stopped.wait_for(|stop| *stop) => {}
    }
}

async fn work(inner: Arc<Inner>, mut stopped: watch::Receiver<bool>) {
    // What is about all documents takes long. It goes on beside the documents that come, one such task a worker.
    let mut beside = JoinSet::new();
    while !*stopped.borrow() {
        let claimed = tokio::select! {
            biased;
            _ = stopped.wait_for(|stop| *stop) => break,
            claimed = inner.ports.queue.claim(inner.options.lease, CLAIM_WAIT) => claimed,
        };
        while beside.try_join_next().is_some() {}
        match claimed {
            Ok(Some(claim)) if beside.is_empty() && is_about_all(&inner, &claim).await => {
                beside.spawn(attend_until(stopped.clone(), Arc::clone(&inner), claim));
            }
            Ok(Some(claim)) => attend(&inner, &claim).await,
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, "the task queue is away");
                tokio::time::sleep(inner.options.store_pause).await;
            }
        }
    }
    while beside.join_next().await.is_some() {}
}

/// Whether a task is about more than one document, as far as can be told.
async fn is_about_all(inner: &Inner, claim: &Claim) -> bool {
    let task = inner.ports.catalog.task(claim.task).await;
    task.is_ok_and(|task| task.is_some_and(|task| task.subject.doc_id().is_none()))
}

/// Sees one claim to its end, or gives it back when the workers stop: the next start goes on with it.
async fn attend_until(mut stopped: watch::Receiver<bool>, inner: Arc<Inner>, claim: Claim) {
    tokio::select! {
        () = attend(&inner, &claim) => return,
        _ = stopped.wait_for(|stop| *stop) => {}
    }
    if let Err(error) = inner.ports.queue.retry(&claim, Duration::ZERO).await {
        tracing::warn!(task = %claim.task, %error, "a claim could not be given back");
    }
}

/// Sees one claim to its end: finished, given back, or lost.
async fn attend(inner: &Inner, claim: &Claim) {
    // A model or parser of the embedding program's may panic; that fails this document and no worker.
    let (report, reports) = watch::channel((Stage::Queued, Progress::default()));
    let outcome = AssertUnwindSafe(run(inner, claim, &report, &reports))
        .catch_unwind()
        .await
        .unwrap_or_else(|_| Err(Error::new(ErrorKind::Internal, "ingest", "a step panicked")));
    let pause = match outcome {
        Ok(()) => None,
        Err(error) => {
            let (stage, _) = *reports.borrow();
            pause_after(inner, claim, stage, &error).await
        }
    };
    let ended = match pause {
        Some(pause) => inner.ports.queue.retry(claim, pause).await,
        None => inner.ports.queue.finish(claim).await,
    };
    if let Err(error) = ended {
        tracing::warn!(task = %claim.task, %error, "a claim could not be ended");
    }
    if pause.is_none() && !matches!(is_over(inner, claim).await, Ok(true)) {
        // Who saw that it failed may have had it tried again before it was out of the queue.
        inner.requeue_soon();
    }
}

/// Whether nothing more is to be done for a task.
async fn is_over(inner: &Inner, claim: &Claim) -> Result<bool> {
    let task = inner.ports.catalog.task(claim.task).await?;
    Ok(task.is_none_or(|task| task.status.has_ended()))
}

/// Writes down what a failed attempt means, and answers the pause before the next one; `None` when there is none.
async fn pause_after(inner: &Inner, claim: &Claim, stage: Stage, error: &Error) -> Option<Duration> {
    match error.kind() {
        ErrorKind::StoreAway => {
            tracing::warn!(task = %claim.task, %error, "a store is away; the queue pauses");
            tokio::time::sleep(inner.options.store_pause).await;
            Some(Duration::ZERO)
        }
        ErrorKind::Waiting(pause) => Some(pause),
        ErrorKind::Overtaken => {
            // Cancelled, or done by another: the next claim sees which, and tidies up.
            Some(Duration::ZERO)
        }
        _ => match write_failure(inner, claim, stage, error).await {
            Ok(pause) => pause,
            Err(error) => {
                tracing::warn!(task = %claim.task, %error, "a failure could not be written down");
                Some(inner.options.store_pause)
            }
        },
    }
}

async fn write_failure(
    inner: &Inner,
    claim: &Claim,
    stage: Stage,
    error: &Error,
) -> Result<Option<Duration>> {
    let catalog = &inner.ports.catalog;
    let Some(mut task) = catalog.task(claim.task).await? else { return Ok(None) };
    let Some(active) = active_of(inner, &task).await? else { return Ok(Some(Duration::ZERO)) };
    task.attempts += 1;
    task.stage = stage;
    task.updated_at = OffsetDateTime::now_utc();
    tracing::warn!(task = %claim.task, attempt = task.attempts, %error, "ingestion failed");
    if error.is_retryable() && task.attempts < inner.options.max_attempts {
        task.status = TaskStatus::Pending;
        catalog.record_progress(active, &task).await?;
        let pause = inner.options.backoff.saturating_mul(1 << task.attempts.min(16).saturating_sub(1));
        return Ok(Some(pause.min(MAX_BACKOFF)));
    }
    let is_invalid = error.kind() == ErrorKind::Invalid;
    task.status = TaskStatus::Failed;
    task.error = Some(TaskFailure {
        reason: if is_invalid { FailureReason::Invalid } else { FailureReason::Internal },
        message: error.to_string(),
        stage: task.stage,
        retryable: error.is_retryable(),
    });
    catalog.fail(active, &task).await?;
    inner.garbage.notify_one();
    Ok(None)
}

/// The right to write for a task; `None` where it ended or was overtaken.
async fn active_of(inner: &Inner, task: &Task) -> Result<Option<ActiveTask>> {
    let active = inner.ports.catalog.active(task.subject).await?;
    Ok(active.filter(|active| active.task_id == task.task_id))
}

async fn run(inner: &Inner, claim: &Claim, report: &Report, reports: &Reports) -> Result<()> {
    let catalog = &inner.ports.catalog;
    let Some(mut task) = catalog.task(claim.task).await? else { return Ok(()) };
    let Some(active) = active_of(inner, &task).await? else {
        return janitor::tidy_after(inner, &task).await;
    };
    task.status = TaskStatus::Running;
    task.stage = match task.kind {
        TaskKind::Ingest | TaskKind::Replace => Stage::Parse,
        TaskKind::Reembed => Stage::Embed,
        TaskKind::Reclassify => Stage::Classify,
        TaskKind::Evaluate => Stage::Evaluate,
    };
    task.progress = Progress::default();
    task.updated_at = OffsetDateTime::now_utc();
    catalog.record_progress(active, &task).await?;
    let outcome = tokio::select! {
        biased;
        done = perform(inner, active, &task, report) => done,
        lost = keep_lease(inner, claim) => Err(lost),
        overtaken = write_reports(inner, active, task.clone(), reports.clone()) => Err(overtaken),
    };
    if matches!(&outcome, Err(error) if error.kind() == ErrorKind::Overtaken) {
        // What was written since it was cancelled goes too, though its record may be forgotten by now.
        janitor::tidy_after(inner, &task).await?;
    }
    outcome
}

/// Does what the task asks for.
async fn perform(inner: &Inner, active: ActiveTask, task: &Task, report: &Report) -> Result<()> {
    match task.kind {
        TaskKind::Ingest | TaskKind::Replace => pipeline::ingest(inner, active, task, report).await,
        TaskKind::Reembed => reembed::reembed(inner, active, task, report).await,
        TaskKind::Reclassify => classify::reclassify(inner, active, task, report).await,
        TaskKind::Evaluate => evaluate::evaluate(inner, active, task, report).await,
    }
}

/// Keeps the lease while the work goes on; ends when it is lost.
async fn keep_lease(inner: &Inner, claim: &Claim) -> Error {
    let lease = inner.options.lease;
    loop {
        tokio::time::sleep(lease / 3).await;
        match inner.ports.queue.heartbeat(claim, lease).await {
            Ok(()) => {}
            Err(error) if error.is_retryable() => tracing::warn!(%error, "a heartbeat failed"),
            Err(error) => return error.into(),
        }
    }
}

/// Writes progress down while the work goes on, and looks whether it still is what is wanted; ends when the task was
/// overtaken.
async fn write_reports(inner: &Inner, active: ActiveTask, mut task: Task, mut reports: Reports) -> Error {
    loop {
        tokio::time::sleep(PROGRESS_EVERY).await;
        if !reports.has_changed().unwrap_or_default() {
            match inner.ports.catalog.active(active.subject).await {
                Ok(now) if now != Some(active) => {
                    return Error::new(ErrorKind::Overtaken, "ingest", "the task is not wanted any more");
                }
                _ => continue,
            }
        }
        (task.stage, task.progress) = *reports.borrow_and_update();
        task.updated_at = OffsetDateTime::now_utc();
        match inner.ports.catalog.record_progress(active, &task).await {
            Ok(()) => {}
            Err(error) if error.kind() == lkr_catalog::ErrorKind::Conflict => return error.into(),
            Err(error) => tracing::warn!(%error, "progress could not be written down"),
        }
    }
}
