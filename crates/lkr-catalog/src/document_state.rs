//! The state of a document, read consistently so that a step can depend on it.

use lkr_domain::{Clock, Creator, DocId, Document, TaskId};
use lkr_state::{Expect, Record, ScanOrder, StateStoreExt, Write, retry_on_conflict};
use serde::{Deserialize, Serialize};

use crate::{
    ActiveTask, Catalog, ConcurrentEdit, DocumentChange, Error, ErrorKind, LimitExceeded, Result, Stored,
    Task, TaskStatus, TaskSubject, catalog::read_document, key, task_record::read_task,
};

/// The revisions among which that of a copy is chosen: a second in microseconds.
const COPY_SPAN: u64 = 1 << 20;

/// The fewest of them.
const MIN_COPY_SPAN: u64 = 1 << 10;

/// An unfinished task with its record.
#[derive(Debug, Clone, PartialEq)]
pub struct UnfinishedTask {
    /// The fencing token of its writes.
    pub active: ActiveTask,
    /// Its record.
    pub task: Task,
    /// The changes to the live document since the task was accepted.
    pub concurrent_edit: ConcurrentEdit,
}

/// What a failed task keeps for its retry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedAttempt {
    /// The revision that the task would have made.
    pub revision: u64,
    /// The task.
    pub task_id: TaskId,
    /// The path of its original, if it has one.
    pub original: Option<String>,
    /// The changes to the live document since the task was accepted.
    pub concurrent_edit: ConcurrentEdit,
    pub(crate) version: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FailedAttemptV1 {
    pub(crate) task_id: TaskId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) original: Option<String>,
}

pub(crate) fn read_failed_attempt(record: &[u8]) -> Result<FailedAttemptV1> {
    serde_json::from_slice(record).map_err(|e| Error::corrupt("read failed attempt", e))
}

/// Everything that the store holds of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct DocumentState {
    /// The document.
    pub doc_id: DocId,
    /// Its record, if it is live.
    pub document: Option<Stored<Document>>,
    /// The task that makes or replaces it.
    pub unfinished: Option<UnfinishedTask>,
    /// What failed tasks keep for their retries, the oldest first.
    pub failed_attempts: Vec<FailedAttempt>,
}

/// The id of no task: those of tasks begin with their time of creation.
const NO_TASK: TaskId = TaskId::from_bytes([0; 16]);

/// The most failed attempts that are kept of one document. Beyond that, the oldest is discarded. Chosen, not measured.
pub(crate) const MAX_FAILED_ATTEMPTS: usize = 16;

impl Catalog {
    /// The state of a document. Documents move from unfinished to live, so reading in this order misses no state. The
    /// step that depends on it must expect that nothing changed in between.
    ///
    /// # Errors
    /// `Contention` if the state changed during every attempt to read it.
    pub async fn document_state(&self, doc_id: DocId) -> Result<DocumentState> {
        retry_on_conflict(&*self.state, "read document", || self.try_document_state(doc_id)).await
    }

    /// Reads a document's state once. A change between its records is a conflict.
    async fn try_document_state(&self, doc_id: DocId) -> Result<DocumentState> {
        let subject = TaskSubject::Document(doc_id);
        let active = self.active(subject).await?;
        let unfinished = self.unfinished_of(active).await?;
        let failed_attempts = self.failed_attempts(doc_id).await?;
        let record = self.state.get(&key::document(doc_id)).await?;
        let document = record.map(|record| read_document(doc_id, &record)).transpose()?;
        let now = self.active(subject).await?;
        let state = DocumentState { doc_id, document, unfinished, failed_attempts };
        // A retry moves from failed to unfinished, against the order of these reads.
        if state.is_torn() || now != active {
            return Err(Error::new(
                ErrorKind::Conflict,
                "read document",
                "the record changed during the read",
            ));
        }
        Ok(state)
    }

    /// The unfinished task of a subject.
    ///
    /// # Errors
    /// `Contention` if the task changed during every attempt to read it.
    pub async fn unfinished_task(&self, subject: TaskSubject) -> Result<Option<UnfinishedTask>> {
        retry_on_conflict(&*self.state, "read unfinished task", || async {
            let active = self.active(subject).await?;
            let unfinished = self.unfinished_of(active).await?;
            if self.active(subject).await? != active {
                return Err(Error::new(
                    ErrorKind::Conflict,
                    "read unfinished task",
                    "the record changed during the read",
                ));
            }
            Ok(unfinished)
        })
        .await
    }

