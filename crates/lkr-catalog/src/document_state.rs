//! What there is of a document, live and unfinished, read so that a step can be built upon it.

use lkr_domain::{Creator, DocId, Document, TaskId};
use lkr_state::{Expect, ScanOrder, StateStoreExt, Write, retry_on_conflict};
use serde::{Deserialize, Serialize};

use crate::{
    Catalog, ConcurrentEdit, DocumentChange, Error, ErrorKind, LimitExceeded, Result, Stored, Task,
    TaskSubject,
    catalog::{key, read_document},
    task_record::read_task,
};

/// The unfinished task of a document, or of all documents, with its fencing token. Every write of the task expects the
/// token, so a worker whose task was cancelled or replaced cannot write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActiveTask {
    /// What the task is about.
    pub subject: TaskSubject,
    /// The task.
    pub task_id: TaskId,
    pub(crate) version: u64,
}

impl ActiveTask {
    pub(crate) fn check(self) -> Write {
        Write::check(key::active(self.subject), Expect::Version(self.version))
    }

    pub(crate) fn end(self) -> Write {
        Write::delete(key::active(self.subject), Expect::Version(self.version))
    }
}

/// An unfinished task with its record.
#[derive(Debug, Clone, PartialEq)]
pub struct UnfinishedTask {
    /// The right to write for it.
    pub active: ActiveTask,
    /// How it stands.
    pub task: Task,
    /// What was changed of the live document since it was accepted.
    pub amendment: ConcurrentEdit,
}

/// What a task that failed left for its next try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedAttempt {
    /// The revision that it was to make.
    pub revision: u64,
    /// The task.
    pub task_id: TaskId,
    /// Where its original is stored, where it has one.
    pub original: Option<String>,
    /// What was changed of the live document since it was accepted.
    pub amendment: ConcurrentEdit,
    pub(crate) version: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FailedAttemptV1 {
    pub(crate) task_id: TaskId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) original: Option<String>,
}

pub(crate) fn read_held(record: &[u8]) -> Result<FailedAttemptV1> {
    serde_json::from_slice(record).map_err(|e| Error::corrupt("read held input", e))
}

/// What there is of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct DocumentState {
    /// The document.
    pub doc_id: DocId,
    /// Its record, where it is live.
    pub document: Option<Stored<Document>>,
    /// The task that makes or replaces it.
    pub unfinished: Option<UnfinishedTask>,
    /// What earlier tasks left for their next try.
    pub held: Vec<FailedAttempt>,
}

/// The most that failed tasks may leave of one document: whoever replaces it again and again has the oldest go.
pub(crate) const MAX_HELD: usize = 16;

impl Catalog {
    /// The active record of a subject.
    pub async fn active(&self, subject: TaskSubject) -> Result<Option<ActiveTask>> {
        let Some(record) = self.state.get(&key::active(subject)).await? else { return Ok(None) };
        let text = std::str::from_utf8(&record.value).map_err(|e| Error::corrupt("read active task", e))?;
        let task_id = text.parse().map_err(|e| Error::corrupt("read active task", e))?;
        Ok(Some(ActiveTask { subject, task_id, version: record.version }))
    }

    /// What there is of a document. Steps go from unfinished to live, so that reading in this order misses none; that
    /// nothing changed in between is for the step to expect.
    ///
    /// # Errors
    /// `Contention` if it changed during each of the attempts to read it.
    pub async fn document_state(&self, doc_id: DocId) -> Result<DocumentState> {
        retry_on_conflict(&*self.state, "read document", || self.try_document_state(doc_id)).await
    }

    /// One read of a document's state, which conflicts if the state changed between its records.
    async fn try_document_state(&self, doc_id: DocId) -> Result<DocumentState> {
        let subject = TaskSubject::Document(doc_id);
        let active = self.active(subject).await?;
        let unfinished = self.unfinished_of(active).await?;
        let held = self.held(doc_id).await?;
        let record = self.state.get(&key::document(doc_id)).await?;
        let document = record.map(|record| read_document(doc_id, &record)).transpose()?;
        let now = self.active(subject).await?;
        let state = DocumentState { doc_id, document, unfinished, held };
        // A retry moves from failed to unfinished, against the order of these reads.
        if state.is_torn() || now != active {
            return Err(Error::new(ErrorKind::Conflict, "read document", "it changed during the read"));
        }
        Ok(state)
    }

