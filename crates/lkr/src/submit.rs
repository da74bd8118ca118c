//! Adding and replacing documents, and their tasks.

use lkr_catalog::{Idempotency, Task};
use lkr_domain::{Creator, DocId, Document, NewDocument, TaskId};
use lkr_ingest::{NewFile, Submission};

use crate::{KnowledgeBase, Result, error::During};

impl KnowledgeBase {
    /// Accepts a document. When this returns, the document is durable and will be ingested.
    pub async fn submit(&self, document: NewDocument, submission: Submission) -> Result<Task> {
        self.shared.ingestor.submit(document, submission).await.during("submit document")
    }

    /// Accepts a file whose text was already extracted. When this returns, the text is durable and will be ingested. If
    /// the file itself cannot be stored, the task has no original.
    pub async fn submit_file(&self, file: NewFile, submission: Submission) -> Result<Task> {
        self.shared.ingestor.submit_file(file, submission).await.during("submit file")
    }

    /// Accepts several documents in one step, all of them or none, and returns their tasks in the same order. If
    /// several submissions concern one document, all but the last end as cancelled.
    pub async fn submit_all(
        &self,
        documents: Vec<(NewDocument, Submission)>,
        idempotency: Option<Idempotency>,
    ) -> Result<Vec<Task>> {
        self.shared.ingestor.submit_all(documents, idempotency).await.during("submit documents")
    }

    /// Accepts a new text and new properties for a live document. Searches see either the old or the new revision,
    /// never a mixture. An unfinished replacement of the document ends as cancelled. `None` if the document is not
    /// live.
    pub async fn replace(
        &self,
        doc_id: DocId,
        document: NewDocument,
        submission: Submission,
    ) -> Result<Option<Task>> {
        self.shared.ingestor.replace(doc_id, document, submission).await.during("replace document")
    }

    /// [`replace`](Self::replace) with a file.
    pub async fn replace_file(
        &self,
        doc_id: DocId,
        file: NewFile,
        submission: Submission,
    ) -> Result<Option<Task>> {
        self.shared.ingestor.replace_file(doc_id, file, submission).await.during("replace document")
    }

    /// The current state of the tasks that were accepted under an idempotency key; `None` if there are none.
    ///
    /// # Errors
    /// `Conflict` if some of several tasks were removed.
    pub async fn tasks_by_idempotency_key(&self, idempotency: &Idempotency) -> Result<Option<Vec<Task>>> {
        let record =
            self.shared.catalog.idempotency_record(idempotency).await.during("read idempotency key")?;
        record.tasks().during("read idempotency key")
    }

    /// Cancels an unfinished task and removes everything that it stored. `None` if there is no such task.
    ///
    /// # Errors
    /// `Conflict` if it has ended.
    pub async fn cancel(&self, task_id: TaskId) -> Result<Option<Task>> {
        self.shared.ingestor.cancel(task_id).await.during("cancel task")
    }

    /// Makes a failed task pending again. It continues with what its earlier attempts stored. `None` if there is no
    /// such task.
    ///
    /// # Errors
    /// `Conflict` if it did not fail, was cancelled or superseded, its stored data was removed, or its space was deleted.
    pub async fn retry(&self, task_id: TaskId) -> Result<Option<Task>> {
        self.shared.ingestor.retry(task_id).await.during("retry task")
    }

    /// Deletes a task that has ended, with the data it kept for a retry. `None` if there is no such task.
    ///
    /// # Errors
    /// `Conflict` if it has not ended.
    pub async fn delete_task(&self, task_id: TaskId) -> Result<Option<Task>> {
        self.shared.ingestor.forget(task_id).await.during("delete task")
    }

    /// Adds a document and waits until it is searchable. If an equal document exists, that one is returned. Dropping the
    /// future ends the wait: a document that was accepted is ingested all the same.
    ///
    /// # Errors
    /// `Conflict` if the document was deleted or replaced meanwhile, or the knowledge base was closed; in the latter case it is
    /// ingested after the next opening.
    pub async fn add(&self, document: NewDocument) -> Result<Document> {
        let task = self.submit(document, Submission::default()).await?;
        self.wait_for_document(task).await
    }

    /// The account that added a document: a live one, an unfinished one, or a failed one that can be retried.
    pub async fn owner(&self, doc_id: DocId) -> Result<Option<Creator>> {
        let state = self.shared.catalog.document_state(doc_id).await.during("read document")?;
        match (state.owner().cloned(), state.failed_attempts.last()) {
            (None, Some(attempt)) => Ok(self.task(attempt.task_id).await?.map(|task| task.created_by)),
            (owner, _) => Ok(owner),
        }
    }
}
