//! Retrying and removing tasks that have ended.

use std::time::Duration;

use lkr_domain::TaskId;
use lkr_state::{Expect, ScanOrder, StateStoreExt, Write};
use time::OffsetDateTime;

use crate::{
    Catalog, DocumentState, Error, ErrorKind, Progress, Result, Stage, Task, TaskStatus, TaskSubject,
    garbage::discard_failed_attempt,
    key,
    partial_result::discard_working_records,
    task_changes,
    task_index::{self, TaskGroup},
    task_record::read_task,
};

/// How long it is known that the record of a task was removed. A worker that still runs a cancelled task notices that within seconds,
/// or when its stores answer again.
const FORGOTTEN_KEPT: Duration = Duration::from_secs(3600);

impl Catalog {
    /// Makes a failed task pending again. It keeps what its earlier attempts stored. `alongside` is written in the same step.
    ///
    /// # Errors
    /// `Refused` if it did not fail, was cancelled, another task took its place, or nothing of it is kept; the message
    /// says which. `Conflict` if it changed meanwhile; the caller may repeat the call.
    pub async fn retry(&self, task_id: TaskId, alongside: Vec<Write>) -> Result<Option<Task>> {
        let Some(record) = self.state.get(&key::task(task_id)).await? else { return Ok(None) };
        let before = read_task(&record)?;
        check_failed(&before)?;
        let expected = match before.subject {
            TaskSubject::Document(doc_id) => retry_writes(&before, &self.document_state(doc_id).await?)?,
            TaskSubject::Corpus(_) => {
                if self.unfinished_task(before.subject).await?.is_some() {
                    return Err(refused(RETRY, "a later re-embedding took its place"));
                }
                Vec::new()
            }
        };
        let task = Task {
            status: TaskStatus::Pending,
            stage: Stage::Queued,
            progress: Progress::default(),
            attempts: 0,
            updated_at: self.now(),
            error: None,
            ..before
        };
        let mut writes = alongside;
        writes.push(Write::put(key::active(task.subject), Expect::Absent, task_id.to_string()));
        writes.extend(task_changes::put_status(&task, Expect::Version(record.version), TaskGroup::Failed)?);
        writes.extend(expected);
        self.state.apply(writes).await?;
        Ok(Some(task))
    }

    /// Removes a task that has ended and returns it.
    ///
    /// # Errors
    /// `Refused` if it has not ended.
    pub async fn forget_task(&self, task_id: TaskId) -> Result<Option<Task>> {
        let Some(record) = self.state.get(&key::task(task_id)).await? else { return Ok(None) };
        let task = read_task(&record)?;
        if !task.status.has_ended() {
            return Err(refused("forget task", "the task has not ended"));
        }
        self.state.apply(self.forget_writes(&task, record.version).await?).await?;
        Ok(Some(task))
    }

    /// Whether the record of this task was removed within the last hour, less than an hour after it had ended without a result. The
    /// record of a task that a worker ran until now is missing otherwise only if the state store lost it.
    ///
    /// # Errors
    /// Those of the state store.
    pub async fn was_forgotten(&self, task_id: TaskId) -> Result<bool> {
        Ok(self.state.get(&key::forgotten_task(task_id)).await?.is_some())
    }

    /// Removes the tasks that ended before `time`, and returns their number. `page` tasks are read and removed at a time.
    ///
    /// # Errors
    /// Those of the state store, and `Corrupt` if a task cannot be read.
    pub async fn forget_tasks(&self, time: OffsetDateTime, page: usize) -> Result<usize> {
        let time_ms = time.unix_timestamp_nanos() / 1_000_000;
        let (mut after, mut forgotten) = (None::<String>, 0);
        loop {
            // Mostly there is none, and then no task need be read: none ended before it was made.
            let oldest = self.state.scan(key::TASKS, after.as_deref(), ScanOrder::Ascending, 1).await?;
            let is_younger = |task: TaskId| i128::from(task.unix_ms()) >= time_ms;
            if oldest.first().is_none_or(|(key, _)| task_of(key).is_some_and(is_younger)) {
                return Ok(forgotten);
            }
            let records = self.state.scan(key::TASKS, after.as_deref(), ScanOrder::Ascending, page).await?;
            let mut removals = Vec::new();
            for (_, record) in &records {
                let task = read_task(record)?;
                if task.status.has_ended() && task.updated_at < time {
                    removals.push(self.forget_writes(&task, record.version).await?);
                }
            }
            forgotten += self.apply_removals(removals).await?;
            after = records.into_iter().next_back().map(|(key, _)| key);
        }
    }