    /// The unfinished task of a subject.
    ///
    /// # Errors
    /// `Contention` if it changed during each of the attempts to read it.
    pub async fn unfinished_task(&self, subject: TaskSubject) -> Result<Option<UnfinishedTask>> {
        retry_on_conflict(&*self.state, "read unfinished task", || async {
            let active = self.active(subject).await?;
            let unfinished = self.unfinished_of(active).await?;
            if self.active(subject).await? != active {
                return Err(Error::new(
                    ErrorKind::Conflict,
                    "read unfinished task",
                    "it changed during the read",
                ));
            }
            Ok(unfinished)
        })
        .await
    }

    /// The task of an active record, which conflicts if the task ended since. A task about all documents is not the task
    /// of a document, even if a client guesses the id of its slot.
    async fn unfinished_of(&self, active: Option<ActiveTask>) -> Result<Option<UnfinishedTask>> {
        let Some(active) = active else { return Ok(None) };
        let Some(record) = self.state.get(&key::task(active.task_id)).await? else {
            return Err(Error::new(ErrorKind::Conflict, "read unfinished task", "it ended during the read"));
        };
        let task = read_task(&record)?;
        if task.subject.doc_id() != active.subject.doc_id() {
            return Ok(None);
        }
        let amendment = self.amendment(active.subject.record_id(), task.input.revision).await?;
        Ok(Some(UnfinishedTask { active, task, amendment }))
    }

    /// What failed tasks left of a document, the oldest first.
    async fn held(&self, doc_id: DocId) -> Result<Vec<FailedAttempt>> {
        let prefix = key::held_of(doc_id);
        let records = self.state.scan(&prefix, None, ScanOrder::Ascending, 2 * MAX_HELD).await?;
        let mut held = Vec::with_capacity(records.len());
        for (key, record) in &records {
            let revision = key.strip_prefix(&prefix).unwrap_or_default();
            let revision = revision.parse().map_err(|e| Error::corrupt("read held input", e))?;
            let FailedAttemptV1 { task_id, original } = read_held(&record.value)?;
            let amendment = self.amendment(doc_id, revision).await?;
            held.push(FailedAttempt { revision, task_id, original, amendment, version: record.version });
        }
        held.sort_by_key(|held| held.revision);
        Ok(held)
    }

    /// Whether a text or points of this revision belong to anything: a live document, a task that is under way, or one
    /// that failed and may be tried again.
    pub async fn knows(&self, doc_id: DocId, revision: u64) -> Result<bool> {
        // Nearly always it is the live one, which one read tells.
        let live = self.document(doc_id).await?;
        if live.is_some_and(|live| live.value.revision == revision) {
            return Ok(true);
        }
        let present = self.document_state(doc_id).await?;
        Ok(present.revisions().any(|known| known == revision))
    }
}

impl DocumentState {
    /// Whether there is neither a live document nor one on its way.
    #[must_use]
    pub const fn is_unknown(&self) -> bool {
        self.document.is_none() && self.unfinished.is_none()
    }

    /// The account that brought the document in, live or on its way.
    #[must_use]
    pub fn owner(&self) -> Option<&Creator> {
        let live = self.document.as_ref().map(|document| &document.value.created_by);
        live.or_else(|| self.unfinished.as_ref().map(|unfinished| &unfinished.task.created_by))
    }

    /// The replacement under way.
    #[must_use]
    pub fn replacement(&self) -> Option<&UnfinishedTask> {
        self.document.as_ref().and(self.unfinished.as_ref())
    }

