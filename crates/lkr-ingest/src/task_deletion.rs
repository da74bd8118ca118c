//! Deletes documents one by one for an unfinished task.

use lkr_catalog::{ActiveTask, DeleteResult, DocumentState, Task};
use lkr_domain::{DocId, Document};
use lkr_state::Write;

use crate::{Error, ErrorKind, Result, lifecycle::after_delete, state::IngestState};

/// The documents that a task deletes.
pub(crate) struct TaskDeletion<'a> {
    pub(crate) state: &'a IngestState,
    pub(crate) active: ActiveTask,
    pub(crate) task: &'a Task,
    /// Whether a document is one of them.
    pub(crate) selects: &'a (dyn Fn(&Document) -> bool + Sync),
    /// Whose rights are looked at for each document; `None` if they were when the task was accepted.
    pub(crate) rights_of: Option<TaskCreator<'a>>,
}

/// The account that asked for a task, by what it was admitted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskCreator<'a> {
    /// The id of the API key; `None` for a login.
    pub(crate) key: Option<&'a str>,
}

impl TaskDeletion<'_> {
    /// Deletes a document if it is selected and the creator of the task may do so. Both are judged by the record that the
    /// deletion expects, so a document that changes in between is judged again. Returns what the task has deleted so far;
    /// `None` if the document is not deleted.
    ///
    /// # Errors
    /// `Superseded` if the task has ended.
    pub(crate) async fn delete(&self, doc_id: DocId) -> Result<Option<DeleteResult>> {
        let attempt = || self.try_delete(doc_id);
        self.state.ports.catalog.retry_on_conflict("delete document", attempt).await
    }

    async fn try_delete(&self, doc_id: DocId) -> Result<Option<DeleteResult>> {
        let catalog = &self.state.ports.catalog;
        if catalog.active(self.active.subject).await? != Some(self.active) {
            return Err(Error::new(ErrorKind::Superseded, "delete document", "the task has ended"));
        }
        let partial = catalog.partial_result(self.task.task_id).await?;
        let found = catalog.document_state(doc_id).await?;
        let Some(alongside) = self.judge(&found).await? else { return Ok(None) };
        let deleted = catalog.remove_by_task(self.active, &partial, &found, alongside).await?;
        after_delete(self.state, doc_id, &deleted).await;
        let mut result = partial.result;
        result.documents += 1;
        result.deleted += deleted.counts;
        Ok(Some(result))
    }

    /// The additional records of the step that deletes a document; `None` if it is not deleted.
    async fn judge(&self, found: &DocumentState) -> Result<Option<Vec<Write>>> {
        let document = found.document.as_ref().map(|document| &document.value);
        let Some(document) = document.filter(|document| (self.selects)(document)) else { return Ok(None) };
        let Some(policy) = &self.state.ports.deletion else { return Ok(Some(Vec::new())) };
        if let Some(TaskCreator { key }) = self.rights_of
            && !policy.may_delete(self.task, key, document).await?
        {
            return Ok(None);
        }
        policy.on_delete(self.task, document.doc_id).map(Some)
    }
}
