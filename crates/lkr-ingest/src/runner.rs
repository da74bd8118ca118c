//! Runs tasks: claims them from the queue, keeps their leases, records their progress, failures and retries. What a task
//! does is up to its [`Jobs`].

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, atomic::AtomicUsize},
    time::Duration,
};

use futures_util::FutureExt;
use lkr_catalog::{
    ActiveTask, Catalog, FailureReason, Progress, Stage, Task, TaskFailure, TaskKind, TaskStatus,
};
use lkr_state::{Claim, Lane, TaskQueue};
use tokio::{sync::watch, task::JoinSet};
use tracing::{Instrument, Span};

use crate::{
    AttemptOutcome, Error, ErrorKind, IngestOptions, Result, TaskObserver,
    gc::Gc,
    options::backoff,
    queueing::Queueing,
    report::{Report, Reports},
    text_budget::TextPermit,
};
use busy::BusyGuard;
pub(crate) use store_wait::StoreWait;

/// How long a worker waits for a task before it checks whether to stop.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(5);

/// How often the progress of a task is recorded.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// The most tasks over all documents that one worker runs beside a document, and the pause before another one is claimed again. They take
/// from seconds to hours, and documents must not wait for them.
const CORPUS_TASKS_BESIDE: usize = 4;
const CORPUS_TASK_PAUSE: Duration = Duration::from_secs(2);

/// The longest pause between two attempts.
const MAX_BACKOFF: Duration = Duration::from_secs(300);

/// The work of tasks.
pub(crate) trait Jobs: Send + Sync + 'static {
    /// The stage that a kind of task begins with.
    fn first_stage(&self, kind: TaskKind) -> Stage;

    /// Waits until there is room for a long text.
    fn reserve(&self, task: &Task) -> impl Future<Output = TextPermit> + Send;

    /// Performs one attempt of a task and ends the task. `share` is what was reserved for its text.
    fn perform(
        &self,
        active: ActiveTask,
        task: &Task,
        report: &Report,
        share: TextPermit,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Removes what a task stored that has ended or was superseded, unless it is live.
    fn clean_up(&self, task: &Task) -> impl Future<Output = Result<()>> + Send;
}

/// Runs the tasks of a queue.
pub(crate) struct Runner<J> {
    pub(crate) catalog: Catalog,
    pub(crate) queue: Arc<dyn TaskQueue>,
    pub(crate) queueing: Arc<Queueing>,
    pub(crate) gc: Arc<Gc>,
    pub(crate) options: IngestOptions,
    /// The number of workers that wait for a short task.
    pub(crate) idle: watch::Sender<usize>,
    /// The number of tasks in progress.
    pub(crate) busy: Arc<AtomicUsize>,
    pub(crate) store_wait: Arc<StoreWait>,
    pub(crate) observer: Option<Arc<dyn TaskObserver>>,
    pub(crate) jobs: J,
}

impl<J: Jobs> Runner<J> {
    /// Works on the tasks of `lane` until `stopped` is true: short tasks, or those of the spare lane while no worker of
    /// short tasks is idle. Tasks over all documents run beside those of documents.
    pub(crate) async fn work(self: Arc<Self>, lane: Lane, mut stopped: watch::Receiver<bool>) {
        let mut corpus_tasks = JoinSet::new();
        while !*stopped.borrow() {
            let claimed = tokio::select! {
                biased;
                _ = stopped.wait_for(|stop| *stop) => break,
                claimed = self.claim(lane) => claimed,
            };
            while corpus_tasks.try_join_next().is_some() {}
            match claimed {
                Ok(Some(claim)) if self.is_corpus_task(&claim).await => {
                    if corpus_tasks.len() < CORPUS_TASKS_BESIDE {
                        corpus_tasks.spawn(Arc::clone(&self).attend_until(stopped.clone(), claim));
                    } else {
                        self.end_claim(&claim, Some(CORPUS_TASK_PAUSE)).await;
                    }
                }
                Ok(Some(claim)) => self.attend(&claim, None).await,
                Ok(None) => {}
                Err(error) => self.pause_claims(&error).await,
            }
        }
        while corpus_tasks.join_next().await.is_some() {}
    }

    async fn claim(&self, lane: Lane) -> lkr_state::Result<Option<Claim>> {
        if lane == Lane::Spare {
            // The sender is never closed, because the runner has it.
            let _ = self.idle.subscribe().wait_for(|idle| *idle == 0).await;
            return self.queue.claim_in(lane, self.options.lease, CLAIM_TIMEOUT).await;
        }
        self.idle.send_modify(|idle| *idle += 1);
        let claimed = self.queue.claim_in(lane, self.options.lease, CLAIM_TIMEOUT).await;
        self.idle.send_modify(|idle| *idle -= 1);
        claimed
    }

