use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use futures_util::Stream;
use lkr_catalog::{
    Catalog, FailureReason, ListFilter, NodeRecord, Originals, Page, Stats, StoredOriginal, Task,
    TaskFailure, TaskStatus, Texts,
};
use lkr_domain::{Chunk, Counts, Creator, DocId, Document, Layer, Node, TaskId};
use lkr_ingest::{DocumentChange, Ingestor, Workers};
use lkr_models::{Embedder, Reranker};
use lkr_retrieval::{SearchOutcome, SearchRequest, Searcher, StreamedSearch};
use lkr_state::{StateStore, TaskQueue, Write};
use lkr_taxonomy::Taxonomy;
use lkr_vectors::VectorStore;

use crate::{Builder, Embedding, Error, ErrorKind, Health, Result, embedders::Embedders, error::During};

/// A knowledge base: what goes in is found. Cheap to clone; all clones are one.
#[derive(Debug, Clone)]
pub struct KnowledgeBase {
    pub(crate) parts: Arc<Parts>,
}

#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) vectors: Arc<dyn VectorStore>,
    pub(crate) state: Arc<dyn StateStore>,
    pub(crate) queue: Arc<dyn TaskQueue>,
    pub(crate) catalog: Catalog,
    pub(crate) texts: Texts,
    pub(crate) originals: Originals,
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
    pub(crate) embedders: Arc<Embedders>,
    pub(crate) reranker: Option<Arc<dyn Reranker>>,
    pub(crate) taxonomy: Taxonomy,
    pub(crate) ingestor: Ingestor,
    pub(crate) searcher: Searcher,
    pub(crate) workers: Mutex<Option<Workers>>,
    /// What a backup needs, where the ports are of a store in a folder.
    #[cfg(feature = "lmdb")]
    pub(crate) embedded: Option<crate::backup::Embedded>,
}

/// A live document with its nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detail {
    /// The record.
    pub document: Document,
    /// Its sections in order.
    pub l2: Vec<NodeRecord<Node>>,
    /// Its subsections and passages in order.
    pub l3: Vec<NodeRecord<Node>>,
}

/// A page of a document's chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkPage {
    /// The chunks in order.
    pub items: Vec<NodeRecord<Chunk>>,
    /// The ordinal that the next page begins with; `None` after the last.
    pub next: Option<u32>,
}

/// How often a task that is waited for is looked at.
const POLL: Duration = Duration::from_millis(10);

/// How often a read of several parts is tried again because the document changed in between.
const TORN_READS: usize = 3;

impl KnowledgeBase {
    /// A knowledge base on stores and models of one's own.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Waits until the document of a task is searchable.
    pub(crate) async fn finished(&self, task: Task) -> Result<Document> {
        let doc_id = loop {
            match self.task(task.task_id).await? {
                Some(task) if !task.status.has_ended() => tokio::time::sleep(POLL).await,
                Some(Task { status: TaskStatus::Failed, error, .. }) => {
                    return Err(not_added(error));
                }
                // A duplicate's is the earlier document.
                Some(task) => break task.doc_id().during("add document")?,
                None => break task.doc_id().during("add document")?,
            }
        };
        let deleted = || Error::new(ErrorKind::NotFound, "add document", "it was deleted meanwhile");
        self.document(doc_id).await?.ok_or_else(deleted)
    }

    /// A task.
    pub async fn task(&self, task_id: TaskId) -> Result<Option<Task>> {
        self.parts.catalog.task(task_id).await.during("read task")
    }

    /// Tasks, the newest first, beyond `after`.
    pub async fn tasks(
        &self,
        status: Option<TaskStatus>,
        after: Option<TaskId>,
        limit: usize,
    ) -> Result<Page<Task, TaskId>> {
        self.parts.catalog.tasks(status, after, limit).await.during("list tasks")
    }

    /// Documents, the newest first, beyond `after`.
    pub async fn list(
        &self,
        filter: &ListFilter,
        after: Option<DocId>,
        limit: usize,
    ) -> Result<Page<Document, DocId>> {
        self.parts.catalog.list(filter, after, limit).await.during("list documents")
    }