    /// The paths of the originals that become trash where `revision` is published.
    #[must_use]
    pub fn originals_before(&self, revision: u64) -> Vec<String> {
        let live = self.document.as_ref().and_then(|document| document.value.original.as_ref());
        let held = self.held.iter().filter(|held| held.revision < revision);
        let held = held.filter_map(|held| held.original.clone());
        live.map(|original| original.path.clone()).into_iter().chain(held).collect()
    }

    /// Replacements that failed and may be tried again.
    fn held_replacements(&self) -> impl Iterator<Item = &FailedAttempt> {
        let live = self.document.as_ref().map(|document| document.value.revision);
        self.held.iter().filter(move |held| live.is_some_and(|live| held.revision > live))
    }

    /// Whether a replacement may come that was accepted before now.
    #[must_use]
    pub fn may_be_replaced(&self) -> bool {
        self.replacement().is_some() || self.held_replacements().next().is_some()
    }

    /// What a replacement under way would exceed with this change.
    ///
    /// # Errors
    /// Where it would.
    pub fn check_amended(&self, change: &DocumentChange) -> std::result::Result<(), LimitExceeded> {
        let Some(UnfinishedTask { task, amendment, .. }) = self.replacement() else { return Ok(()) };
        amendment.change.then(change).check(&task.input)
    }

    /// The writes by which replacements that were accepted before take a change over.
    pub(crate) fn amend(&self, change: &DocumentChange) -> Result<Vec<Write>> {
        let doc_id = self.doc_id;
        let mut writes = Vec::new();
        if let Some(UnfinishedTask { active, task, amendment }) = self.replacement() {
            writes.push(active.check());
            writes.push(amendment.add(doc_id, task.input.revision, change)?);
        }
        for held in self.held_replacements() {
            writes.push(Write::check(key::held(doc_id, held.revision), Expect::Version(held.version)));
            writes.push(held.amendment.add(doc_id, held.revision, change)?);
        }
        Ok(writes)
    }

    /// What a task made of the document, as it becomes visible: who brought it in and when stays, a category that a
    /// person chose too, and what was changed since the task was accepted is in force.
    #[must_use]
    pub fn settle(&self, made: &Document) -> Document {
        let mut settled = made.clone();
        if let Some(Stored { value: before, .. }) = &self.document {
            settled.created_at = before.created_at;
            settled.created_by = before.created_by.clone();
            if before.category_by_hand {
                settled.category.clone_from(&before.category);
                settled.category_by_hand = true;
            }
        }
        let change = self.unfinished.as_ref().map(|unfinished| &unfinished.amendment.change);
        // Whoever asked for the change was told if it did not fit.
        change.and_then(|change| change.apply(&settled).ok()).unwrap_or(settled)
    }

    /// Whether a revision is two things at once, because it went from one to the other between two reads.
    fn is_torn(&self) -> bool {
        let mut revisions: Vec<u64> = self.revisions().collect();
        let all = revisions.len();
        revisions.sort_unstable();
        revisions.dedup();
        revisions.len() < all
    }

    fn revisions(&self) -> impl Iterator<Item = u64> {
        let live = self.document.as_ref().map(|document| document.value.revision);
        let unfinished = self.unfinished.as_ref().map(|unfinished| unfinished.task.input.revision);
        live.into_iter().chain(unfinished).chain(self.held.iter().map(|held| held.revision))
    }

    /// A revision that comes after all others of the document, those included that are gone without a trace: a worker
    /// that was cut off must not write to what is another's.
    #[must_use]
    pub fn next_revision(&self, now: time::OffsetDateTime) -> u64 {
        let clock = u64::try_from(now.unix_timestamp_nanos() / 1_000).unwrap_or_default();
        self.revisions().max().map_or(clock, |latest| clock.max(latest + 1))
    }

    /// The write that expects the record of the live document to be as it was read.
    pub(crate) fn check_document(&self) -> Write {
        let expect =
            self.document.as_ref().map_or(Expect::Absent, |document| Expect::Version(document.version));
        Write::check(key::document(self.doc_id), expect)
    }
}
