//! Accepting tasks. A task that was accepted will end.

use std::time::Duration;

use bytes::Bytes;
use lkr_domain::{Clock, Creator, DocId, SpaceName, TaskId};
use lkr_state::{Expect, StateStoreExt, Write};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::{
    Catalog, CorpusSlot, DocumentState, Error, ErrorKind, ModelName, Progress, Result, Stage, Task,
    TaskFailure, TaskInput, TaskKind, TaskStatus, TaskSubject, UnfinishedTask, key, task_changes, task_index,
};

/// How long the record is kept of the document that upserts of a source replace. It is needed until the document is live, from when on
/// it is found by its source. *Judgement*: no task waits that long.
const UPSERT_RETENTION: Duration = Duration::from_secs(30 * 24 * 3600);

/// A task to be accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct Acceptance {
    /// The task.
    pub task: Task,
    /// The state of its document, whose unfinished task ends as cancelled; `None` for a new document.
    pub existing: Option<DocumentState>,
}

/// An idempotency key: a client may repeat a request, and it is accepted once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    /// The id of the account.
    pub account: String,
    /// The endpoint. The same key at another endpoint is independent.
    pub endpoint: &'static str,
    /// The client's key.
    pub key: String,
}

impl Idempotency {
    /// The lifetime of a key.
    pub const RETENTION: Duration = Duration::from_secs(24 * 3600);

    fn record_key(&self) -> String {
        key::idempotency(&self.account, self.endpoint, &self.key)
    }

    /// The write that records the accepted tasks under the key.
    ///
    /// # Errors
    /// The step that contains it fails with a `Conflict` if the key was used since `before` was read.
    pub fn remember<'a>(
        &self,
        tasks: impl IntoIterator<Item = &'a Task>,
        before: &IdempotencyRecord,
    ) -> Result<Write> {
        let tasks = tasks.into_iter().map(|task| task.task_id).collect();
        let record = serde_json::to_vec(&IdempotencyRecordV1 { tasks });
        let record = record.map_err(|e| Error::corrupt("write idempotency key", e))?;
        let expect = before.version.map_or(Expect::Absent, Expect::Version);
        Ok(Write::put_for(self.record_key(), expect, record, Self::RETENTION))
    }
}

/// The tasks that were accepted under an idempotency key.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IdempotencyRecord {
    /// The current records of the tasks, without those that were removed.
    tasks: Vec<Task>,
    /// Whether some were removed.
    is_incomplete: bool,
    version: Option<u64>,
}

