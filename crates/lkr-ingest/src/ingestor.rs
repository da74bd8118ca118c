use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use lkr_catalog::{Catalog, Deleted, Originals, Task, TaskInput, Texts};
use lkr_domain::{Creator, DocId, Document, Metadata, NewDocument, RESERVED_METADATA};
use lkr_models::{Embedder, SparseEncoder};
use lkr_parsers::Parser;
use lkr_state::{TaskQueue, Write};
use lkr_taxonomy::Classifier;
use lkr_vectors::VectorStore;
use time::OffsetDateTime;
use tokio::sync::Notify;

use crate::{
    DocumentChange, Error, ErrorKind, IngestOptions, NewFile, Result, Workers,
    change::{self, Changes},
    file,
    long_texts::LongTexts,
    shelves::Shelves,
    worker,
};

/// Brings documents in and takes them away. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Ingestor {
    pub(crate) inner: Arc<Inner>,
}

/// What ingestion stands on.
#[derive(Debug, Clone)]
pub struct Ports {
    /// The points.
    pub vectors: Arc<dyn VectorStore>,
    /// The records.
    pub catalog: Catalog,
    /// The tasks to be done.
    pub queue: Arc<dyn TaskQueue>,
    /// The texts.
    pub texts: Texts,
    /// The files as they were sent.
    pub originals: Originals,
    /// The embedding model; without one, points have no dense vectors until there is one.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// What reads structure out of a text that was sent as JSON.
    pub parser: Arc<dyn Parser>,
    /// What finds the category of a document; without one, only people choose categories.
    pub classifier: Option<Arc<dyn Classifier>>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) ports: Ports,
    pub(crate) options: IngestOptions,
    pub(crate) sparse: SparseEncoder,
    pub(crate) shelves: Shelves,
    /// Before this, no file was written by this process.
    pub(crate) opened: OffsetDateTime,
    /// When this process began.
    pub(crate) started: OffsetDateTime,
    pub(crate) changes: Changes,
    pub(crate) long_texts: LongTexts,
    /// Wakes the janitor.
    pub(crate) trash: Notify,
    /// Whether a task was accepted and may not stand in the queue.
    pub(crate) unqueued: AtomicBool,
}

/// How far the times of files may lag behind the clock.
const CLOCK_GRAIN: Duration = Duration::from_millis(20);

/// How often a step is tried that others overtake.
pub(crate) const CONTENDED_TRIES: usize = 16;

impl Ingestor {
    /// Ingestion over these ports. Makes the four collections unless they are there.
    pub async fn open(ports: Ports, options: IngestOptions) -> Result<Self> {
        let started = OffsetDateTime::now_utc();
        let opened = started - CLOCK_GRAIN;
        let shelves = Shelves::open(&*ports.vectors, ports.embedder.as_deref()).await?;
        let sparse = SparseEncoder::default();
        let (trash, unqueued) = (Notify::new(), AtomicBool::new(false));
        let long_texts = LongTexts::new(options.long_texts);
        let changes = Changes::default();
        let inner =
            Inner { ports, options, sparse, shelves, opened, started, changes, long_texts, trash, unqueued };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Accepts a document: when this answers, text and task are durable and the task will end.
    ///
    /// `warnings` stand in the task's result. Reserved metadata keys are dropped, with a warning.
    ///
    /// # Errors
    /// `Invalid` where the text is blank, `Overloaded` where the queue is full.
    pub async fn submit(
        &self,
        document: NewDocument,
        created_by: &Creator,
        warnings: Vec<String>,
    ) -> Result<Task> {
        if document.text.trim().is_empty() {
            let reason = "text is blank: at least one character that is not white space is needed";
            return Err(Error::new(ErrorKind::Invalid, "submit document", reason));
        }
        self.inner.check_room("submit document").await?;
        let inner = Arc::clone(&self.inner);
        let created_by = created_by.clone();
        // A caller that hangs up midway must not leave half of it.
        tokio::spawn(async move { inner.accept(document, created_by, warnings).await }).await?
    }

    /// Accepts a file whose text was extracted already: when this answers, text and task are durable and the task will
    /// end. Where the file itself cannot be stored, that is logged, and the task names no original.
    ///
    /// `warnings` stand in the task's result. Reserved metadata keys are dropped, with a warning.
    ///
    /// # Errors
    /// `Overloaded` where the queue is full.
    pub async fn submit_file(
        &self,
        file: NewFile,
        created_by: &Creator,
        warnings: Vec<String>,
    ) -> Result<Task> {
        self.inner.check_room("submit file").await?;
        let inner = Arc::clone(&self.inner);
        let created_by = created_by.clone();
        // A caller that hangs up midway must not leave half of it.
        tokio::spawn(async move { file::accept(&inner, file, created_by, warnings).await }).await?
    }

    /// Takes a document away. What is unfinished ends as cancelled, what is live is gone for every later read.
    /// `alongside` is written in the very step that does so, and not where there is nothing to take away.
    pub async fn delete(&self, doc_id: DocId, alongside: Vec<Write>) -> Result<Deleted> {
        let inner = Arc::clone(&self.inner);
        tokio::spawn(async move { inner.delete(doc_id, alongside).await }).await?
    }

    /// Changes what is said of a live document, without ingesting it again, and answers how it stands then; `None`
    /// where it is not live. `alongside` is written in the very step that does so, and not where nothing changes.
    ///
    /// # Errors
    /// `Invalid` where the document would have more metadata than one may have.
    pub async fn change(
        &self,
        doc_id: DocId,
        change: DocumentChange,
        alongside: Vec<Write>,
    ) -> Result<Option<Document>> {
        let inner = Arc::clone(&self.inner);
        tokio::spawn(async move { change::by_hand(&inner, doc_id, &change, alongside).await }).await?
    }

    /// Accepts that all documents be classified again, those left out whose category a person chose.
    pub async fn reclassify(&self, created_by: &Creator) -> Result<Task> {
        self.inner.check_room("reclassify").await?;
        let inner = Arc::clone(&self.inner);
        let task = Task::reclassify(created_by.clone());
        tokio::spawn(async move { inner.enqueue(task).await }).await?
    }

    /// Starts the workers and the janitor, after everything that an earlier process left was queued again.
    pub async fn start(&self) -> Result<Workers> {
        worker::start(&self.inner).await
    }
}

impl Inner {
    /// Refuses where the queue is full.
    async fn check_room(&self, operation: &'static str) -> Result<()> {
        let queued = self.ports.queue.len().await?;
        if queued < self.options.queue_limit {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Overloaded, operation, format!("{queued} tasks wait already")))
    }