    async fn pause_claims(&self, error: &lkr_state::Error) {
        let pause = self.options.store_pause;
        tracing::warn!(%error, ?pause, "cannot claim a task: the queue is unavailable; will retry");
        tokio::time::sleep(pause).await;
    }

    /// Whether a task is known to be about all documents.
    async fn is_corpus_task(&self, claim: &Claim) -> bool {
        let task = self.catalog.task(claim.task).await;
        task.is_ok_and(|task| task.is_some_and(|task| task.subject.doc_id().is_none()))
    }

    /// Runs a claimed task. When the workers stop, returns it to the queue: the next start continues it.
    async fn attend_until(self: Arc<Self>, mut stopped: watch::Receiver<bool>, claim: Claim) {
        tokio::select! {
            () = self.attend(&claim, None) => return,
            _ = stopped.wait_for(|stop| *stop) => {}
        }
        self.give_back(&claim).await;
    }

    /// Runs one attempt of a claimed task, then finishes the claim or returns it to the queue.
    async fn attend(&self, claim: &Claim, share: TextPermit) {
        let _busy = BusyGuard::enter(&self.busy);
        let (report, reports) = Report::new(self.observer.clone());
        // A model or parser of the embedding program may panic; that fails the attempt, not the worker.
        let outcome = AssertUnwindSafe(self.attempt(claim, &report, &reports, share))
            .catch_unwind()
            .await
            .unwrap_or_else(|_| Err(Error::new(ErrorKind::Internal, "ingest", "a step panicked")));
        let pause = match outcome {
            Ok(()) => {
                self.store_wait.end();
                None
            }
            Err(error) => self.pause_after(claim, reports.stage(), &error).await,
        };
        self.end_claim(claim, pause).await;
        if pause.is_none() && !matches!(self.has_ended(claim).await, Ok(true)) {
            // A client retried the failed task before it left the queue.
            self.queueing.requeue_later();
        }
    }

    /// Returns the claimed task to the queue, for after a pause, or removes it if there is none.
    async fn end_claim(&self, claim: &Claim, pause: Option<Duration>) {
        let ended = match pause {
            Some(pause) => self.queue.retry(claim, pause).await,
            None => self.queue.finish(claim).await,
        };
        if let Err(error) = ended {
            tracing::warn!(task = %claim.task, %error, "cannot end a claim; its lease will expire");
        }
    }

    async fn has_ended(&self, claim: &Claim) -> Result<bool> {
        let task = self.catalog.task(claim.task).await?;
        Ok(task.is_none_or(|task| task.status.has_ended()))
    }

    async fn attempt(
        &self,
        claim: &Claim,
        report: &Report,
        reports: &Reports,
        share: TextPermit,
    ) -> Result<()> {
        let Some(task) = self.catalog.task(claim.task).await? else { return Ok(()) };
        let Some(active) = self.active(&task).await? else {
            return self.jobs.clean_up(&task).await;
        };
        let span = self.observer.as_ref().map_or_else(Span::none, |observer| observer.span(&task));
        let attempted =
            self.perform(claim, task.clone(), active, (report, reports), share).instrument(span).await;
        self.observe_attempt(&task, &attempted);
        attempted
    }

    async fn perform(
        &self,
        claim: &Claim,
        mut task: Task,
        active: ActiveTask,
        (report, reports): (&Report, &Reports),
        share: TextPermit,
    ) -> Result<()> {
        task.status = TaskStatus::Running;
        task.stage = self.jobs.first_stage(task.kind);
        task.progress = Progress::default();
        task.updated_at = self.catalog.now();
        self.catalog.record_progress(active, &task).await?;
        let outcome = tokio::select! {
            biased;
            done = self.jobs.perform(active, &task, report, share) => done,
            lost = self.keep_lease(claim) => Err(lost),
            superseded = self.record_reports(active, task.clone(), reports.clone()) => Err(superseded),
        };
        if matches!(&outcome, Err(error) if error.is_superseded()) {
            self.clean_up_superseded(&task).await?;
        }
        outcome
    }

    /// Removes what a superseded task stored, also after its cancellation. If the state store lost the task's record, what was
    /// accepted is kept: the doctor restores the document or moves its input aside.
    async fn clean_up_superseded(&self, task: &Task) -> Result<()> {
        let task_id = task.task_id;
        if self.catalog.task(task_id).await?.is_some() || self.catalog.was_forgotten(task_id).await? {
            return self.jobs.clean_up(task).await;
        }
        tracing::warn!(%task_id, "the record of a running task is gone; what the task stored is kept for 'lkr doctor'");
        Ok(())
    }

