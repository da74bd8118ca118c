//! The steps that change what is visible or what is to be done. Each is one step of the state store.

use lkr_domain::{Counts, Creator, DocId, Document, Original, TaskId};
use lkr_state::{Expect, Order, StateStoreExt, Write};
use time::OffsetDateTime;

use crate::{
    Catalog, Error, Result, Stage, Stored, Task, TaskFailure, TaskStatus,
    catalog::{key, read_task, write_task},
    document,
};

/// The public code of an operation that a later one overtook.
const CODE_CONFLICT: u32 = 1003;

/// The unfinished task of a document. Whoever holds it may write; a delete takes it away, and what its worker
/// still writes is refused from then on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Active {
    /// The document.
    pub doc_id: DocId,
    /// The task.
    pub task_id: TaskId,
    version: u64,
}

impl Active {
    fn check(self) -> Write {
        Write::check(key::active(self.doc_id), Expect::Version(self.version))
    }

    fn end(self) -> Write {
        Write::delete(key::active(self.doc_id), Expect::Version(self.version))
    }
}

/// What a delete took away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deleted {
    /// The live points that went.
    pub counts: Counts,
    /// The task that ended with it, to be taken from the queue.
    pub cancelled: Option<TaskId>,
}

/// A revision whose points, text and original nobody shows any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trash {
    /// The document.
    pub doc_id: DocId,
    /// The revision.
    pub revision: u64,
    /// Where its original is stored, where it has one.
    pub original: Option<String>,
}

impl Catalog {
    /// Records a new task as pending, and as its document's unfinished one.
    pub async fn accept(&self, task: &Task) -> Result<()> {
        let writes = vec![
            Write::put(key::task(task.task_id), Expect::Absent, write_task(task)?),
            Write::put(key::active(task.doc_id), Expect::Absent, task.task_id.to_string()),
        ];
        // From here on the task answers for the original.
        let stored = task.input.original.iter();
        let taken = stored.map(|_| Write::delete(key::upload(task.doc_id), Expect::Any));
        Ok(self.state.apply(writes.into_iter().chain(taken).collect()).await?)
    }

    /// The unfinished task of a document.
    pub async fn active(&self, doc_id: DocId) -> Result<Option<Active>> {
        let Some(record) = self.state.get(&key::active(doc_id)).await? else { return Ok(None) };
        let text = std::str::from_utf8(&record.value).map_err(|e| Error::corrupt("read active task", e))?;
        let task_id = text.parse().map_err(|e| Error::corrupt("read active task", e))?;
        Ok(Some(Active { doc_id, task_id, version: record.version }))
    }

    /// Writes how an unfinished task stands.
    ///
    /// # Errors
    /// `Conflict` where the task is no longer its document's unfinished one.
    pub async fn record_progress(&self, active: Active, task: &Task) -> Result<()> {
        let put = Write::put(key::task(task.task_id), Expect::Any, write_task(task)?);
        Ok(self.state.apply(vec![active.check(), put]).await?)
    }

    /// Makes a document visible and its task done, in one step. Where its points have no dense vectors, the
    /// document is noted for [`unembedded`](Self::unembedded).
    ///
    /// # Errors
    /// `Conflict` where the task is no longer its document's unfinished one.
    pub async fn publish(
        &self,
        active: Active,
        document: &Document,
        task: &Task,
        has_dense: bool,
    ) -> Result<()> {
        let mut writes = vec![
            active.end(),
            Write::put(key::document(document.doc_id), Expect::Absent, document::encode(document)?),
            Write::put(key::task(task.task_id), Expect::Any, write_task(task)?),
            Write::increment(key::GENERATION),
        ];
        if !has_dense {
            writes.push(Write::put(key::unembedded(document.doc_id), Expect::Any, Vec::new()));
        }
        Ok(self.state.apply(writes).await?)
    }

    /// Notes that documents may lack dense vectors, or have points that nobody counts on, until
    /// [`embedded`](Self::embedded) takes that back.
    pub async fn embedding(&self, documents: &[DocId]) -> Result<()> {
        let notes = documents.iter().map(|&id| Write::put(key::unembedded(id), Expect::Any, Vec::new()));
        Ok(self.state.apply(notes.collect()).await?)
    }

    /// Up to `limit` documents beyond `after` that lack dense vectors. They may be gone by now.
    pub async fn unembedded(&self, after: Option<DocId>, limit: usize) -> Result<Vec<DocId>> {
        let after = after.map(key::unembedded);
        let records = self.state.scan(key::UNEMBEDDED, after.as_deref(), Order::Ascending, limit).await?;
        Ok(records.iter().filter_map(|(key, _)| key.strip_prefix(key::UNEMBEDDED)?.parse().ok()).collect())
    }

    /// Notes that documents have dense vectors now, and that searches may show it.
    pub async fn embedded(&self, documents: &[DocId]) -> Result<()> {
        let notes = documents.iter().map(|&id| Write::delete(key::unembedded(id), Expect::Any));
        Ok(self.state.apply(notes.chain([Write::increment(key::GENERATION)]).collect()).await?)
    }

    /// Ends a task that is about no document as done.
    ///
    /// # Errors
    /// `Conflict` where it ended meanwhile.
    pub async fn end(&self, active: Active, task: &Task) -> Result<()> {
        let put = Write::put(key::task(task.task_id), Expect::Any, write_task(task)?);
        Ok(self.state.apply(vec![active.end(), put]).await?)
    }

    /// Ends a task as failed. What it stored so far becomes trash.
    ///
    /// # Errors
    /// `Conflict` where the task is no longer its document's unfinished one.
    pub async fn fail(&self, active: Active, task: &Task) -> Result<()> {
        self.end_failed(active, task, Vec::new()).await
    }

