//! Accepting tasks: from that step on they will end.

use bytes::Bytes;
use lkr_domain::{Creator, DocId, TaskId};
use lkr_state::{Expect, StateStoreExt, Write};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use time::OffsetDateTime;

use crate::{
    Catalog, CorpusSlot, DocumentState, Error, FailureReason, ModelName, Progress, Result, Stage, Task,
    TaskFailure, TaskInput, TaskKind, TaskStatus, TaskSubject, UnfinishedTask, catalog::key,
    task_record::write_task,
};

/// A task to be accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct Acceptance {
    /// The task.
    pub task: Task,
    /// What there is of its document, of which the unfinished one ends as cancelled; nothing where it is new.
    pub over: Option<DocumentState>,
}

/// That a caller may send the same again and means it once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    /// The id of the account.
    pub account: String,
    /// What it asks for: the same key means something else elsewhere.
    pub endpoint: &'static str,
    /// The caller's own key.
    pub key: String,
}

impl Idempotency {
    /// How long a key is remembered.
    pub const KEPT: Duration = Duration::from_secs(24 * 3600);

    fn record(&self) -> String {
        key::idempotency(&self.account, self.endpoint, &self.key)
    }

    /// The write that remembers the tasks.
    ///
    /// # Errors
    /// The step that it is part of is a `Conflict` where the key was used since `before` was read.
    pub fn remember<'a>(
        &self,
        tasks: impl IntoIterator<Item = &'a Task>,
        before: &Remembered,
    ) -> Result<Write> {
        let tasks = tasks.into_iter().map(|task| task.task_id).collect();
        let record = serde_json::to_vec(&RememberedV1 { tasks });
        let record = record.map_err(|e| Error::corrupt("write idempotency key", e))?;
        let expect = before.version.map_or(Expect::Absent, Expect::Version);
        Ok(Write::put_for(self.record(), expect, record, Self::KEPT))
    }
}

/// What was accepted under a key.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Remembered {
    /// The tasks as they stand now, without those that were forgotten.
    pub tasks: Vec<Task>,
    version: Option<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RememberedV1 {
    pub(crate) tasks: Vec<TaskId>,
}

impl Catalog {
    /// Records tasks as pending, and each as its document's unfinished one, in one step. `alongside` is written in it
    /// too. Unfinished tasks of the same documents end as cancelled.
    ///
    /// # Errors
    /// `Conflict` where what there was of a document has changed.
    pub async fn accept(&self, acceptances: &[Acceptance], alongside: Vec<Write>) -> Result<()> {
        let mut writes = alongside;
        for Acceptance { task, over } in acceptances {
            let unfinished = over.as_ref().and_then(|over| over.unfinished.as_ref());
            writes.extend(self.accepting(task, unfinished)?);
            if !task.status.has_ended() {
                writes.extend(over.as_ref().map(DocumentState::check_document));
            }
        }
        Ok(self.state.apply(writes).await?)
    }

    /// Records a change of the embedding model as pending, in place of the unfinished one. `alongside` is written in the
    /// same step.
    ///
    /// # Errors
    /// `Conflict` if the unfinished change of the model has changed.
    pub async fn accept_reembedding(
        &self,
        task: &Task,
        unfinished: Option<&UnfinishedTask>,
        alongside: Vec<Write>,
    ) -> Result<()> {
        let mut writes = alongside;
        writes.extend(self.accepting(task, unfinished)?);
        Ok(self.state.apply(writes).await?)
    }

    /// The writes that record a task, and cancel the unfinished task of the same subject.
    fn accepting(&self, task: &Task, unfinished: Option<&UnfinishedTask>) -> Result<Vec<Write>> {
        let mut writes = vec![Write::put(key::task(task.task_id), Expect::Absent, write_task(task)?)];
        // From here on the task's record keeps the original from being collected.
        if let (Some(doc_id), Some(original)) = (task.subject.doc_id(), &task.input.original) {
            writes.push(Write::delete(key::upload(doc_id, &original.path), Expect::Any));
        }
        if task.status.has_ended() {
            writes.extend(self.told_task(task));
            return Ok(writes);
        }
        let expect =
            unfinished.map_or(Expect::Absent, |unfinished| Expect::Version(unfinished.active.version));
        writes.push(Write::put(key::active(task.subject), expect, task.task_id.to_string()));
        if let Some(unfinished) = unfinished {
            writes.extend(self.cancelling(unfinished)?.1);
        }
        Ok(writes)
    }

