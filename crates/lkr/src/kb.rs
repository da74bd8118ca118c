use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use lkr_catalog::{
    Catalog, FailureReason, Originals, Page, Stats, Task, TaskFailure, TaskLists, TaskStatus, Texts,
};
use lkr_domain::{Counts, Creator, DocId, Document, Scope, SpaceName, TaskId};
use lkr_ingest::{DocumentChange, Ingestor, Workers};
use lkr_models::{Embedder, Reranker};
use lkr_retrieval::{
    ContextRequest, ContextResponse, SearchOutcome, SearchRequest, Searcher, StreamedSearch,
};
use lkr_spaces::Spaces;
use lkr_state::{Peers, StateStore, TaskQueue, Write};
use lkr_taxonomy::Taxonomy;
use lkr_vectors::VectorStore;

use crate::{
    Builder, Error, ErrorKind, Result,
    embedders::Embedders,
    error::{During, check_limit},
};

/// A knowledge base: documents can be added, changed, deleted and searched. Cheap to clone; clones share all state.
#[derive(Debug, Clone)]
pub struct KnowledgeBase {
    pub(crate) shared: Arc<KnowledgeBaseShared>,
}

#[derive(Debug)]
pub(crate) struct KnowledgeBaseShared {
    pub(crate) vectors: Arc<dyn VectorStore>,
    pub(crate) state: Arc<dyn StateStore>,
    pub(crate) queue: Arc<dyn TaskQueue>,
    pub(crate) catalog: Catalog,
    pub(crate) texts: Texts,
    pub(crate) originals: Originals,
    pub(crate) spaces: Spaces,
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
    pub(crate) embedders: Arc<Embedders>,
    pub(crate) reranker: Option<Arc<dyn Reranker>>,
    pub(crate) taxonomy: Taxonomy,
    pub(crate) ingestor: Ingestor,
    pub(crate) searcher: Searcher,
    pub(crate) workers: Mutex<Option<Workers>>,
    /// Whether the workers have been stopped and will ingest nothing more.
    pub(crate) is_stopped: AtomicBool,
    /// Held while the workers are being stopped.
    pub(crate) stopping: tokio::sync::Mutex<()>,
    pub(crate) peers: Peers,
    /// What is behind the ports; `None` if they were given to the builder.
    #[cfg(feature = "lmdb")]
    pub(crate) backup_source: Option<crate::backup::BackupSource>,
}

/// The pause between two looks at a task whose end is awaited, within these bounds: an eighth of the time that it has taken, so
/// that an end is noticed soon relative to it, and long tasks are not read hundreds of times.
const MIN_POLL_PAUSE: Duration = Duration::from_millis(10);
const MAX_POLL_PAUSE: Duration = Duration::from_secs(1);

impl KnowledgeBase {
    /// Builds a knowledge base on given stores and models.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Waits until the document of a task is searchable.
    pub(crate) async fn wait_for_document(&self, task: Task) -> Result<Document> {
        let begun = Instant::now();
        let doc_id = loop {
            // Asked before the task is read: what ended before the workers did counts.
            let reason = self.reason_without_ingestion();
            match self.task(task.task_id).await? {
                Some(task) if !task.status.has_ended() => {
                    if let Some(reason) = reason {
                        return Err(Error::new(ErrorKind::Conflict, "add document", reason));
                    }
                    tokio::time::sleep(poll_pause(begun.elapsed())).await;
                }
                Some(Task { status: TaskStatus::Failed, error, .. }) => {
                    return Err(task_error(error));
                }
                // For a duplicate this is the existing document.
                Some(task) => break task.doc_id().during("add document")?,
                None => break task.doc_id().during("add document")?,
            }
        };
        let deleted = || {
            Error::new(
                ErrorKind::NotFound,
                "add document",
                "the document was deleted while it was being added",
            )
        };
        self.document(doc_id).await?.ok_or_else(deleted)
    }