    async fn accept(
        &self,
        document: NewDocument,
        created_by: Creator,
        warnings: Vec<String>,
    ) -> Result<Task> {
        let doc_id = DocId::new();
        let (text, input) = split(document, warnings);
        let task = Task::ingest(doc_id, created_by, input);
        self.ports.texts.put(doc_id, task.input.revision, text).await?;
        self.enqueue_or_forget(task).await
    }

    /// Records a task whose text is stored and queues it.
    pub(crate) async fn enqueue_or_forget(&self, task: Task) -> Result<Task> {
        let (task_id, doc_id, revision) = (task.task_id, task.doc_id, task.input.revision);
        let accepted = self.enqueue(task).await;
        // What failed may have been done all the same; where it was not, nothing names the text. Should it stay for
        // any reason, the next start sweeps it up.
        if accepted.is_err()
            && let Ok(None) = self.ports.catalog.task(task_id).await
        {
            let _ = self.ports.texts.delete(doc_id, revision).await;
        }
        accepted
    }

    /// Records a task and queues it.
    async fn enqueue(&self, task: Task) -> Result<Task> {
        self.ports.catalog.accept(&task).await?;
        if let Err(error) = self.ports.queue.push(task.task_id, Duration::ZERO).await {
            self.withdraw(task.doc_id).await;
            return Err(error.into());
        }
        Ok(task)
    }

    /// Takes back what was accepted and could not be queued: its sender is told that it failed.
    async fn withdraw(&self, doc_id: DocId) {
        if let Err(error) = self.delete(doc_id, Vec::new()).await {
            tracing::warn!(%doc_id, %error, "a task that could not be queued could not be taken back either");
            self.unqueued.store(true, Ordering::Relaxed);
        }
    }

    async fn delete(&self, doc_id: DocId, alongside: Vec<Write>) -> Result<Deleted> {
        for _ in 0..CONTENDED_TRIES {
            match self.try_delete(doc_id, alongside.clone()).await {
                Err(error) if error.kind() == ErrorKind::Overtaken => {}
                Ok(deleted) => {
                    self.trash.notify_one();
                    return Ok(deleted);
                }
                Err(error) => return Err(error),
            }
        }
        Err(Error::new(ErrorKind::StoreAway, "write record", "it kept changing meanwhile"))
    }

    /// A document is unfinished, live, or unknown; from the first to the second it goes in one step, so that
    /// asking in this order misses none.
    async fn try_delete(&self, doc_id: DocId, alongside: Vec<Write>) -> Result<Deleted> {
        if let Some(active) = self.ports.catalog.active(doc_id).await? {
            return Ok(self.ports.catalog.cancel(active, alongside).await?);
        }
        let Some(document) = self.ports.catalog.document(doc_id).await? else {
            return Ok(Deleted::default());
        };
        let deleted = self.ports.catalog.delete(&document, alongside).await?;
        // The janitor does it too; but whoever deletes a file expects it gone when that is answered.
        if let Some(original) = &document.value.original
            && let Err(error) = self.ports.originals.delete(&original.path).await
        {
            tracing::warn!(%doc_id, %error, "an original could not be removed; it will be tried again");
        }
        Ok(deleted)
    }
}

fn split(document: NewDocument, mut warnings: Vec<String>) -> (String, TaskInput) {
    let NewDocument { text, title, source, mut metadata } = document;
    drop_reserved(&mut metadata, &mut warnings);
    (text, TaskInput { revision: 1, title, source, metadata, warnings, ..TaskInput::default() })
}

/// Takes away the metadata that only lkr itself sets, with a warning for each.
pub fn drop_reserved(metadata: &mut Metadata, warnings: &mut Vec<String>) {
    for key in RESERVED_METADATA {
        if metadata.remove(key).is_some() {
            warnings.push(format!("metadata key {key} is reserved and was dropped"));
        }
    }
}
