//! The task that deletes a space with all its documents.

use lkr_catalog::{ActiveTask, Progress, Stage, Task, TaskResult};
use lkr_domain::{Document, SpaceName};

use crate::{
    Error, ErrorKind, Result, lifecycle, report::Report, state::IngestState, task_deletion::TaskDeletion,
};

/// The number of documents that are listed at a time.
const PAGE: usize = 100;

/// Deletes the documents of the task's space, cancels its unfinished tasks, discards what its failed ones keep, and ends the space
/// with the task. Nothing is accepted in the space meanwhile. A repeated attempt continues with what is left, and its result counts
/// all attempts.
pub(crate) async fn delete_space(
    state: &IngestState,
    active: ActiveTask,
    task: &Task,
    report: &Report,
) -> Result<()> {
    let space = task.space.as_ref();
    let space =
        space.ok_or_else(|| Error::new(ErrorKind::Internal, "delete space", "the task names no space"))?;
    let catalog = &state.ports.catalog;
    let mut result = catalog.partial_result(task.task_id).await?.result;
    let mut total = result.documents + catalog.count_in_space(space).await?;
    let selects = |document: &Document| document.space == *space;
    let deletion = TaskDeletion { state, active, task, selects: &selects, rights_of: None };
    report.progress(Stage::Delete, Progress { done: result.documents, total });
    let mut kept = Vec::new();
    // A task that ended while it was to be cancelled may have added a document.
    let mut is_settled = false;
    cancel_tasks(state, space, task).await?;
    loop {
        let documents = catalog.documents_in_space(space, PAGE).await?;
        if documents.is_empty() {
            if is_settled {
                break;
            }
            is_settled = true;
            cancel_tasks(state, space, task).await?;
            continue;
        }
        let before = result.documents;
        for doc_id in &documents {
            // A document that is not in the space was moved out before the space was closed.
            if let Some(so_far) = deletion.delete(*doc_id).await? {
                result = so_far;
                total = total.max(result.documents);
                report.progress(Stage::Delete, Progress { done: result.documents, total });
            }
        }
        // Those that were moved out while they were listed are not listed again.
        if result.documents == before && documents == kept {
            let reason = "the index of the space names documents that are not in it";
            return Err(Error::new(ErrorKind::Internal, "delete space", reason));
        }
        kept = documents;
    }
    lifecycle::discard_failed(state, space).await?;
    let done = task.done(catalog.now(), Stage::Delete, result.documents, TaskResult::Deleted(result));
    if let Some(spaces) = &state.ports.spaces
        && spaces.remove_space(task, space, catalog.end_writes(active, &done)?).await?
    {
        return Ok(());
    }
    Ok(catalog.end(active, &done).await?)
}

/// Cancels the unfinished tasks of a space, except this one.
async fn cancel_tasks(state: &IngestState, space: &SpaceName, this: &Task) -> Result<()> {
    let catalog = &state.ports.catalog;
    let mut after: Option<String> = None;
    loop {
        let (tasks, next) = catalog.unfinished(after.as_deref(), PAGE).await?;
        for task_id in tasks {
            let task = catalog.task(task_id).await?;
            let is_of_space = |task: &Task| task.space.as_ref() == Some(space) && task_id != this.task_id;
            let Some(task) = task.filter(is_of_space) else { continue };
            if !is_of_moved_document(state, space, &task).await? {
                match lifecycle::cancel(state, task_id).await {
                    // It ended meanwhile.
                    Err(error) if error.kind() == ErrorKind::Refused => {}
                    cancelled => cancelled.map(drop)?,
                }
            }
        }
        match next {
            Some(next) => after = Some(next),
            None => return Ok(()),
        }
    }
}

/// Whether a task replaces a document that was moved out of the space since the task was accepted. It goes along.
async fn is_of_moved_document(state: &IngestState, space: &SpaceName, task: &Task) -> Result<bool> {
    let Some(doc_id) = task.subject.doc_id() else { return Ok(false) };
    let document = state.ports.catalog.document(doc_id).await?;
    Ok(document.is_some_and(|document| document.value.space != *space))
}
