//! Tasks that have ended: tried again, or forgotten.

use lkr_domain::TaskId;
use lkr_state::{Expect, ScanOrder, StateStoreExt, Write};
use time::OffsetDateTime;

use crate::{
    Catalog, DocumentState, Error, ErrorKind, FailedAttempt, Progress, Result, Stage, Task, TaskStatus,
    catalog::{key, read_task, write_task},
    garbage::let_go,
};

impl Catalog {
    /// Makes a failed task pending again, with what its earlier tries stored.
    ///
    /// # Errors
    /// `Refused` where it did not fail, was cancelled, was overtaken by another of its document, or nothing of it is
    /// kept any more; the reason says which. `Conflict` where it was changed meanwhile, and may be tried anew.
    pub async fn retry(&self, task_id: TaskId) -> Result<Option<Task>> {
        let Some(record) = self.state.get(&key::task(task_id)).await? else { return Ok(None) };
        let before = read_task(&record)?;
        let present = self.document_state(before.doc_id).await?;
        let held = retryable(&before, &present)?;
        let task = Task {
            status: TaskStatus::Pending,
            stage: Stage::Queued,
            progress: Progress::default(),
            attempts: 0,
            updated_at: OffsetDateTime::now_utc(),
            error: None,
            ..before
        };
        let doc_id = task.doc_id;
        let mut writes = vec![
            Write::put(key::task(task_id), Expect::Version(record.version), write_task(&task)?),
            Write::put(key::active(doc_id), Expect::Absent, task_id.to_string()),
            present.check_document(),
        ];
        writes.extend(
            held.map(|held| Write::delete(key::held(doc_id, held.revision), Expect::Version(held.version))),
        );
        self.state.apply(writes).await?;
        Ok(Some(task))
    }

    /// Forgets a task that has ended; answers it as it was.
    ///
    /// # Errors
    /// `Refused` where it has not ended.
    pub async fn forget_task(&self, task_id: TaskId) -> Result<Option<Task>> {
        let Some(record) = self.state.get(&key::task(task_id)).await? else { return Ok(None) };
        let task = read_task(&record)?;
        if !task.status.has_ended() {
            return Err(refused("forget task", "the task has not ended"));
        }
        self.state.apply(self.forgetting(&task, record.version).await?).await?;
        Ok(Some(task))
    }

    /// Forgets tasks that ended before `time`, of the oldest `limit` tasks; answers how many.
    pub async fn forget_tasks(&self, time: OffsetDateTime, limit: usize) -> Result<usize> {
        let records = self.state.scan(key::TASKS, None, ScanOrder::Ascending, limit).await?;
        let mut forgotten = 0;
        for (_, record) in records {
            let task = read_task(&record)?;
            if task.status.has_ended() && task.updated_at < time {
                self.state.apply(self.forgetting(&task, record.version).await?).await?;
                forgotten += 1;
            }
        }
        Ok(forgotten)
    }

    async fn forgetting(&self, task: &Task, version: u64) -> Result<Vec<Write>> {
        let mut writes = vec![
            Write::delete(key::task(task.task_id), Expect::Version(version)),
            Write::delete(key::gold(task.task_id), Expect::Any),
        ];
        if task.status == TaskStatus::Failed && task.kind.is_about_a_document() {
            let present = self.document_state(task.doc_id).await?;
            let held = present.held.iter().filter(|held| held.task_id == task.task_id);
            writes.extend(held.flat_map(|held| let_go(task.doc_id, held)));
        }
        Ok(writes)
    }

    /// Tasks that have not ended, oldest first, beyond `after`, and where to go on; to queue them again at start.
    pub async fn unfinished(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<TaskId>, Option<String>)> {
        let records = self.state.scan(key::ACTIVE, after, ScanOrder::Ascending, limit).await?;
        let next = (records.len() == limit).then(|| records.last().map(|(key, _)| key.clone())).flatten();
        let tasks = records
            .iter()
            .filter_map(|(_, record)| std::str::from_utf8(&record.value).ok()?.parse().ok())
            .collect();
        Ok((tasks, next))
    }
}

/// Whether a task can be tried again, and with what of it that is kept.
fn retryable<'a>(task: &Task, present: &'a DocumentState) -> Result<Option<&'a FailedAttempt>> {
    let operation = "retry task";
    match (&task.status, &task.error) {
        (TaskStatus::Failed, Some(error)) if error.is_cancelled() => {
            return Err(refused(operation, "the task was cancelled, and nothing of it is kept"));
        }
        (TaskStatus::Failed, _) => {}
        (status, _) => return Err(refused(operation, &format!("the task is {}", status.name()))),
    }
    if !task.kind.is_about_a_document() {
        // Of those that are about all documents, only changes of the model exclude each other.
        return match present.unfinished {
            Some(_) => Err(refused(operation, "a later change took its place")),
            None => Ok(None),
        };
    }
    let Some(held) = present.held.iter().find(|held| held.task_id == task.task_id) else {
        return Err(refused(operation, "nothing of the task is kept any more"));
    };
    let live = present.document.as_ref().map(|document| document.value.revision);
    if present.unfinished.is_some() || live.is_some_and(|live| live > held.revision) {
        return Err(refused(operation, "a later task of the same document took its place"));
    }
    Ok(Some(held))
}

fn refused(operation: &'static str, reason: &str) -> Error {
    Error::new(ErrorKind::Refused, operation, reason.to_owned())
}