    /// Why no process ingests what is accepted; `None` while this one does, or another one may.
    fn reason_without_ingestion(&self) -> Option<&'static str> {
        let KnowledgeBaseShared { is_stopped, workers, peers, .. } = &*self.shared;
        if peers.is_shared() {
            return None;
        }
        if is_stopped.load(Ordering::Acquire) {
            return Some(
                "the knowledge base was closed before the document was searchable; it is ingested after the next opening",
            );
        }
        let workers = workers.lock().unwrap_or_else(PoisonError::into_inner);
        workers.as_ref().is_some_and(Workers::process_nothing).then_some(
            "the document was accepted, but nothing ingests it: the knowledge base has no workers, or the runtime has ended \
             that they ran on; it is ingested after the next opening",
        )
    }

    /// A task.
    pub async fn task(&self, task_id: TaskId) -> Result<Option<Task>> {
        self.shared.catalog.task(task_id).await.during("read task")
    }

    /// A task of some lists; `None` also if it is in none of them.
    pub async fn task_in(&self, lists: &TaskLists, task_id: TaskId) -> Result<Option<Task>> {
        self.shared.catalog.task_in(lists, task_id).await.during("read task")
    }

    /// Lists the tasks of `lists` that `keep` accepts, newest first, starting after `after`.
    ///
    /// # Errors
    /// `Invalid` if `limit` is 0.
    pub async fn tasks(
        &self,
        lists: &TaskLists,
        keep: impl Fn(&Task) -> bool,
        after: Option<TaskId>,
        limit: usize,
    ) -> Result<Page<Task, TaskId>> {
        check_limit(limit, "list tasks")?;
        self.shared.catalog.tasks(lists, keep, after, limit).await.during("list tasks")
    }

    /// The same of the tasks with a status, if one is given. It reads no tasks that are done, unless the status is that.
    ///
    /// # Errors
    /// `Invalid` if `limit` is 0.
    pub async fn tasks_with_status(
        &self,
        lists: &TaskLists,
        status: Option<TaskStatus>,
        keep: impl Fn(&Task) -> bool,
        after: Option<TaskId>,
        limit: usize,
    ) -> Result<Page<Task, TaskId>> {
        check_limit(limit, "list tasks")?;
        let page = self.shared.catalog.tasks_with_status(lists, status, keep, after, limit).await;
        page.during("list tasks")
    }

    /// Deletes a document and returns the number of its live points; zeros if it is unknown or unfinished. The task of
    /// an unfinished document ends as cancelled.
    pub async fn delete(&self, doc_id: DocId) -> Result<Counts> {
        self.delete_with(doc_id, Vec::new()).await
    }

    /// [`delete`](Self::delete) that also writes `alongside` in the step that deletes the document, for example an
    /// audit entry. If there is no such document, nothing is written.
    pub async fn delete_with(&self, doc_id: DocId, alongside: Vec<Write>) -> Result<Counts> {
        Ok(self.shared.ingestor.delete(doc_id, alongside).await.during("delete document")?.counts)
    }

    /// Changes the properties of a live document without ingesting it again, and returns the changed document; `None`
    /// if it is not live. A category that is set this way is never reclassified.
    pub async fn change(&self, doc_id: DocId, change: DocumentChange) -> Result<Option<Document>> {
        self.change_with(doc_id, change, Vec::new()).await
    }

    /// [`change`](Self::change) that also writes `alongside` in the step that changes the document. If nothing changes,
    /// nothing is written.
    pub async fn change_with(
        &self,
        doc_id: DocId,
        change: DocumentChange,
        alongside: Vec<Write>,
    ) -> Result<Option<Document>> {
        self.shared.ingestor.change(doc_id, change, alongside).await.during("change document")
    }

    /// Accepts a task that classifies all documents again, or those of a space, except those whose category a person chose.
    pub async fn reclassify(&self, space: Option<SpaceName>, created_by: &Creator) -> Result<Task> {
        self.shared.ingestor.reclassify(space, created_by).await.during("reclassify")
    }

    /// The categories that documents are classified into.
    #[must_use]
    pub fn taxonomy(&self) -> &Taxonomy {
        &self.shared.taxonomy
    }

    /// The embedding model that it was opened with. [`embedding`](Self::embedding) returns the one in use.
    #[must_use]
    pub fn embedder(&self) -> Option<&Arc<dyn Embedder>> {
        self.shared.embedder.as_ref()
    }

    /// The reranker that it was opened with, which is used if the reranker source selects none.
    #[must_use]
    pub fn reranker(&self) -> Option<&Arc<dyn Reranker>> {
        self.shared.reranker.as_ref()
    }

    /// Counts of the documents in the scope and of their points.
    pub async fn stats(&self, scope: &Scope) -> Result<Stats> {
        self.shared.catalog.stats(scope).await.during("read statistics")
    }

    /// Searches.
    pub async fn search(&self, request: &SearchRequest) -> Result<SearchOutcome> {
        self.shared.searcher.search(request).await.during("search")
    }

    /// The best passages for a question within a budget of tokens, as one text for a prompt.
    pub async fn context(&self, request: &ContextRequest) -> Result<ContextResponse> {
        self.shared.searcher.context(request, &self.shared.texts).await.during("context")
    }

    /// Searches, and returns the results as soon as they are known; the summary follows as a stream.
    pub async fn search_stream(&self, request: &SearchRequest) -> Result<StreamedSearch> {
        self.shared.searcher.search_stream(request).await.during("search")
    }

    /// The state store, for records that a program keeps beside the documents.
    #[must_use]
    pub fn state(&self) -> Arc<dyn StateStore> {
        Arc::clone(&self.shared.state)
    }

    /// Completes, with the reason, if this process should shut down: one of a later version of lkr waits to upgrade the stores that
    /// both work on, or another one has taken its place while it stood still.
    pub async fn superseded(&self) -> String {
        self.shared.peers.superseded().await
    }

    /// Stops the workers. Waits up to `grace_period` for the documents that are being processed; the others continue
    /// after the next opening. Clones still read and accept documents, which are ingested after the next opening too. A second
    /// call waits until the first one has ended.
    pub async fn shutdown(&self, grace_period: Duration) {
        // Until the workers have ended, other processes must not take this one for gone.
        let _stopping = self.shared.stopping.lock().await;
        let workers = self.shared.workers.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(workers) = workers {
            // Also if this future is dropped: the workers end with it.
            let _stopped = StopOnDrop(&self.shared.is_stopped);
            workers.shutdown(grace_period).await;
        }
        self.shared.peers.leave().await;
    }

    /// Stops the workers, waiting up to 30 seconds for the documents that are being processed. The folder is free for another
    /// opening when no clone is left.
    pub async fn close(self) {
        self.shutdown(Duration::from_secs(30)).await;
    }
}

