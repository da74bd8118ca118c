//! The steps that record progress of a task and end it. Each is one atomic write.

use lkr_domain::{DocId, Document};
use lkr_state::{Expect, Write};
use time::OffsetDateTime;

use crate::{
    ActiveTask, Catalog, DocumentState, Error, Progress, Result, Stage, Stored, Task, TaskResult, TaskStatus,
    TaskSubject, UnfinishedTask, document,
    document_state::{FailedAttemptV1, MAX_FAILED_ATTEMPTS},
    fingerprint_changes,
    garbage::{Garbage, discard_failed_attempt},
    key,
    partial_result::discard_working_records,
    space_index, task_changes,
    task_index::TaskGroup,
    text_index::{change_guard, encode_simhash},
};

impl Catalog {
    /// Writes the record of an unfinished task.
    ///
    /// # Errors
    /// `Conflict` if the task is no longer its document's unfinished task.
    pub async fn record_progress(&self, active: ActiveTask, task: &Task) -> Result<()> {
        let [put, mark] = task_changes::put(task, Expect::Any)?;
        Ok(self.state.apply(vec![active.check(), put, mark]).await?)
    }

    /// Makes a document visible and its task done in one step, and turns what it replaces into garbage. `document` must
    /// already contain the concurrent edits (see [`DocumentState::document_to_publish`]). If its points have no dense
    /// vectors, the document is recorded for [`unembedded`](Self::unembedded). `alongside` is written in the same step.
    ///
    /// # Errors
    /// `Conflict` if the task is no longer its document's unfinished task, or if the document's state changed since it
    /// was read.
    pub async fn publish(
        &self,
        state: &DocumentState,
        document: &Document,
        task: &Task,
        has_dense: bool,
        alongside: Vec<Write>,
    ) -> Result<()> {
        let doc_id = document.doc_id;
        let unfinished = state.unfinished.as_ref().filter(|now| now.task.task_id == task.task_id);
        let Some(unfinished) = unfinished else {
            return Err(Error::new(crate::ErrorKind::Conflict, "publish", "another task took its place"));
        };
        let before = state.document.as_ref();
        let expect = before.map_or(Expect::Absent, |before| Expect::Version(before.version));
        let mut writes = alongside;
        writes.extend([
            unfinished.active.end(),
            unfinished.concurrent_edit.end(unfinished.active, document.revision),
            Write::put(key::document(doc_id), expect, document::encode(document)?),
        ]);
        writes.extend(task_changes::put_status(task, Expect::Any, TaskGroup::Unfinished)?);
        writes.extend(Self::invalidate_answers_of(&document.space));
        writes.extend(before.map(|before| Garbage::of_document(&before.value).put()));
        // Failed tasks that were accepted later can still be retried.
        let earlier = state.failed_attempts.iter().filter(|attempt| attempt.revision < document.revision);
        writes.extend(earlier.flat_map(|attempt| discard_failed_attempt(doc_id, attempt)));
        // A guard with an expectation takes the place of the one without.
        let mut entries = reindex(before.map(|before| &before.value), document);
        entries.retain(|entry| writes.iter().all(|write| write.key != entry.key));
        writes.extend(entries);
        if !has_dense {
            writes.push(Write::put(key::unembedded(doc_id), Expect::Any, Vec::new()));
        }
        writes.extend(self.task_ended_events(task));
        Ok(self.state.apply(writes).await?)
    }

    /// Ends a task whose document is a duplicate of `earlier` as done. What the task stored becomes garbage.
    ///
    /// # Errors
    /// `Conflict` if the task is no longer its document's unfinished task, or if the earlier document changed.
    pub async fn end_duplicate(
        &self,
        active: ActiveTask,
        task: &Task,
        earlier: &Stored<Document>,
    ) -> Result<()> {
        let garbage = active.subject.doc_id().map(|doc_id| Garbage::of_input(doc_id, &task.input).put());
        let record = task_changes::put_status(task, Expect::Any, TaskGroup::Unfinished)?;
        let unchanged = Write::check(key::document(earlier.value.doc_id), Expect::Version(earlier.version));
        let writes = [active.end(), unchanged]
            .into_iter()
            .chain(record)
            .chain(garbage)
            .chain(self.task_ended_events(task));
        Ok(self.state.apply(writes.collect()).await?)
    }

    /// Ends a task about all documents as done.
    ///
    /// # Errors
    /// `Conflict` if the task ended meanwhile.
    pub async fn end(&self, active: ActiveTask, task: &Task) -> Result<()> {
        Ok(self.state.apply(self.end_writes(active, task)?).await?)
    }

    /// The writes of [`end`](Self::end), for a step that also changes other records.
    pub fn end_writes(&self, active: ActiveTask, task: &Task) -> Result<Vec<Write>> {
        let record = task_changes::put_status(task, Expect::Any, TaskGroup::Unfinished)?;
        let discarded = discard_working_records(task.task_id);
        Ok(std::iter::once(active.end())
            .chain(record)
            .chain(discarded)
            .chain(self.task_ended_events(task))
            .collect())
    }