    /// The task's fencing token; `None` if the task has ended or was superseded.
    async fn active(&self, task: &Task) -> Result<Option<ActiveTask>> {
        let active = self.catalog.active(task.subject).await?;
        Ok(active.filter(|active| active.task_id == task.task_id))
    }

    /// Renews the lease until that fails.
    async fn keep_lease(&self, claim: &Claim) -> Error {
        let lease = self.options.lease;
        loop {
            tokio::time::sleep(lease / 3).await;
            match self.queue.heartbeat(claim, lease).await {
                Ok(()) => {}
                Err(error) if error.is_retryable() => {
                    tracing::warn!(task = %claim.task, %error, "cannot renew a lease; will retry");
                }
                Err(error) => return error.into(),
            }
        }
    }

    /// Records the progress of the task until the task is superseded. Once the job has ended its task, it may still tidy up, so this waits
    /// for ever then.
    async fn record_reports(&self, active: ActiveTask, mut task: Task, mut reports: Reports) -> Error {
        let superseded = loop {
            tokio::time::sleep(PROGRESS_INTERVAL).await;
            let Some(report) = reports.take_new() else {
                match self.catalog.active(active.subject).await {
                    Ok(now) if now != Some(active) => {
                        break Error::new(ErrorKind::Superseded, "ingest", "the task was cancelled");
                    }
                    _ => continue,
                }
            };
            (task.stage, task.progress) = report;
            task.updated_at = self.catalog.now();
            if let Err(error) = self.catalog.record_progress(active, &task).await {
                let error = Error::from(error);
                if error.is_superseded() {
                    break error;
                }
                tracing::warn!(task = %task.task_id, %error, "cannot record a task's progress");
            }
        };
        let now = self.catalog.task(task.task_id).await;
        if now.is_ok_and(|now| now.is_some_and(|task| task.status == TaskStatus::Done)) {
            return std::future::pending().await;
        }
        superseded
    }

    /// Records a failed attempt. Returns the pause before the next one; `None` if there is none.
    async fn pause_after(&self, claim: &Claim, stage: Stage, error: &Error) -> Option<Duration> {
        match error.kind() {
            ErrorKind::StoreUnavailable => {
                let pause = self.options.store_pause;
                tracing::warn!(task = %claim.task, %error, ?pause, "a store is unavailable; the worker pauses");
                self.store_wait.begin(error);
                tokio::time::sleep(pause).await;
                Some(Duration::ZERO)
            }
            ErrorKind::Waiting(pause) => Some(pause),
            // Cancelled, or completed by another worker: the next claim finds out and cleans up.
            ErrorKind::Superseded | ErrorKind::Conflict => Some(Duration::ZERO),
            _ => match self.record_failure(claim, stage, error).await {
                Ok(pause) => pause,
                Err(error) => {
                    tracing::warn!(task = %claim.task, %error, "cannot record a failed attempt; will retry");
                    Some(self.options.store_pause)
                }
            },
        }
    }

    async fn record_failure(&self, claim: &Claim, stage: Stage, error: &Error) -> Result<Option<Duration>> {
        let Some(mut task) = self.catalog.task(claim.task).await? else { return Ok(None) };
        let Some(active) = self.active(&task).await? else { return Ok(Some(Duration::ZERO)) };
        task.attempts += 1;
        task.stage = stage;
        task.updated_at = self.catalog.now();
        tracing::warn!(task = %claim.task, attempt = task.attempts, %error, "task attempt failed");
        if error.is_retryable() && task.attempts < self.options.max_attempts {
            task.status = TaskStatus::Pending;
            self.catalog.record_progress(active, &task).await?;
            self.observe(task.kind, AttemptOutcome::Retried);
            return Ok(Some(backoff(self.options.backoff, task.attempts.saturating_sub(1), MAX_BACKOFF)));
        }
        let is_invalid = error.kind() == ErrorKind::Invalid;
        task.status = TaskStatus::Failed;
        task.error = Some(TaskFailure {
            reason: if is_invalid { FailureReason::Invalid } else { FailureReason::Internal },
            message: error.to_string(),
            stage: task.stage,
            retryable: error.is_retryable(),
        });
        self.catalog.fail(active, &task).await?;
        self.observe(task.kind, AttemptOutcome::Failed);
        self.gc.wake();
        Ok(None)
    }
}

mod busy;
#[cfg(test)]
mod fairness_tests;
mod long_texts;
mod observation;
mod store_wait;
#[cfg(test)]
mod tests;