    /// Removes tasks in one step, or each alone if one of them changed meanwhile, which stays. Returns the number of removed ones.
    async fn apply_removals(&self, removals: Vec<Vec<Write>>) -> Result<usize> {
        if removals.is_empty() {
            return Ok(0);
        }
        let together = self.state.apply(removals.concat()).await;
        let Err(error) = together else { return Ok(removals.len()) };
        if error.kind() != lkr_state::ErrorKind::Conflict {
            return Err(error.into());
        }
        let mut removed = 0;
        for removal in removals {
            match self.state.apply(removal).await {
                Ok(()) => removed += 1,
                Err(error) if error.kind() == lkr_state::ErrorKind::Conflict => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(removed)
    }

    async fn forget_writes(&self, task: &Task, version: u64) -> Result<Vec<Write>> {
        let mut writes = vec![Write::delete(key::task(task.task_id), Expect::Version(version))];
        writes.extend(discard_working_records(task.task_id));
        writes.extend(task_index::delete(task));
        if task.result.is_none() && self.now() - task.updated_at < FORGOTTEN_KEPT {
            let key = key::forgotten_task(task.task_id);
            writes.push(Write::put_for(key, Expect::Any, Vec::new(), FORGOTTEN_KEPT));
        }
        if let (TaskStatus::Failed, TaskSubject::Document(doc_id)) = (task.status, task.subject) {
            let state = self.document_state(doc_id).await?;
            let attempts = state.failed_attempts.iter().filter(|attempt| attempt.task_id == task.task_id);
            writes.extend(attempts.flat_map(|attempt| discard_failed_attempt(doc_id, attempt)));
        }
        Ok(writes)
    }

    /// Up to `limit` unfinished tasks, beyond `after`, and where the next page begins. Every start queues them again.
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

/// The task of a record's key.
fn task_of(key: &str) -> Option<TaskId> {
    key.strip_prefix(key::TASKS)?.parse().ok()
}

const RETRY: &str = "retry task";

/// Refuses a task that did not fail, or was cancelled.
fn check_failed(task: &Task) -> Result<()> {
    match (&task.status, &task.error) {
        (TaskStatus::Failed, Some(error)) if error.is_cancelled() => {
            Err(refused(RETRY, "the task was cancelled; its data is gone"))
        }
        (TaskStatus::Failed, _) => Ok(()),
        (status, _) => Err(refused(RETRY, &format!("the task is {}", status.name()))),
    }
}

/// The writes that remove the failed attempt of a task that is retried, and expect its document to be unchanged.
fn retry_writes(task: &Task, state: &DocumentState) -> Result<Vec<Write>> {
    let Some(attempt) = state.failed_attempts.iter().find(|attempt| attempt.task_id == task.task_id) else {
        return Err(refused(RETRY, "the data of the task was removed"));
    };
    let live = state.document.as_ref().map(|document| document.value.revision);
    if state.unfinished.is_some() || live.is_some_and(|live| live > attempt.revision) {
        return Err(refused(RETRY, "a later task of the same document took its place"));
    }
    let key = key::failed_attempt(state.doc_id, attempt.revision);
    Ok(vec![state.check_document(), Write::delete(key, Expect::Version(attempt.version))])
}

fn refused(operation: &'static str, reason: &str) -> Error {
    Error::new(ErrorKind::Refused, operation, reason.to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lkr_domain::Creator;
    use lkr_state::{MemoryState, StateStore};
    use time::Duration;

    use super::*;
    use crate::Acceptance;

    #[tokio::test]
    async fn tasks_that_are_too_young_to_be_forgotten_are_not_read() {
        let state = Arc::new(MemoryState::default());
        let catalog = Catalog::new(Arc::clone(&state) as Arc<dyn StateStore>);
        let (now, hour) = (catalog.now(), Duration::hours(1));
        assert_eq!(catalog.forget_tasks(now, 10).await.unwrap(), 0);
        let unreadable = Write::put(key::task(TaskId::new()), Expect::Absent, "no task");
        state.apply(vec![unreadable]).await.unwrap();
        assert_eq!(catalog.forget_tasks(now - hour, 10).await.unwrap(), 0);
        assert_eq!(catalog.forget_tasks(now + hour, 10).await.unwrap_err().kind(), ErrorKind::Corrupt);
    }

    #[tokio::test]
    async fn ended_tasks_are_forgotten_behind_an_unfinished_one() {
        let catalog = Catalog::new(Arc::new(MemoryState::default()));
        let mut tasks = Vec::new();
        for _ in 0..4 {
            let task = Task::delete_where(catalog.clock(), Creator::default(), None);
            catalog.accept(&[Acceptance { task: task.clone(), existing: None }], Vec::new()).await.unwrap();
            tasks.push(task);
        }
        for task in &tasks[1..] {
            let unfinished = catalog.unfinished_task(task.subject).await.unwrap().unwrap();
            catalog.cancel(&unfinished, Vec::new()).await.unwrap();
        }
        let (now, hour) = (catalog.now(), Duration::hours(1));
        assert_eq!(catalog.forget_tasks(now - hour, 2).await.unwrap(), 0);
        assert_eq!(catalog.forget_tasks(now + hour, 2).await.unwrap(), 3);
        for (n, task) in tasks.iter().enumerate() {
            assert_eq!(catalog.task(task.task_id).await.unwrap().is_some(), n == 0);
            assert_eq!(catalog.was_forgotten(task.task_id).await.unwrap(), n > 0);
        }
    }
}