/// The pause before a task is looked at again that has been awaited for `elapsed`.
fn poll_pause(elapsed: Duration) -> Duration {
    (elapsed / 8).clamp(MIN_POLL_PAUSE, MAX_POLL_PAUSE)
}

/// Notes that the workers have been stopped.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Maps the failure of a task to the error of [`KnowledgeBase::add`].
fn task_error(failure: Option<TaskFailure>) -> Error {
    let (kind, reason) = match failure {
        Some(TaskFailure { reason: FailureReason::Invalid, message, .. }) => (ErrorKind::Invalid, message),
        Some(TaskFailure { reason: FailureReason::Cancelled, message, .. }) => (ErrorKind::Conflict, message),
        Some(TaskFailure { reason: FailureReason::Internal, message, .. }) => (ErrorKind::Internal, message),
        None => (ErrorKind::Internal, "the task failed".to_owned()),
    };
    Error::new(kind, "add document", reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_of_a_task_become_rarer_the_longer_it_takes() {
        let looks = |seconds: f64| {
            let (mut at, mut looks) = (Duration::ZERO, 0);
            while at < Duration::from_secs_f64(seconds) {
                at += poll_pause(at);
                looks += 1;
            }
            (looks, at.as_secs_f64() - seconds)
        };
        for (seconds, most_looks) in [(0.05, 5), (1.0, 30), (60.0, 110)] {
            let (looks, late) = looks(seconds);
            assert!(
                looks <= most_looks && late <= (seconds / 8.0).clamp(0.01, 1.0),
                "{looks} looks, {late} s late"
            );
        }
    }
}
