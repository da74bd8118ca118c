//! Bringing documents in, replacing them, and what becomes of their tasks.

use lkr_catalog::{Idempotency, Task};
use lkr_domain::{Creator, DocId, Document, NewDocument, TaskId};
use lkr_ingest::{NewFile, Submission};

use crate::{KnowledgeBase, Result, error::During};

impl KnowledgeBase {
    /// Accepts a document: when this answers, it is durable and will be ingested.
    pub async fn submit(&self, document: NewDocument, submission: Submission) -> Result<Task> {
        self.parts.ingestor.submit(document, submission).await.during("submit document")
    }

    /// Accepts a file whose text was extracted already: when this answers, it is durable and will be ingested. Where
    /// the file itself cannot be stored, the task names no original.
    pub async fn submit_file(&self, file: NewFile, submission: Submission) -> Result<Task> {
        self.parts.ingestor.submit_file(file, submission).await.during("submit file")
    }

    /// Accepts several documents in one step, all of them or none, and answers their tasks in their order. Of those
    /// that are about one document, all but the last have ended as cancelled.
    pub async fn submit_all(
        &self,
        documents: Vec<(NewDocument, Submission)>,
        idempotency: Option<Idempotency>,
    ) -> Result<Vec<Task>> {
        self.parts.ingestor.submit_all(documents, idempotency).await.during("submit documents")
    }

    /// Accepts another text and other properties for a live document: searches see all of the old or all of the new.
    /// A replacement that is under way ends as cancelled. `None` where the document is not live.
    pub async fn replace(
        &self,
        doc_id: DocId,
        document: NewDocument,
        submission: Submission,
    ) -> Result<Option<Task>> {
        self.parts.ingestor.replace(doc_id, document, submission).await.during("replace document")
    }

    /// [`replace`](Self::replace) with a file.
    pub async fn replace_file(
        &self,
        doc_id: DocId,
        file: NewFile,
        submission: Submission,
    ) -> Result<Option<Task>> {
        self.parts.ingestor.replace_file(doc_id, file, submission).await.during("replace document")
    }

    /// The tasks that were accepted under an idempotency key, as they stand now; `None` where there are none.
    pub async fn remembered(&self, idempotency: &Idempotency) -> Result<Option<Vec<Task>>> {
        let remembered =
            self.parts.catalog.idempotency_record(idempotency).await.during("read idempotency key")?;
        Ok(Some(remembered.tasks).filter(|tasks| !tasks.is_empty()))
    }

    /// Ends a task that is not wanted any more; nothing of it stays. `None` where there is no such task.
    ///
    /// # Errors
    /// `Conflict` where it has ended.
    pub async fn cancel(&self, task_id: TaskId) -> Result<Option<Task>> {
        self.parts.ingestor.cancel(task_id).await.during("cancel task")
    }

    /// Makes a failed task pending again: it goes on with what its earlier tries stored. `None` where there is no such
    /// task.
    ///
    /// # Errors
    /// `Conflict` where it did not fail, was cancelled or overtaken, or nothing of it is kept any more.
    pub async fn retry(&self, task_id: TaskId) -> Result<Option<Task>> {
        self.parts.ingestor.retry(task_id).await.during("retry task")
    }

    /// Forgets a task that has ended, and what it may have left for another try. `None` where there is no such task.
    ///
    /// # Errors
    /// `Conflict` where it has not ended.
    pub async fn forget(&self, task_id: TaskId) -> Result<Option<Task>> {
        self.parts.ingestor.forget(task_id).await.during("delete task")
    }

    /// Brings a document in and waits until it is searchable. Where an equal one is there already, that is answered.
    pub async fn add(&self, document: NewDocument) -> Result<Document> {
        let task = self.submit(document, Submission::default()).await?;
        self.finished(task).await
    }

    /// The account that brought a document in: live, unfinished, or failed and kept for another try.
    pub async fn owner(&self, doc_id: DocId) -> Result<Option<Creator>> {
        let present = self.parts.catalog.document_state(doc_id).await.during("read document")?;
        match (present.owner().cloned(), present.failed_attempts.last()) {
            (None, Some(held)) => Ok(self.task(held.task_id).await?.map(|task| task.created_by)),
            (owner, _) => Ok(owner),
        }
    }
}
