//! The steps by which a task goes on and ends. Each is one step of the state store.

use lkr_domain::{DocId, Document};
use lkr_state::{Expect, Write};
use time::OffsetDateTime;

use crate::{
    ActiveTask, Catalog, DocumentState, Error, Progress, Result, Stage, Stored, Task, TaskResult, TaskStatus,
    TaskSubject, UnfinishedTask,
    catalog::key,
    document,
    document_state::{FailedAttemptV1, MAX_HELD},
    garbage::{Garbage, let_go},
    task_record::write_task,
};

impl Catalog {
    /// Writes how an unfinished task stands.
    ///
    /// # Errors
    /// `Conflict` where the task is no longer its document's unfinished one.
    pub async fn record_progress(&self, active: ActiveTask, task: &Task) -> Result<()> {
        let put = Write::put(key::task(task.task_id), Expect::Any, write_task(task)?);
        Ok(self.state.apply(vec![active.check(), put]).await?)
    }

    /// Makes a document visible and its task done, in one step, in place of what was there of it. `document` is what
    /// the task made of it, with the [amendments](Present::settle) that were asked for meanwhile. Where its points have
    /// no dense vectors, it is noted for [`unembedded`](Self::unembedded). `alongside` is written in the same step.
    ///
    /// # Errors
    /// `Conflict` where the task is no longer its document's unfinished one, or what there is of the document changed
    /// since it was read.
    pub async fn publish(
        &self,
        present: &DocumentState,
        document: &Document,
        task: &Task,
        has_dense: bool,
        alongside: Vec<Write>,
    ) -> Result<()> {
        let doc_id = document.doc_id;
        let unfinished = present.unfinished.as_ref().filter(|now| now.task.task_id == task.task_id);
        let Some(unfinished) = unfinished else {
            return Err(Error::new(crate::ErrorKind::Conflict, "publish", "the task was overtaken"));
        };
        let before = present.document.as_ref();
        let expect = before.map_or(Expect::Absent, |before| Expect::Version(before.version));
        let mut writes = alongside;
        writes.extend([
            unfinished.active.end(),
            unfinished.amendment.end(unfinished.active, document.revision),
            Write::put(key::document(doc_id), expect, document::encode(document)?),
            Write::put(key::task(task.task_id), Expect::Any, write_task(task)?),
            Write::increment(key::GENERATION),
        ]);
        writes.extend(before.map(|before| Garbage::of_document(&before.value).put()));
        // What was accepted later may still be tried again.
        let earlier = present.held.iter().filter(|held| held.revision < document.revision);
        writes.extend(earlier.flat_map(|held| let_go(doc_id, held)));
        writes.extend(index_anew(before.map(|before| &before.value), document));
        if !has_dense {
            writes.push(Write::put(key::unembedded(doc_id), Expect::Any, Vec::new()));
        }
        writes.extend(self.told_task(task));
        Ok(self.state.apply(writes).await?)
    }

    /// Ends a task whose document is a duplicate of `earlier` as done. What it stored becomes trash.
    ///
    /// # Errors
    /// `Conflict` where the task is no longer its document's unfinished one, or the earlier document has changed.
    pub async fn end_duplicate(
        &self,
        active: ActiveTask,
        task: &Task,
        earlier: &Stored<Document>,
    ) -> Result<()> {
        let garbage = active.subject.doc_id().map(|doc_id| Garbage::of_input(doc_id, &task.input).put());
        let put = Write::put(key::task(task.task_id), Expect::Any, write_task(task)?);
        let there = Write::check(key::document(earlier.value.doc_id), Expect::Version(earlier.version));
        let writes = [active.end(), put, there].into_iter().chain(garbage).chain(self.told_task(task));
        Ok(self.state.apply(writes.collect()).await?)
    }

    /// Ends a task that is about no document as done.
    ///
    /// # Errors
    /// `Conflict` where it ended meanwhile.
    pub async fn end(&self, active: ActiveTask, task: &Task) -> Result<()> {
        let put = Write::put(key::task(task.task_id), Expect::Any, write_task(task)?);
        let gold = Write::delete(key::gold(task.task_id), Expect::Any);
        let writes = [active.end(), put, gold].into_iter().chain(self.told_task(task));
        Ok(self.state.apply(writes.collect()).await?)
    }