    async fn end_failed(&self, active: Active, task: &Task, alongside: Vec<Write>) -> Result<()> {
        let writes = [
            active.end(),
            Write::put(key::task(task.task_id), Expect::Any, write_task(task)?),
            throw_away(task.doc_id, task.input.revision, task.input.original.as_ref()),
        ];
        Ok(self.state.apply(writes.into_iter().chain(alongside).collect()).await?)
    }

    /// Takes a live document away: from when this answers, nothing shows it. `alongside` is written in the same step.
    ///
    /// # Errors
    /// `Conflict` where it changed since it was read.
    pub async fn delete(&self, document: &Stored<Document>, alongside: Vec<Write>) -> Result<Deleted> {
        let Stored { value, version } = document;
        let writes = [
            Write::delete(key::document(value.doc_id), Expect::Version(*version)),
            throw_away(value.doc_id, value.revision, value.original.as_ref()),
            Write::increment(key::GENERATION),
        ];
        self.state.apply(writes.into_iter().chain(alongside).collect()).await?;
        Ok(Deleted { counts: value.counts, cancelled: None })
    }

    /// Ends a document's unfinished task as cancelled. `alongside` is written in the same step.
    ///
    /// # Errors
    /// `Conflict` where the task ended meanwhile.
    pub async fn cancel(&self, active: Active, alongside: Vec<Write>) -> Result<Deleted> {
        let Some(record) = self.state.get(&key::task(active.task_id)).await? else {
            return Ok(Deleted::default());
        };
        let mut task = read_task(&record)?;
        task.error = Some(TaskFailure {
            code: CODE_CONFLICT,
            message: "cancelled".to_owned(),
            stage: task.stage,
            retryable: false,
        });
        task.status = TaskStatus::Failed;
        task.updated_at = OffsetDateTime::now_utc();
        self.end_failed(active, &task, alongside).await?;
        Ok(Deleted { counts: Counts::default(), cancelled: Some(task.task_id) })
    }

    /// What is to be collected beyond `after`, at most `limit`.
    pub async fn trash(&self, after: Option<&Trash>, limit: usize) -> Result<Vec<Trash>> {
        let after = after.map(|trash| key::trash(trash.doc_id, trash.revision));
        let records = self.state.scan(key::TRASH, after.as_deref(), Order::Ascending, limit).await?;
        Ok(records.iter().filter_map(|(key, record)| parse_trash(key, &record.value)).collect())
    }

    /// Forgets trash that was collected.
    pub async fn forget_trash(&self, trash: &Trash) -> Result<()> {
        let delete = Write::delete(key::trash(trash.doc_id, trash.revision), Expect::Any);
        Ok(self.state.apply(vec![delete]).await?)
    }

    /// Forgets tasks that ended before `time`, of the oldest `limit` tasks; answers how many.
    pub async fn forget_tasks(&self, time: OffsetDateTime, limit: usize) -> Result<usize> {
        let records = self.state.scan(key::TASKS, None, Order::Ascending, limit).await?;
        let mut writes = Vec::new();
        for (key, record) in records {
            let task = read_task(&record)?;
            if task.status.has_ended() && task.updated_at < time {
                writes.push(Write::delete(key, Expect::Version(record.version)));
            }
        }
        let forgotten = writes.len();
        if forgotten > 0 {
            self.state.apply(writes).await?;
        }
        Ok(forgotten)
    }

    /// Tasks that have not ended, oldest first, beyond `after`, and where to go on; to queue them again at start.
    pub async fn unfinished(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<TaskId>, Option<String>)> {
        let records = self.state.scan("active/", after, Order::Ascending, limit).await?;
        let next = (records.len() == limit).then(|| records.last().map(|(key, _)| key.clone())).flatten();
        let tasks = records
            .iter()
            .filter_map(|(_, record)| std::str::from_utf8(&record.value).ok()?.parse().ok())
            .collect();
        Ok((tasks, next))
    }
}

/// The state of a task that begins anew.
impl Task {
    /// A pending ingestion of a new document.
    #[must_use]
    pub fn ingest(doc_id: DocId, created_by: Creator, input: crate::TaskInput) -> Self {
        Self::pending(crate::TaskKind::Ingest, doc_id, created_by, input)
    }

    /// A pending classification of all documents.
    #[must_use]
    pub fn reclassify(created_by: Creator) -> Self {
        let input = crate::TaskInput::default();
        Self::pending(crate::TaskKind::Reclassify, DocId::new(), created_by, input)
    }

    fn pending(kind: crate::TaskKind, doc_id: DocId, created_by: Creator, input: crate::TaskInput) -> Self {
        let now = OffsetDateTime::now_utc();
        Self {
            task_id: TaskId::new(),
            doc_id,
            kind,
            status: TaskStatus::Pending,
            stage: Stage::Queued,
            progress: crate::Progress::default(),
            attempts: 0,
            created_at: now,
            updated_at: now,
            created_by,
            input,
            result: None,
            error: None,
        }
    }
}

/// The write that leaves a revision to be collected, with the path of its original as the value.
fn throw_away(doc_id: DocId, revision: u64, original: Option<&Original>) -> Write {
    let path = original.map(|original| original.path.clone().into_bytes()).unwrap_or_default();
    Write::put(key::trash(doc_id, revision), Expect::Any, path)
}

fn parse_trash(key: &str, value: &[u8]) -> Option<Trash> {
    let (doc_id, revision) = key.strip_prefix(key::TRASH)?.split_once('/')?;
    let path = std::str::from_utf8(value).ok().filter(|path| !path.is_empty());
    let original = path.map(str::to_owned);
    Some(Trash { doc_id: doc_id.parse().ok()?, revision: revision.parse().ok()?, original })
}