    /// A live document.
    pub async fn document(&self, doc_id: DocId) -> Result<Option<Document>> {
        let document = self.parts.catalog.document(doc_id).await.during("read document")?;
        Ok(document.map(|document| document.value))
    }

    /// A live document with its nodes.
    pub async fn detail(&self, doc_id: DocId) -> Result<Option<Detail>> {
        self.whole(doc_id, "read document", async |document: Document| {
            let vectors = &*self.parts.vectors;
            let l2 = lkr_catalog::nodes(vectors, &document, Layer::L2).await?;
            let l3 = lkr_catalog::nodes(vectors, &document, Layer::L3).await?;
            Ok(Detail { document, l2, l3 })
        })
        .await
    }

    /// Up to `limit` chunks of a live document, from ordinal `from` on.
    pub async fn chunks(&self, doc_id: DocId, from: u32, limit: u32) -> Result<Option<ChunkPage>> {
        self.whole(doc_id, "read chunks", async |document: Document| {
            let items = lkr_catalog::chunks(&*self.parts.vectors, &document, from, limit).await?;
            let next = from.saturating_add(limit);
            Ok(ChunkPage { items, next: (u64::from(next) < document.counts.chunks).then_some(next) })
        })
        .await
    }

    /// The extracted text of a live document, as it was stored, or an error that names the document.
    pub async fn text(&self, doc_id: DocId) -> Result<Option<String>> {
        self.whole(doc_id, "read text", async |document: Document| {
            self.parts.texts.get(document.doc_id, document.revision, Some(&document.content_sha256)).await
        })
        .await
    }

    /// The extracted text of a live document in UTF-8, part by part as it is read: the parts may begin and end amid a
    /// character. Where it is not what was stored, the last one is an error.
    pub async fn text_in_parts(
        &self,
        doc_id: DocId,
    ) -> Result<Option<impl Stream<Item = std::io::Result<Bytes>> + Send + use<>>> {
        self.whole(doc_id, "read text", async |document: Document| {
            self.parts.texts.parts(document.doc_id, document.revision, Some(&document.content_sha256)).await
        })
        .await
    }

    /// The file that a live document came as; `None` where it came otherwise, or its file is not there any more.
    pub async fn original(&self, document: &Document) -> Result<Option<StoredOriginal>> {
        let Some(original) = &document.original else { return Ok(None) };
        self.parts.originals.get(&original.path).await.during("read file")
    }

    /// Takes a document away and answers how many live points went: zeros for one that is unknown or unfinished.
    /// An unfinished one ends as cancelled.
    pub async fn delete(&self, doc_id: DocId) -> Result<Counts> {
        self.delete_and(doc_id, Vec::new()).await
    }

    /// [`delete`](Self::delete) that writes `alongside` in the very step that takes the document away, and nowhere
    /// where there is none: the place for an entry in a log.
    pub async fn delete_and(&self, doc_id: DocId, alongside: Vec<Write>) -> Result<Counts> {
        Ok(self.parts.ingestor.delete(doc_id, alongside).await.during("delete document")?.counts)
    }

    /// Changes what is said of a live document, without ingesting it again, and answers how it stands then; `None`
    /// where it is not live. A category that is set so is a person's choice and stays.
    pub async fn change(&self, doc_id: DocId, change: DocumentChange) -> Result<Option<Document>> {
        self.change_and(doc_id, change, Vec::new()).await
    }

    /// [`change`](Self::change) that writes `alongside` in the very step that does so, and not where nothing changes.
    pub async fn change_and(
        &self,
        doc_id: DocId,
        change: DocumentChange,
        alongside: Vec<Write>,
    ) -> Result<Option<Document>> {
        self.parts.ingestor.change(doc_id, change, alongside).await.during("change document")
    }

    /// Accepts that all documents be classified again, those left out whose category a person chose.
    pub async fn reclassify(&self, created_by: &Creator) -> Result<Task> {
        self.parts.ingestor.reclassify(created_by).await.during("reclassify")
    }

    /// The categories that documents are classified into.
    #[must_use]
    pub fn taxonomy(&self) -> &Taxonomy {
        &self.parts.taxonomy
    }