    /// Ends a task as failed. What it stored so far is kept for its next try, with that of a few others before it.
    ///
    /// # Errors
    /// `Conflict` where the task is no longer its document's unfinished one.
    pub async fn fail(&self, active: ActiveTask, task: &Task) -> Result<()> {
        let put = Write::put(key::task(task.task_id), Expect::Any, write_task(task)?);
        let mut writes = vec![active.end(), put];
        if let TaskSubject::Document(doc_id) = active.subject {
            writes.push(hold(doc_id, task)?);
            let held = self.document_state(doc_id).await?.held;
            let surplus = (held.len() + 1).saturating_sub(MAX_HELD);
            writes.extend(held.iter().take(surplus).flat_map(|held| let_go(doc_id, held)));
        }
        writes.extend(self.told_task(task));
        Ok(self.state.apply(writes).await?)
    }

    /// Ends an unfinished task as cancelled. What it stored so far becomes trash. `alongside` is written in the same
    /// step.
    ///
    /// # Errors
    /// `Conflict` where the task ended meanwhile.
    pub async fn cancel(&self, unfinished: &UnfinishedTask, alongside: Vec<Write>) -> Result<Task> {
        let (task, mut writes) = self.cancelling(unfinished)?;
        writes.push(unfinished.active.end());
        writes.extend(alongside);
        self.state.apply(writes).await?;
        Ok(task)
    }

    /// An unfinished task as it ends when it is not wanted any more, and the writes that end it, but for that it is its
    /// document's unfinished one no longer.
    pub(crate) fn cancelling(&self, unfinished: &UnfinishedTask) -> Result<(Task, Vec<Write>)> {
        let task = unfinished.task.clone().cancelled();
        let mut writes = vec![
            unfinished.amendment.end(unfinished.active, task.input.revision),
            Write::put(key::task(task.task_id), Expect::Any, write_task(&task)?),
            Write::delete(key::gold(task.task_id), Expect::Any),
        ];
        writes.extend(Garbage::of_task(&task).map(|garbage| garbage.put()));
        writes.extend(self.told_task(&task));
        Ok((task, writes))
    }
}

impl Task {
    /// The task as it ends now: all `total` units of its last stage are done. The attempt counts.
    #[must_use]
    pub fn done(&self, stage: Stage, total: u64, result: TaskResult) -> Self {
        Self {
            status: TaskStatus::Done,
            stage,
            progress: Progress { done: total, total },
            attempts: self.attempts + 1,
            updated_at: OffsetDateTime::now_utc(),
            result: Some(result),
            error: None,
            ..self.clone()
        }
    }
}

/// The write that keeps what a failed task stored.
fn hold(doc_id: DocId, task: &Task) -> Result<Write> {
    let original = task.input.original.as_ref().map(|original| original.path.clone());
    let held = FailedAttemptV1 { task_id: task.task_id, original };
    let held = serde_json::to_vec(&held);
    let held = held.map_err(|e| Error::corrupt("write held input", e))?;
    Ok(Write::put(key::held(doc_id, task.input.revision), Expect::Any, held))
}

/// The writes that take what a document was found by out of the indexes of texts, and put what it is found by in.
pub(crate) fn index_anew(before: Option<&Document>, after: &Document) -> Vec<Write> {
    let mut writes: Vec<Write> = before.map(unindex).unwrap_or_default();
    if let Some(fingerprint) = &after.fingerprint {
        let content = key::content(&fingerprint.sha256, after.doc_id);
        let simhash = key::simhash(after.doc_id);
        // A key stands in a step once.
        writes.retain(|write| write.key != content && write.key != simhash);
        writes.push(Write::put(content, Expect::Any, Vec::new()));
        writes.push(Write::put(simhash, Expect::Any, format!("{:016x}", fingerprint.simhash)));
    }
    writes
}

/// The writes that take a document out of the indexes of texts.
pub(crate) fn unindex(document: &Document) -> Vec<Write> {
    let Some(fingerprint) = &document.fingerprint else { return Vec::new() };
    let keys = [key::content(&fingerprint.sha256, document.doc_id), key::simhash(document.doc_id)];
    keys.map(|key| Write::delete(key, Expect::Any)).into()
}