impl IdempotencyRecord {
    /// The tasks, in the order of their documents; `None` if the key is free: it was not used, or all of its tasks were removed.
    ///
    /// # Errors
    /// `Refused` if some of several tasks were removed: those that are left would take the places of others.
    pub fn tasks(&self) -> Result<Option<Vec<Task>>> {
        if self.tasks.is_empty() {
            return Ok(None);
        }
        if self.is_incomplete {
            let reason = "some of the tasks of this idempotency key were removed; use another key";
            return Err(Error::new(ErrorKind::Refused, "read idempotency key", reason));
        }
        Ok(Some(self.tasks.clone()))
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct IdempotencyRecordV1 {
    pub(crate) tasks: Vec<TaskId>,
}

impl Catalog {
    /// Records tasks as pending, and each as its document's unfinished task, in one step. Unfinished tasks of the same
    /// documents end as cancelled. `alongside` is written in the same step.
    ///
    /// # Errors
    /// `Conflict` if a document's state changed since it was read.
    pub async fn accept(&self, acceptances: &[Acceptance], alongside: Vec<Write>) -> Result<()> {
        let mut writes = alongside;
        for Acceptance { task, existing } in acceptances {
            let unfinished = existing.as_ref().and_then(|existing| existing.unfinished.as_ref());
            writes.extend(self.accept_writes(task, unfinished)?);
            if !task.status.has_ended() {
                writes.extend(existing.as_ref().map(DocumentState::check_document));
            }
        }
        Ok(self.state.apply(writes).await?)
    }

    /// Records a re-embedding task as pending, in place of the unfinished one. `alongside` is written in the same step.
    ///
    /// # Errors
    /// `Conflict` if the unfinished re-embedding task changed since it was read.
    pub async fn accept_reembedding(
        &self,
        task: &Task,
        unfinished: Option<&UnfinishedTask>,
        alongside: Vec<Write>,
    ) -> Result<()> {
        let mut writes = alongside;
        writes.extend(self.accept_writes(task, unfinished)?);
        Ok(self.state.apply(writes).await?)
    }

    /// The writes that record a task about several documents as pending, for a step that also changes other records.
    pub fn corpus_task_writes(&self, task: &Task) -> Result<Vec<Write>> {
        self.accept_writes(task, None)
    }

    /// The writes that record a task, and cancel the unfinished task of the same subject.
    fn accept_writes(&self, task: &Task, unfinished: Option<&UnfinishedTask>) -> Result<Vec<Write>> {
        let mut writes = Vec::from(task_changes::put(task, Expect::Absent)?);
        writes.extend(task_index::put(task));
        // From this step on, the task's record refers to the original.
        if let (Some(doc_id), Some(original)) = (task.subject.doc_id(), &task.input.original) {
            writes.push(Write::delete(key::upload(doc_id, &original.path), Expect::Any));
        }
        if task.status.has_ended() {
            writes.extend(self.task_ended_events(task));
            return Ok(writes);
        }
        let expect =
            unfinished.map_or(Expect::Absent, |unfinished| Expect::Version(unfinished.active.version));
        writes.push(Write::put(key::active(task.subject), expect, task.task_id.to_string()));
        if let Some(unfinished) = unfinished {
            writes.extend(self.cancel_writes(unfinished)?.1);
        }
        Ok(writes)
    }

    /// The write that stores the additional input of a task about several documents: a gold set, or a filter. It is kept
    /// until the task is done, cancelled or removed.
    #[must_use]
    pub fn put_task_input(task_id: TaskId, input: Vec<u8>) -> Write {
        Write::put(key::task_input(task_id), Expect::Absent, input)
    }

    /// The additional input of a task.
    pub async fn task_input(&self, task_id: TaskId) -> Result<Option<Bytes>> {
        let record = self.state.get(&key::task_input(task_id)).await?;
        Ok(record.map(|record| record.value))
    }

    /// The tasks that were accepted under an idempotency key.
    pub async fn idempotency_record(&self, idempotency: &Idempotency) -> Result<IdempotencyRecord> {
        let Some(record) = self.state.get(&idempotency.record_key()).await? else {
            return Ok(IdempotencyRecord::default());
        };
        let IdempotencyRecordV1 { tasks } =
            serde_json::from_slice(&record.value).map_err(|e| Error::corrupt("read idempotency key", e))?;
        let count = tasks.len();
        let mut found = Vec::with_capacity(count);
        for task in tasks {
            found.extend(self.task(task).await?);
        }
        let is_incomplete = found.len() < count;
        Ok(IdempotencyRecord { tasks: found, is_incomplete, version: Some(record.version) })
    }

    /// The document that an account's upserts of a source in a space replace, and the version of that record. The
    /// document may have been deleted or moved since, or have another source.
    pub async fn upsert_target(
        &self,
        space: &SpaceName,
        source: &str,
        owner: &str,
    ) -> Result<Option<(DocId, u64)>> {
        let Some(record) = self.state.get(&key::upsert(space, source, owner)).await? else { return Ok(None) };
        let text = std::str::from_utf8(&record.value).map_err(|e| Error::corrupt("read upsert target", e))?;
        let doc_id = text.parse().map_err(|e| Error::corrupt("read upsert target", e))?;
        Ok(Some((doc_id, record.version)))
    }

    /// The write that makes `doc_id` the target of an account's upserts of a source in a space, until the document can be found by
    /// its source. It expects the version `read`.
    #[must_use]
    pub fn put_upsert_target(
        space: &SpaceName,
        source: &str,
        owner: &str,
        doc_id: DocId,
        read: Option<u64>,
    ) -> Write {
        let expect = read.map_or(Expect::Absent, Expect::Version);
        Write::put_for(key::upsert(space, source, owner), expect, doc_id.to_string(), UPSERT_RETENTION)
    }
}

impl Task {
    /// A pending ingestion of a new document.
    #[must_use]
    pub fn ingest(
        clock: &dyn Clock,
        doc_id: DocId,
        space: SpaceName,
        created_by: Creator,
        input: TaskInput,
    ) -> Self {
        Self::pending(clock, TaskKind::Ingest, TaskSubject::Document(doc_id), Some(space), created_by, input)
    }

    /// A pending replacement of a document.
    #[must_use]
    pub fn replace(
        clock: &dyn Clock,
        doc_id: DocId,
        space: SpaceName,
        created_by: Creator,
        input: TaskInput,
    ) -> Self {
        Self::pending(clock, TaskKind::Replace, TaskSubject::Document(doc_id), Some(space), created_by, input)
    }

    /// A pending classification of all documents, or of those of a space.
    #[must_use]
    pub fn reclassify(clock: &dyn Clock, space: Option<SpaceName>, created_by: Creator) -> Self {
        Self::of_corpus(clock, TaskKind::Reclassify, space, created_by)
    }

    /// A pending removal of a space with all its documents.
    #[must_use]
    pub fn delete_space(clock: &dyn Clock, space: SpaceName, created_by: Creator) -> Self {
        Self::of_corpus(clock, TaskKind::DeleteSpace, Some(space), created_by)
    }

    /// A pending removal of the documents that match a filter, asked for by the API key with the id `key`, if it was one.
    #[must_use]
    pub fn delete_where(clock: &dyn Clock, created_by: Creator, key: Option<String>) -> Self {
        Self { key, ..Self::of_corpus(clock, TaskKind::DeleteWhere, None, created_by) }
    }

    fn of_corpus(clock: &dyn Clock, kind: TaskKind, space: Option<SpaceName>, created_by: Creator) -> Self {
        let subject = TaskSubject::Corpus(CorpusSlot::unique(clock));
        Self::pending(clock, kind, subject, space, created_by, TaskInput::default())
    }

    /// A pending re-embedding of all documents with another model. All such tasks share one slot, so a new one replaces
    /// the unfinished one.
    #[must_use]
    pub fn reembed(clock: &dyn Clock, created_by: Creator, model: ModelName) -> Self {
        let input = TaskInput { model: Some(model), ..TaskInput::default() };
        let subject = TaskSubject::Corpus(CorpusSlot::REEMBEDDING);
        Self::pending(clock, TaskKind::Reembed, subject, None, created_by, input)
    }

    /// A pending evaluation of searches with a gold set.
    #[must_use]
    pub fn evaluate(clock: &dyn Clock, created_by: Creator) -> Self {
        Self::of_corpus(clock, TaskKind::Evaluate, None, created_by)
    }

    fn pending(
        clock: &dyn Clock,
        kind: TaskKind,
        subject: TaskSubject,
        space: Option<SpaceName>,
        created_by: Creator,
        input: TaskInput,
    ) -> Self {
        let now = clock.now();
        Self {
            task_id: TaskId::new_by(clock),
            subject,
            space,
            kind,
            status: TaskStatus::Pending,
            stage: Stage::Queued,
            progress: Progress::default(),
            attempts: 0,
            created_at: now,
            updated_at: now,
            created_by,
            key: None,
            input,
            result: None,
            error: None,
        }
    }

    /// The same task, ended as cancelled at `now`.
    #[must_use]
    pub fn cancelled(self, now: OffsetDateTime) -> Self {
        Self {
            status: TaskStatus::Failed,
            error: Some(TaskFailure::cancelled(self.stage)),
            updated_at: now,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use lkr_state::Op;

    use super::*;

    /// There would be one for each source for ever.
    #[test]
    fn record_of_an_upsert_expires() {
        let write = Catalog::put_upsert_target(&SpaceName::default(), "s", "eva", DocId::new(), None);
        let Op::Put { ttl: Some(ttl), .. } = write.op else { panic!("{write:?}") };
        assert!(ttl > Duration::from_secs(7 * 24 * 3600), "no task waits that long");
    }
}