    /// The embedding model of its own, which it was opened with; [`embedding`](Self::embedding) tells which is in use.
    #[must_use]
    pub fn embedder(&self) -> Option<&Arc<dyn Embedder>> {
        self.parts.embedder.as_ref()
    }

    /// The reranker of its own, which stands in where no other is named.
    #[must_use]
    pub fn reranker(&self) -> Option<&Arc<dyn Reranker>> {
        self.parts.reranker.as_ref()
    }

    /// How much there is.
    pub async fn stats(&self) -> Result<Stats> {
        self.parts.catalog.stats().await.during("count")
    }

    /// Searches.
    pub async fn search(&self, request: &SearchRequest) -> Result<SearchOutcome> {
        self.parts.searcher.search(request).await.during("search")
    }

    /// Searches, and answers as soon as the results are there; the summary follows.
    pub async fn search_begin(&self, request: &SearchRequest) -> Result<StreamedSearch> {
        self.parts.searcher.begin(request).await.during("search")
    }

    /// How many tasks wait or are under work.
    pub async fn queued(&self) -> Result<u64> {
        self.parts.queue.len().await.map_err(lkr_ingest::Error::from).during("count tasks")
    }

    /// How the parts are.
    pub async fn health(&self) -> Health {
        let said = |error: &dyn std::fmt::Display| error.to_string();
        Health {
            vectors: self.parts.vectors.health().await.map_err(|e| said(&e)),
            state: self.parts.state.health().await.map_err(|e| said(&e)),
            queue: self.parts.queue.health().await.map_err(|e| said(&e)),
            blobs: self.parts.texts.health().await.map_err(|e| said(&e)),
            embedder: self.embedder_health().await,
        }
    }

    async fn embedder_health(&self) -> Result<(), String> {
        let Embedding { wanted, speaks, .. } = self.embedding().await.map_err(|error| error.to_string())?;
        match (speaks, wanted) {
            (true, _) => Ok(()),
            (false, None) => Err("no embedding model: keyword search only".to_owned()),
            (false, Some(wanted)) => {
                let name = &wanted.profile().name;
                Err(format!("documents are being embedded by {name}: keyword search only until that is done"))
            }
        }
    }

    /// The state store, for what else belongs beside the documents.
    #[must_use]
    pub fn state(&self) -> Arc<dyn StateStore> {
        Arc::clone(&self.parts.state)
    }

    /// Ends the workers. Documents under work are finished within `patience`, else left to the next opening.
    pub async fn shutdown(&self, patience: Duration) {
        let workers = self.parts.workers.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(workers) = workers {
            workers.shutdown(patience).await;
        }
    }

    /// Ends the workers after the documents they are at.
    pub async fn close(self) {
        self.shutdown(Duration::from_secs(30)).await;
    }

    /// Reads something of a live document that lies elsewhere than its record. A document that changes in between
    /// is read again, one that goes is gone.
    async fn whole<T>(
        &self,
        doc_id: DocId,
        operation: &'static str,
        read: impl AsyncFn(Document) -> lkr_catalog::Result<T>,
    ) -> Result<Option<T>> {
        let mut tries = TORN_READS;
        loop {
            let Some(document) = self.document(doc_id).await? else { return Ok(None) };
            let revision = document.revision;
            let error = match read(document).await {
                Ok(read) => return Ok(Some(read)),
                Err(error) => error,
            };
            let now = self.document(doc_id).await?;
            tries -= 1;
            if now.is_some_and(|now| now.revision == revision) || tries == 0 {
                return Err(error).during(operation);
            }
        }
    }
}

/// What the end of a failed task is to the one who waited for it.
fn not_added(failure: Option<TaskFailure>) -> Error {
    let (kind, reason) = match failure {
        Some(TaskFailure { reason: FailureReason::Invalid, message, .. }) => (ErrorKind::Invalid, message),
        Some(TaskFailure { reason: FailureReason::Cancelled, message, .. }) => (ErrorKind::Conflict, message),
        Some(TaskFailure { reason: FailureReason::Internal, message, .. }) => (ErrorKind::Internal, message),
        None => (ErrorKind::Internal, "the task failed".to_owned()),
    };
    Error::new(kind, "add document", reason)
}