    /// The task of an active record. It is a conflict if the task ended since. A task about all documents is not the
    /// task of a document, even if a client guesses the id of its slot.
    async fn unfinished_of(&self, active: Option<ActiveTask>) -> Result<Option<UnfinishedTask>> {
        let Some(active) = active else { return Ok(None) };
        let Some(record) = self.state.get(&key::task(active.task_id)).await? else {
            return Err(Error::new(
                ErrorKind::Conflict,
                "read unfinished task",
                "the task ended during the read",
            ));
        };
        let task = read_task(&record)?;
        if task.subject.doc_id() != active.subject.doc_id() {
            return Ok(None);
        }
        let concurrent_edit = self.concurrent_edit(active.subject.record_id(), task.input.revision).await?;
        Ok(Some(UnfinishedTask { active, task, concurrent_edit }))
    }

    /// The failed attempts of a document, the oldest first.
    async fn failed_attempts(&self, doc_id: DocId) -> Result<Vec<FailedAttempt>> {
        let prefix = key::failed_attempts_of(doc_id);
        let records = self.state.scan(&prefix, None, ScanOrder::Ascending, 2 * MAX_FAILED_ATTEMPTS).await?;
        let mut failed_attempts = Vec::with_capacity(records.len());
        for (key, record) in &records {
            let revision = key.strip_prefix(&prefix).unwrap_or_default();
            let revision = revision.parse().map_err(|e| Error::corrupt("read failed attempt", e))?;
            let FailedAttemptV1 { task_id, original } = read_failed_attempt(&record.value)?;
            let concurrent_edit = self.concurrent_edit(doc_id, revision).await?;
            failed_attempts.push(FailedAttempt {
                revision,
                task_id,
                original,
                concurrent_edit,
                version: record.version,
            });
        }
        failed_attempts.sort_by_key(|attempt| attempt.revision);
        Ok(failed_attempts)
    }

    /// The unfinished task of a document; else the latest failed one that can be retried. It takes the same reads whether
    /// or not there is one, so that their time does not reveal a task to a caller that may not see it.
    pub async fn latest_task_of(&self, doc_id: DocId) -> Result<Option<Task>> {
        let active = self.active(doc_id.into()).await?.map(|active| active.task_id);
        let prefix = key::failed_attempts_of(doc_id);
        let attempts = self.state.scan(&prefix, None, ScanOrder::Ascending, 2 * MAX_FAILED_ATTEMPTS).await?;
        let revision = |(key, _): &&(String, Record)| {
            key.strip_prefix(&prefix).and_then(|text| text.parse::<u64>().ok())
        };
        let latest = attempts.iter().max_by_key(revision);
        let failed = latest.map(|(_, record)| read_failed_attempt(&record.value)).transpose()?;
        let task_id = active.or(failed.map(|failed| failed.task_id)).unwrap_or(NO_TASK);
        // A task that is done ended since, and its document is live.
        Ok(self.task(task_id).await?.filter(|task| task.status != TaskStatus::Done))
    }

    /// Whether a live document, an unfinished task, a failed attempt or a copy in progress refers to this revision.
    pub async fn is_referenced(&self, doc_id: DocId, revision: u64) -> Result<bool> {
        // Nearly always the revision is the live one, which costs one read.
        let live = self.document(doc_id).await?;
        if live.is_some_and(|live| live.value.revision == revision) {
            return Ok(true);
        }
        // A copy's note is read before the record, which the step that ends the note changes.
        let is_copy = self.is_copy(doc_id, revision).await?;
        let state = self.document_state(doc_id).await?;
        Ok(is_copy || state.revisions().any(|referenced| referenced == revision))
    }
}

impl DocumentState {
    /// Whether the document is neither live nor being ingested.
    #[must_use]
    pub const fn is_unknown(&self) -> bool {
        self.document.is_none() && self.unfinished.is_none()
    }

    /// The account that created the document, live or being ingested.
    #[must_use]
    pub fn owner(&self) -> Option<&Creator> {
        let live = self.document.as_ref().map(|document| &document.value.created_by);
        live.or_else(|| self.unfinished.as_ref().map(|unfinished| &unfinished.task.created_by))
    }

    /// The unfinished replacement.
    #[must_use]
    pub fn replacement(&self) -> Option<&UnfinishedTask> {
        self.document.as_ref().and(self.unfinished.as_ref())
    }

    /// The paths of the originals that become garbage when `revision` is published.
    #[must_use]
    pub fn originals_before(&self, revision: u64) -> Vec<String> {
        let live = self.document.as_ref().and_then(|document| document.value.original.as_ref());
        let attempts = self.failed_attempts.iter().filter(|attempt| attempt.revision < revision);
        let attempts = attempts.filter_map(|attempt| attempt.original.clone());
        live.map(|original| original.path.clone()).into_iter().chain(attempts).collect()
    }

