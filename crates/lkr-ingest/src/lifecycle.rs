//! Deleting documents; cancelling, retrying and forgetting tasks; accepting tasks over all documents.

use std::collections::BTreeSet;

use lkr_catalog::{Acceptance, Deleted, Task, TaskKind, TaskLists, TaskStatus};
use lkr_domain::{DocId, SpaceName, TaskId};
use lkr_state::Write;

use crate::{
    Error, ErrorKind, Result, model_change::decline_on_cancel, point_writer::abandon, state::IngestState,
};

/// Deletes a document and cancels its unfinished task.
pub(crate) async fn delete(state: &IngestState, doc_id: DocId, alongside: Vec<Write>) -> Result<Deleted> {
    let catalog = &state.ports.catalog;
    let attempt = || async {
        let document = catalog.document_state(doc_id).await?;
        if document.is_unknown() && document.failed_attempts.is_empty() {
            return Ok(None);
        }
        let alongside = if document.is_unknown() { Vec::new() } else { alongside.clone() };
        Ok::<_, Error>(Some(catalog.remove(&document, alongside).await?))
    };
    let deleted = catalog.retry_on_conflict("delete document", attempt).await?;
    match &deleted {
        Some(deleted) => after_delete(state, doc_id, deleted).await,
        None => state.gc.wake(),
    }
    Ok(deleted.unwrap_or_default())
}

/// Forgets a document that was deleted, and removes its files.
pub(crate) async fn after_delete(state: &IngestState, doc_id: DocId, deleted: &Deleted) {
    state.duplicates.deleted(doc_id);
    state.gc.remove_originals(doc_id, &deleted.originals).await;
    state.gc.wake();
}

/// Cancels an unfinished task; `None` for an unknown one.
pub(crate) async fn cancel(state: &IngestState, task_id: TaskId) -> Result<Option<Task>> {
    let attempt = || try_cancel(state, task_id);
    state.ports.catalog.retry_on_conflict("cancel task", attempt).await
}

async fn try_cancel(state: &IngestState, task_id: TaskId) -> Result<Option<Task>> {
    let catalog = &state.ports.catalog;
    let Some(task) = catalog.task(task_id).await? else { return Ok(None) };
    if task.kind == TaskKind::DeleteSpace {
        return Err(Error::new(
            ErrorKind::Refused,
            "cancel task",
            "the deletion of a space cannot be cancelled",
        ));
    }
    if task.status.has_ended() {
        return Err(Error::new(ErrorKind::Refused, "cancel task", "the task has ended"));
    }
    let unfinished = catalog.unfinished_task(task.subject).await?;
    let Some(unfinished) = unfinished.filter(|unfinished| unfinished.task.task_id == task_id) else {
        // It ended since it was read.
        return Err(Error::new(ErrorKind::Conflict, "cancel task", "the task changed"));
    };
    let mut alongside = decline_on_cancel(&task);
    if task.kind == TaskKind::Reembed {
        alongside.push(abandon(&catalog.collection_state().await?)?);
    }
    let cancelled = catalog.cancel(&unfinished, alongside).await?;
    state.gc.remove_original_of(&task).await;
    state.gc.wake();
    Ok(Some(cancelled))
}

/// Makes a failed task pending again; `None` for an unknown one.
pub(crate) async fn retry(state: &IngestState, task_id: TaskId) -> Result<Option<Task>> {
    let catalog = &state.ports.catalog;
    let attempt = || async {
        let admission = admission(state, task_id).await?;
        Ok::<_, Error>(catalog.retry(task_id, admission).await?)
    };
    let retried = catalog.retry_on_conflict("retry task", attempt).await;
    // A failed step may have been written nevertheless.
    let retried = retried.inspect_err(|_| state.queueing.requeue_later())?;
    state.queueing.push(retried.as_slice()).await;
    Ok(retried)
}

/// The writes that admit a failed task's new document to its space again. A replacement needs none: it is gone with the document.
///
/// # Errors
/// `Refused` if the space was deleted since, or is being deleted.
async fn admission(state: &IngestState, task_id: TaskId) -> Result<Vec<Write>> {
    let task = state.ports.catalog.task(task_id).await?;
    let task = task.filter(|task| task.kind == TaskKind::Ingest && task.status == TaskStatus::Failed);
    let (Some(spaces), Some(space)) = (&state.ports.spaces, task.and_then(|task| task.space)) else {
        return Ok(Vec::new());
    };
    let deleted = || Error::new(ErrorKind::Refused, "retry task", format!("the space {space} was deleted"));
    spaces.admit(&space).await?.ok_or_else(deleted)
}

/// Discards what the failed tasks of a deleted space keep for their retries. A document that was moved to another space before keeps
/// it.
pub(crate) async fn discard_failed(state: &IngestState, space: &SpaceName) -> Result<()> {
    const PAGE: usize = 100;
    let catalog = &state.ports.catalog;
    let lists = TaskLists::Of { spaces: BTreeSet::from([space.clone()]), asked_by: None };
    let mut after: Option<TaskId> = None;
    loop {
        let page = catalog.tasks_with_status(&lists, Some(TaskStatus::Failed), |_| true, after, PAGE).await?;
        for doc_id in page.items.iter().filter_map(|task| task.subject.doc_id()) {
            let attempt = || async {
                let document = catalog.document_state(doc_id).await?;
                if !document.is_unknown() || document.failed_attempts.is_empty() {
                    return Ok(None);
                }
                Ok::<_, Error>(Some(catalog.remove(&document, Vec::new()).await?))
            };
            if let Some(discarded) = catalog.retry_on_conflict("discard failed task", attempt).await? {
                after_delete(state, doc_id, &discarded).await;
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

/// Deletes the record of an ended task; `None` for an unknown one.
pub(crate) async fn forget(state: &IngestState, task_id: TaskId) -> Result<Option<Task>> {
    let forgotten = state.ports.catalog.forget_task(task_id).await?;
    state.gc.wake();
    Ok(forgotten)
}

/// Accepts a task over all documents, with additional records that it needs.
pub(crate) async fn accept_corpus_task(
    state: &IngestState,
    task: Task,
    alongside: Vec<Write>,
) -> Result<Task> {
    let accepted = [Acceptance { task, existing: None }];
    let written = state.ports.catalog.accept(&accepted, alongside).await;
    written.inspect_err(|_| state.queueing.requeue_later())?;
    let [Acceptance { task, .. }] = accepted;
    state.queueing.push(std::slice::from_ref(&task)).await;
    Ok(task)
}
