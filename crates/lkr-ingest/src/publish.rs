//! Publishing what a document task made.

use std::sync::{Mutex, PoisonError};

use lkr_catalog::{Task, TaskResult, tags_of};
use lkr_state::Write;
use lkr_vectors::{Condition, Filter, Tags};

use crate::{
    Error, ErrorKind, Result, collections::set_tags_everywhere, document_draft::DocumentDraft,
    point_writer::PointWriter, state::IngestState,
};

/// What to publish.
pub(crate) struct Publication<'a> {
    pub(crate) draft: &'a DocumentDraft,
    /// The task in its final state.
    pub(crate) task: &'a Task,
    pub(crate) has_dense: bool,
    /// What wrote the points.
    pub(crate) writer: &'a PointWriter,
    /// The tags that the points have.
    pub(crate) tags: Mutex<Tags>,
}

impl Publication<'_> {
    /// Makes the document live in place of its previous revision, and ends the task. Manual changes that were made since the
    /// task was accepted are applied; if they change tags, the points get them first.
    ///
    /// # Errors
    /// `Conflict` if the document changed meanwhile, or `unique` does not hold: a duplicate of the text may have been
    /// published. `Superseded` if the task was cancelled.
    pub(crate) async fn publish(&self, state: &IngestState, unique: Vec<Write>) -> Result<()> {
        let tags = &self.tags;
        let catalog = &state.ports.catalog;
        let (draft, doc_id) = (&self.draft.document, self.task.doc_id()?);
        let present = catalog.document_state(doc_id).await?;
        let is_current =
            present.unfinished.as_ref().is_some_and(|current| current.task.task_id == self.task.task_id);
        if !is_current {
            return Err(Error::new(ErrorKind::Superseded, "publish document", "the task was cancelled"));
        }
        let document = present.document_to_publish(draft);
        let settled_tags = tags_of(&document);
        if settled_tags != *tags.lock().unwrap_or_else(PoisonError::into_inner) {
            let filter = Filter::only(Condition::Revision(document.doc_id, document.revision));
            set_tags_everywhere(&*state.ports.vectors, &filter, &settled_tags).await?;
            *tags.lock().unwrap_or_else(PoisonError::into_inner) = settled_tags;
        }
        // Of a document that was moved meanwhile, the task's readers may not see what its new space calls it.
        let is_moved = self.task.space.as_ref().is_some_and(|space| *space != document.space);
        let named = if is_moved { draft } else { &document };
        let task = with_properties(self.task, &named.title, &named.category);
        let conditions = [unique, self.writer.publishing(catalog).await?].concat();
        catalog.publish(&present, &document, &task, self.has_dense, conditions).await?;
        state.duplicates.published(&document);
        state.gc.remove_originals(doc_id, &present.originals_before(document.revision)).await;
        // A new document leaves no garbage.
        if present.document.is_some() || !present.failed_attempts.is_empty() {
            state.gc.wake();
        }
        Ok(())
    }
}

/// The task with the published title and category in its result.
fn with_properties(task: &Task, title: &str, category: &str) -> Task {
    let mut task = task.clone();
    if let Some(TaskResult::Document(result)) = &mut task.result {
        title.clone_into(&mut result.title);
        category.clone_into(&mut result.category);
    }
    task
}