    /// Failed replacements that can be retried.
    fn failed_replacements(&self) -> impl Iterator<Item = &FailedAttempt> {
        let live = self.document.as_ref().map(|document| document.value.revision);
        self.failed_attempts.iter().filter(move |attempt| live.is_some_and(|live| attempt.revision > live))
    }

    /// Whether a replacement that was accepted already may still be published.
    #[must_use]
    pub fn may_be_replaced(&self) -> bool {
        self.replacement().is_some() || self.failed_replacements().next().is_some()
    }

    /// Checks that the unfinished replacement stays within the limits with this change.
    ///
    /// # Errors
    /// The limit that it would exceed.
    pub fn check_concurrent_edit(&self, change: &DocumentChange) -> std::result::Result<(), LimitExceeded> {
        let Some(UnfinishedTask { task, concurrent_edit, .. }) = self.replacement() else { return Ok(()) };
        concurrent_edit.change.then(change).check(&task.input)
    }

    /// The writes that add a change to the concurrent edits of all replacements that were accepted before it.
    pub(crate) fn add_concurrent_edit(&self, change: &DocumentChange) -> Result<Vec<Write>> {
        let doc_id = self.doc_id;
        let mut writes = Vec::new();
        if let Some(UnfinishedTask { active, task, concurrent_edit }) = self.replacement() {
            writes.push(active.check());
            writes.push(concurrent_edit.add(doc_id, task.input.revision, change)?);
        }
        for attempt in self.failed_replacements() {
            writes.push(Write::check(
                key::failed_attempt(doc_id, attempt.revision),
                Expect::Version(attempt.version),
            ));
            writes.push(attempt.concurrent_edit.add(doc_id, attempt.revision, change)?);
        }
        Ok(writes)
    }

    /// The document to publish from what a task made. It keeps the creator and the time of creation, keeps a category
    /// that a person chose, and applies the changes made since the task was accepted.
    #[must_use]
    pub fn document_to_publish(&self, ingested: &Document) -> Document {
        let mut document = ingested.clone();
        if let Some(Stored { value: before, .. }) = &self.document {
            document.created_at = before.created_at;
            document.created_by = before.created_by.clone();
            if before.category_by_hand {
                document.category.clone_from(&before.category);
                document.category_by_hand = true;
            }
        }
        let change = self.unfinished.as_ref().map(|unfinished| &unfinished.concurrent_edit.change);
        // A change that exceeds a limit was refused when it was requested.
        let mut document = change.and_then(|change| change.apply(&document).ok()).unwrap_or(document);
        if let Some(Stored { value: before, .. }) = &self.document {
            document.space = before.space.clone();
        }
        document
    }

    /// Whether a revision occurs twice, because it changed its role between two reads.
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
        live.into_iter().chain(unfinished).chain(self.failed_attempts.iter().map(|attempt| attempt.revision))
    }

    /// A revision that is greater than all others of the document, including deleted ones: a worker that was cut off
    /// must not write to another task's revision.
    #[must_use]
    pub fn next_revision(&self, now: time::OffsetDateTime) -> u64 {
        let clock = u64::try_from(now.unix_timestamp_nanos() / 1_000).unwrap_or_default();
        self.revisions().max().map_or(clock, |latest| clock.max(latest + 1))
    }

    /// A revision for a copy of the live document's points. It is below those of replacements that were accepted already, so
    /// that these still replace the copy. It is chosen by lot: that of a copy that was given up becomes garbage, and must
    /// not be used again.
    ///
    /// # Errors
    /// `Conflict` if an unfinished or failed replacement leaves no room for it. Revisions are microseconds, so that happens
    /// only if the replacement was accepted within a millisecond of what it replaces.
    pub fn copy_revision(&self, clock: &dyn Clock) -> Result<u64> {
        let live = self.document.as_ref().map_or(0, |document| document.value.revision);
        let (first, span) = match self.revisions().filter(|revision| *revision > live).min() {
            Some(next) => (live + 1, (next - live - 1).min(COPY_SPAN)),
            None => (self.next_revision(clock.now()), COPY_SPAN),
        };
        if span < MIN_COPY_SPAN {
            let reason = "a replacement was accepted right after the document; try again when it has ended";
            return Err(Error::new(ErrorKind::Conflict, "choose revision", reason));
        }
        // The lower half of such an id is random but for two bits.
        let (_, lot) = clock.new_uuid().as_u64_pair();
        Ok(first + lot % span)
    }

    /// The write that expects the live document's record to be unchanged.
    pub(crate) fn check_document(&self) -> Write {
        let expect =
            self.document.as_ref().map_or(Expect::Absent, |document| Expect::Version(document.version));
        Write::check(key::document(self.doc_id), expect)
    }
}
