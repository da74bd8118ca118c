//! Tasks that have ended: tried again, or forgotten.

use lkr_domain::TaskId;
use lkr_state::{Expect, ScanOrder, StateStoreExt, Write};
use time::OffsetDateTime;

use crate::{
    Catalog, DocumentState, Error, ErrorKind, Progress, Result, Stage, Task, TaskStatus, TaskSubject,
    catalog::key,
    garbage::let_go,
    task_record::{read_task, write_task},
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
        check_failed(&before)?;
        let expected = match before.subject {
            TaskSubject::Document(doc_id) => retrying(&before, &self.document_state(doc_id).await?)?,
            TaskSubject::Corpus(_) => {
                if self.unfinished_task(before.subject).await?.is_some() {
                    return Err(refused(RETRY, "a later change took its place"));
                }
                Vec::new()
            }
        };
        let task = Task {
            status: TaskStatus::Pending,
            stage: Stage::Queued,
            progress: Progress::default(),
            attempts: 0,
            updated_at: OffsetDateTime::now_utc(),
            error: None,
            ..before
        };
        let mut writes = vec![
            Write::put(key::task(task_id), Expect::Version(record.version), write_task(&task)?),
            Write::put(key::active(task.subject), Expect::Absent, task_id.to_string()),
        ];
        writes.extend(expected);
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
        if let (TaskStatus::Failed, TaskSubject::Document(doc_id)) = (task.status, task.subject) {
            let present = self.document_state(doc_id).await?;
            let held = present.held.iter().filter(|held| held.task_id == task.task_id);
            writes.extend(held.flat_map(|held| let_go(doc_id, held)));
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

const RETRY: &str = "retry task";

/// Refuses a task that did not fail, or was cancelled.
fn check_failed(task: &Task) -> Result<()> {
    match (&task.status, &task.error) {
        (TaskStatus::Failed, Some(error)) if error.is_cancelled() => {
            Err(refused(RETRY, "the task was cancelled, and nothing of it is kept"))
        }
        (TaskStatus::Failed, _) => Ok(()),
        (status, _) => Err(refused(RETRY, &format!("the task is {}", status.name()))),
    }
}

/// The writes that give a failed task of a document its failed attempt back, and expect the document as it was read.
fn retrying(task: &Task, present: &DocumentState) -> Result<Vec<Write>> {
    let Some(held) = present.held.iter().find(|held| held.task_id == task.task_id) else {
        return Err(refused(RETRY, "nothing of the task is kept any more"));
    };
    let live = present.document.as_ref().map(|document| document.value.revision);
    if present.unfinished.is_some() || live.is_some_and(|live| live > held.revision) {
        return Err(refused(RETRY, "a later task of the same document took its place"));
    }
    let key = key::held(present.doc_id, held.revision);
    Ok(vec![present.check_document(), Write::delete(key, Expect::Version(held.version))])
}

fn refused(operation: &'static str, reason: &str) -> Error {
    Error::new(ErrorKind::Refused, operation, reason.to_owned())
}