    /// Ends a task as failed. What it stored is kept for a retry. Of one document, the 16 latest failed attempts are kept.
    ///
    /// # Errors
    /// `Conflict` if the task is no longer its document's unfinished task.
    pub async fn fail(&self, active: ActiveTask, task: &Task) -> Result<()> {
        let mut writes = vec![active.end()];
        writes.extend(task_changes::put_status(task, Expect::Any, TaskGroup::Unfinished)?);
        if let TaskSubject::Document(doc_id) = active.subject {
            writes.push(put_failed_attempt(doc_id, task)?);
            let attempts = self.document_state(doc_id).await?.failed_attempts;
            let surplus = (attempts.len() + 1).saturating_sub(MAX_FAILED_ATTEMPTS);
            writes.extend(
                attempts.iter().take(surplus).flat_map(|attempt| discard_failed_attempt(doc_id, attempt)),
            );
        }
        writes.extend(self.task_ended_events(task));
        Ok(self.state.apply(writes).await?)
    }

    /// Ends an unfinished task as cancelled. What the task stored becomes garbage. `alongside` is written in the same
    /// step.
    ///
    /// # Errors
    /// `Conflict` if the task ended meanwhile.
    pub async fn cancel(&self, unfinished: &UnfinishedTask, alongside: Vec<Write>) -> Result<Task> {
        let (task, mut writes) = self.cancel_writes(unfinished)?;
        writes.push(unfinished.active.end());
        writes.extend(alongside);
        self.state.apply(writes).await?;
        Ok(task)
    }

    /// The cancelled form of an unfinished task, and the writes that cancel it. They do not include the removal of its
    /// active record, because a task that takes its place overwrites that record.
    pub(crate) fn cancel_writes(&self, unfinished: &UnfinishedTask) -> Result<(Task, Vec<Write>)> {
        let task = unfinished.task.clone().cancelled(self.now());
        let mut writes = vec![unfinished.concurrent_edit.end(unfinished.active, task.input.revision)];
        writes.extend(task_changes::put_status(&task, Expect::Any, TaskGroup::Unfinished)?);
        writes.extend(discard_working_records(task.task_id));
        writes.extend(Garbage::of_task(&task).map(|garbage| garbage.put()));
        writes.extend(self.task_ended_events(&task));
        Ok((task, writes))
    }
}

impl Task {
    /// The task as it ends at `now`, with all `total` units of its last stage done. The attempt is counted.
    #[must_use]
    pub fn done(&self, now: OffsetDateTime, stage: Stage, total: u64, result: TaskResult) -> Self {
        Self {
            status: TaskStatus::Done,
            stage,
            progress: Progress { done: total, total },
            attempts: self.attempts + 1,
            updated_at: now,
            result: Some(result),
            error: None,
            ..self.clone()
        }
    }
}

/// The write that records a failed attempt.
fn put_failed_attempt(doc_id: DocId, task: &Task) -> Result<Write> {
    let original = task.input.original.as_ref().map(|original| original.path.clone());
    let attempt = FailedAttemptV1 { task_id: task.task_id, original };
    let attempt = serde_json::to_vec(&attempt);
    let attempt = attempt.map_err(|e| Error::corrupt("write failed attempt", e))?;
    Ok(Write::put(key::failed_attempt(doc_id, task.input.revision), Expect::Any, attempt))
}

/// The writes that replace the entries of a document in the indexes of spaces and texts.
pub(crate) fn reindex(before: Option<&Document>, after: &Document) -> Vec<Write> {
    let mut entries = vec![space_index::put(after)];
    if let Some(fingerprint) = &after.fingerprint {
        let content = key::content(&after.space, &fingerprint.sha256, after.doc_id);
        let simhash = encode_simhash(&after.space, fingerprint.simhash);
        entries.push(Write::put(content, Expect::Any, Vec::new()));
        entries.push(Write::put(key::simhash(after.doc_id), Expect::Any, simhash));
        entries.push(fingerprint_changes::put(after.doc_id));
        let is_new = |before: &Document| {
            before.space != after.space || before.fingerprint.as_ref() != Some(fingerprint)
        };
        entries.extend(before.is_none_or(is_new).then(|| change_guard(&after.space)));
    }
    let mut writes: Vec<Write> = before.map(unindex).unwrap_or_default();
    // A step may contain a key once only.
    writes.retain(|removal| entries.iter().all(|entry| entry.key != removal.key));
    writes.extend(entries);
    writes
}

/// The writes that remove a document from the indexes of spaces and texts.
pub(crate) fn unindex(document: &Document) -> Vec<Write> {
    let mut writes = vec![space_index::delete(document)];
    if let Some(fingerprint) = &document.fingerprint {
        let content = key::content(&document.space, &fingerprint.sha256, document.doc_id);
        let keys = [content, key::simhash(document.doc_id)];
        writes.extend(keys.map(|key| Write::delete(key, Expect::Any)));
        writes.push(fingerprint_changes::put(document.doc_id));
    }
    writes
}