    /// The write that puts the gold set of a task down, which stays until the task is done, cancelled or forgotten.
    #[must_use]
    pub fn put_gold(task_id: TaskId, gold: Vec<u8>) -> Write {
        Write::put(key::gold(task_id), Expect::Absent, gold)
    }

    /// The gold set of a task.
    pub async fn gold(&self, task_id: TaskId) -> Result<Option<Bytes>> {
        let record = self.state.get(&key::gold(task_id)).await?;
        Ok(record.map(|record| record.value))
    }

    /// What was accepted under a key.
    pub async fn remembered(&self, idempotency: &Idempotency) -> Result<Remembered> {
        let Some(record) = self.state.get(&idempotency.record()).await? else {
            return Ok(Remembered::default());
        };
        let RememberedV1 { tasks } =
            serde_json::from_slice(&record.value).map_err(|e| Error::corrupt("read idempotency key", e))?;
        let mut found = Vec::with_capacity(tasks.len());
        for task in tasks {
            found.extend(self.task(task).await?);
        }
        Ok(Remembered { tasks: found, version: Some(record.version) })
    }

    /// The document that an account's upserts of a source are about, and the version of that; the document may be
    /// gone by now, or have another source.
    pub async fn upserted(&self, source: &str, owner: &str) -> Result<Option<(DocId, u64)>> {
        let Some(record) = self.state.get(&key::upsert(source, owner)).await? else { return Ok(None) };
        let text = std::str::from_utf8(&record.value).map_err(|e| Error::corrupt("read upsert", e))?;
        let doc_id = text.parse().map_err(|e| Error::corrupt("read upsert", e))?;
        Ok(Some((doc_id, record.version)))
    }

    /// The write that makes `doc_id` the document of an account's upserts of a source, upon the version that was read.
    #[must_use]
    pub fn upserts(source: &str, owner: &str, doc_id: DocId, read: Option<u64>) -> Write {
        let expect = read.map_or(Expect::Absent, Expect::Version);
        Write::put(key::upsert(source, owner), expect, doc_id.to_string())
    }
}

/// The state of a task that begins anew.
impl Task {
    /// A pending ingestion of a new document.
    #[must_use]
    pub fn ingest(doc_id: DocId, created_by: Creator, input: TaskInput) -> Self {
        Self::pending(TaskKind::Ingest, TaskSubject::Document(doc_id), created_by, input)
    }

    /// A pending replacement of a document.
    #[must_use]
    pub fn replace(doc_id: DocId, created_by: Creator, input: TaskInput) -> Self {
        Self::pending(TaskKind::Replace, TaskSubject::Document(doc_id), created_by, input)
    }

    /// A pending classification of all documents.
    #[must_use]
    pub fn reclassify(created_by: Creator) -> Self {
        Self::pending(
            TaskKind::Reclassify,
            TaskSubject::Corpus(CorpusSlot::unique()),
            created_by,
            TaskInput::default(),
        )
    }

    /// A pending embedding of all documents by another model. There is one at a time: all of them are about the same id,
    /// so that a new one takes the place of the unfinished one.
    #[must_use]
    pub fn reembed(created_by: Creator, model: ModelName) -> Self {
        let input = TaskInput { model: Some(model), ..TaskInput::default() };
        Self::pending(TaskKind::Reembed, TaskSubject::Corpus(CorpusSlot::REEMBEDDING), created_by, input)
    }

    /// A pending judgement of searches.
    #[must_use]
    pub fn evaluate(created_by: Creator) -> Self {
        Self::pending(
            TaskKind::Evaluate,
            TaskSubject::Corpus(CorpusSlot::unique()),
            created_by,
            TaskInput::default(),
        )
    }

    fn pending(kind: TaskKind, subject: TaskSubject, created_by: Creator, input: TaskInput) -> Self {
        let now = OffsetDateTime::now_utc();
        Self {
            task_id: TaskId::new(),
            subject,
            kind,
            status: TaskStatus::Pending,
            stage: Stage::Queued,
            progress: Progress::default(),
            attempts: 0,
            created_at: now,
            updated_at: now,
            created_by,
            input,
            result: None,
            error: None,
        }
    }

    /// The same task, ended because it is not wanted any more.
    #[must_use]
    pub fn cancelled(self) -> Self {
        Self {
            status: TaskStatus::Failed,
            error: Some(TaskFailure {
                reason: FailureReason::Cancelled,
                message: "cancelled".to_owned(),
                stage: self.stage,
                retryable: false,
            }),
            updated_at: OffsetDateTime::now_utc(),
            ..self
        }
    }
}
