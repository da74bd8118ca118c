use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use lkr_catalog::{
    Acceptance, Catalog, Deleted, DocumentChange, Garbage, Idempotency, Originals, STORE_VERSION, Task,
    TaskKind, Texts,
};
use lkr_domain::{Creator, DocId, Document, NewDocument, TaskId};
use lkr_models::{ChatModelSource, EmbedderProfile, EmbedderSource, SparseEncoder};
use lkr_parsers::Parser;
use lkr_state::{KeyedMutex, TaskQueue, Write};
use lkr_taxonomy::Classifier;
use lkr_vectors::VectorStore;
use time::OffsetDateTime;
use tokio::sync::{Mutex, Notify, OwnedRwLockWriteGuard, RwLock};

use crate::{
    Error, ErrorKind, Evaluator, IngestOptions, NewFile, ReembedTrigger, Result, Submission, Workers,
    change::{self, Changes},
    collection_sets::CollectionSets,
    dedup::DuplicateIndex,
    long_texts::LongTexts,
    reembed,
    submit::{self, Item},
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
    /// The embedding models; without one, points have no dense vectors until there is one.
    pub embedders: Arc<dyn EmbedderSource>,
    /// What reads structure out of a text that was sent as JSON.
    pub parser: Arc<dyn Parser>,
    /// What finds the category of a document; without one, only people choose categories.
    pub classifier: Option<Arc<dyn Classifier>>,
    /// What names the language model that writes summaries; without one they are picked from the texts.
    pub chat_models: Option<Arc<dyn ChatModelSource>>,
    /// What judges searches; without it, tasks that ask for it fail.
    pub evaluator: Option<Arc<dyn Evaluator>>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) ports: Ports,
    pub(crate) options: IngestOptions,
    pub(crate) sparse: SparseEncoder,
    pub(crate) shelves: CollectionSets,
    /// Before this, no file was written by this process.
    pub(crate) opened: OffsetDateTime,
    /// When this process began.
    pub(crate) started: OffsetDateTime,
    pub(crate) changes: Changes,
    pub(crate) long_texts: LongTexts,
    pub(crate) twins: DuplicateIndex,
    /// Those who accept the same document go one after another.
    pub(crate) accepting: KeyedMutex,
    /// Changes of the embedding model are decided upon one after another.
    pub(crate) deciding: Mutex<()>,
    /// How often in a row a model was away that documents are embedded by anew.
    pub(crate) stalled: AtomicU32,
    /// Wakes who gives vectors to documents that lack them.
    pub(crate) noted: Notify,
    /// Wakes the janitor.
    pub(crate) garbage: Notify,
    /// Whether a task was accepted and may not stand in the queue.
    pub(crate) unqueued: AtomicBool,
    /// Whoever collects shares it; whoever wants nothing collected has it alone.
    pub(crate) collecting: Arc<RwLock<()>>,
}

/// As long as it is there, texts and originals stay where they are, also those that nobody needs any more: they are
/// collected afterwards.
#[derive(Debug)]
pub struct GcPause {
    inner: Arc<Inner>,
    collecting: Option<OwnedRwLockWriteGuard<()>>,
}

impl Drop for GcPause {
    fn drop(&mut self) {
        self.collecting = None;
        self.inner.garbage.notify_one();
    }
}

/// How far the times of files may lag behind the clock.
const CLOCK_GRAIN: Duration = Duration::from_millis(20);

/// How often a step is tried that others overtake.
pub(crate) const CONTENDED_TRIES: usize = 16;

impl Ingestor {
    /// Ingestion over these ports. Makes the four collections unless they are there, and what an earlier version stored
    /// something of this one.
    ///
    /// # Errors
    /// `Refused` where the store is of a later version.
    pub async fn open(ports: Ports, options: IngestOptions) -> Result<Self> {
        if let Some(earlier) = ports.catalog.upgrade().await? {
            tracing::debug!(from = earlier, to = STORE_VERSION, "the store is of this version now");
        }
        let wanted = ports.embedders.embedders().into_iter().next();
        let shelves = CollectionSets::open(&*ports.vectors, wanted.as_deref()).await?;
        Ok(Self::over(ports, options, shelves))
    }

    /// What accepts documents for a later process to ingest: it neither makes nor drops collections, which may be
    /// damaged, or those of a model that it knows nothing of. Its workers must not be started.
    ///
    /// # Errors
    /// `Refused` where the store is of a later version.
    pub async fn open_to_accept(ports: Ports, options: IngestOptions) -> Result<Self> {
        ports.catalog.upgrade().await?;
        Ok(Self::over(ports, options, CollectionSets::default()))
    }

    fn over(ports: Ports, options: IngestOptions, shelves: CollectionSets) -> Self {
        let started = OffsetDateTime::now_utc();
        let opened = started - CLOCK_GRAIN;
        let sparse = SparseEncoder::default();
        let inner = Inner {
            long_texts: LongTexts::new(options.long_texts),
            ports,
            options,
            sparse,
            shelves,
            opened,
            started,
            changes: Changes::default(),
            twins: DuplicateIndex::default(),
            accepting: KeyedMutex::default(),
            deciding: Mutex::default(),
            stalled: AtomicU32::new(0),
            noted: Notify::new(),
            garbage: Notify::new(),
            unqueued: AtomicBool::new(false),
            collecting: Arc::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Accepts a document: when this answers, text and task are durable and the task will end.
    ///
    /// Reserved metadata keys are dropped, with a warning.
    ///
    /// # Errors
    /// `Invalid` where the text is blank, `Overloaded` where the queue is full.
    pub async fn submit(&self, document: NewDocument, submission: Submission) -> Result<Task> {
        self.only(Item::text(document, None)?, submission).await?.ok_or_else(unknown)
    }

    /// Accepts a file whose text was extracted already: when this answers, text and task are durable and the task will
    /// end. Where the file itself cannot be stored, that is logged, and the task names no original.
    ///
    /// Reserved metadata keys are dropped, with a warning.
    ///
    /// # Errors
    /// `Overloaded` where the queue is full.
    pub async fn submit_file(&self, file: NewFile, submission: Submission) -> Result<Task> {
        self.only(Item::file(file, None), submission).await?.ok_or_else(unknown)
    }

    /// Accepts several documents in one step, and answers their tasks in their order. Of those that are about one
    /// document, all but the last have ended as cancelled.
    ///
    /// # Errors
    /// `Invalid` where a text is blank, `Overloaded` where the queue has no room for all.
    pub async fn submit_all(
        &self,
        documents: Vec<(NewDocument, Submission)>,
        idempotency: Option<Idempotency>,
    ) -> Result<Vec<Task>> {
        let item = |(document, submission)| Ok((Item::text(document, None)?, submission));
        let items = documents.into_iter().map(item).collect::<Result<_>>()?;
        self.accept(items, idempotency).await?.ok_or_else(unknown)
    }

    /// Accepts another content and other properties for a live document: searches see all of the old or all of the new.
    /// A replacement that is under way ends as cancelled. `None` where the document is not live.
    ///
    /// # Errors
    /// Those of [`submit`](Self::submit).
    pub async fn replace(
        &self,
        doc_id: DocId,
        document: NewDocument,
        submission: Submission,
    ) -> Result<Option<Task>> {
        self.only(Item::text(document, Some(doc_id))?, submission).await
    }

    /// [`replace`](Self::replace) with a file.
    ///
    /// # Errors
    /// Those of [`submit_file`](Self::submit_file).
    pub async fn replace_file(
        &self,
        doc_id: DocId,
        file: NewFile,
        submission: Submission,
    ) -> Result<Option<Task>> {
        self.only(Item::file(file, Some(doc_id)), submission).await
    }

    async fn only(&self, item: Item, mut submission: Submission) -> Result<Option<Task>> {
        let idempotency = submission.idempotency.take();
        let accepted = self.accept(vec![(item, submission)], idempotency).await?;
        Ok(accepted.and_then(|tasks| tasks.into_iter().next()))
    }

    async fn accept(
        &self,
        items: Vec<(Item, Submission)>,
        idempotency: Option<Idempotency>,
    ) -> Result<Option<Vec<Task>>> {
        self.inner.check_room("submit document", items.len() as u64).await?;
        let inner = Arc::clone(&self.inner);
        // A caller that hangs up midway must not leave half of it.
        tokio::spawn(async move { submit::accept(&inner, items, idempotency.as_ref()).await }).await?
    }

    /// Takes a document away. What is unfinished ends as cancelled, what is live is gone for every later read.
    /// `alongside` is written in the very step that does so, and not where there is nothing to take away.
    pub async fn delete(&self, doc_id: DocId, alongside: Vec<Write>) -> Result<Deleted> {
        let inner = Arc::clone(&self.inner);
        tokio::spawn(async move { inner.delete(doc_id, alongside).await }).await?
    }

    /// Ends a task that is not wanted any more; nothing of it stays. `None` where there is no such task.
    ///
    /// # Errors
    /// `Refused` where it has ended.
    pub async fn cancel(&self, task_id: TaskId) -> Result<Option<Task>> {
        let inner = Arc::clone(&self.inner);
        tokio::spawn(async move { inner.cancel(task_id).await }).await?
    }

    /// Makes a failed task pending again: it goes on with what its earlier tries stored. `None` where there is no such
    /// task.
    ///
    /// # Errors
    /// `Refused` where it did not fail, was cancelled or overtaken, or nothing of it is kept any more.
    pub async fn retry(&self, task_id: TaskId) -> Result<Option<Task>> {
        self.inner.check_room("retry task", 1).await?;
        let inner = Arc::clone(&self.inner);
        tokio::spawn(async move { inner.retry(task_id).await }).await?
    }

    /// Has nothing collected until what this answers is dropped. Waits for what is being collected.
    pub async fn pause_gc(&self) -> GcPause {
        let collecting = Arc::clone(&self.inner.collecting).write_owned().await;
        GcPause { inner: Arc::clone(&self.inner), collecting: Some(collecting) }
    }

    /// Forgets a task that has ended. `None` where there is no such task.
    ///
    /// # Errors
    /// `Refused` where it has not ended.
    pub async fn forget(&self, task_id: TaskId) -> Result<Option<Task>> {
        let forgotten = self.inner.ports.catalog.forget_task(task_id).await?;
        self.inner.garbage.notify_one();
        Ok(forgotten)
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
        self.accept_alone("reclassify", Task::reclassify(created_by.clone()), Vec::new()).await
    }

    /// Accepts that all documents get vectors of `model`, which is to be among the embedders: searches use the earlier
    /// model until all of them have. Answers the task that does it, or `None` where searches use that model already, or
    /// there is to be none. An unfinished change to another model ends as cancelled.
    ///
    /// This is asked again at each start: a task that waits for a model to be named goes on.
    pub async fn embed_by(
        &self,
        model: Option<&EmbedderProfile>,
        asked: ReembedTrigger,
    ) -> Result<Option<Task>> {
        let (inner, model) = (Arc::clone(&self.inner), model.cloned());
        tokio::spawn(async move { reembed::accept(&inner, model.as_ref(), &asked).await }).await?
    }

    /// The id of the model whose vectors searches use; `None` where they go by words alone.
    pub async fn live_model(&self) -> Result<Option<String>> {
        CollectionSets::live_model(&*self.inner.ports.vectors).await
    }

    /// Accepts that searches be judged by a gold set, which is what the evaluator understands.
    pub async fn evaluate(&self, gold: Vec<u8>, created_by: &Creator) -> Result<Task> {
        let task = Task::evaluate(created_by.clone());
        let gold = Catalog::put_gold(task.task_id, gold);
        self.accept_alone("evaluate", task, vec![gold]).await
    }

    /// Accepts a task that is about no document, together with what it needs.
    async fn accept_alone(&self, operation: &'static str, task: Task, alongside: Vec<Write>) -> Result<Task> {
        self.inner.check_room(operation, 1).await?;
        let inner = Arc::clone(&self.inner);
        tokio::spawn(async move {
            let accepted = [Acceptance { task, over: None }];
            let done = inner.ports.catalog.accept(&accepted, alongside).await;
            done.inspect_err(|_| inner.requeue_soon())?;
            let [Acceptance { task, .. }] = accepted;
            inner.queue(std::slice::from_ref(&task)).await;
            Ok(task)
        })
        .await?
    }

    /// Starts the workers and the janitor, after everything that an earlier process left was queued again.
    pub async fn start(&self) -> Result<Workers> {
        worker::start(&self.inner).await
    }
}

impl Inner {
    /// Refuses where the queue has no room for `more`.
    async fn check_room(&self, operation: &'static str, more: u64) -> Result<()> {
        let queued = self.ports.queue.len().await?;
        if queued.saturating_add(more) <= self.options.queue_limit {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Overloaded, operation, format!("{queued} tasks wait already")))
    }

    /// Queues tasks that were accepted. Where that fails, the janitor does it later: what was accepted will end.
    pub(crate) async fn queue(&self, tasks: &[Task]) {
        for task in tasks.iter().filter(|task| !task.status.has_ended()) {
            if let Err(error) = self.ports.queue.push(task.task_id, Duration::ZERO).await {
                tracing::warn!(task = %task.task_id, %error, "a task could not be queued; it will be tried again");
                self.requeue_soon();
            }
        }
    }

    /// Has the janitor queue what has not ended and is not in the queue.
    pub(crate) fn requeue_soon(&self) {
        self.unqueued.store(true, Ordering::Relaxed);
        self.garbage.notify_one();
    }

    async fn delete(&self, doc_id: DocId, alongside: Vec<Write>) -> Result<Deleted> {
        for _ in 0..CONTENDED_TRIES {
            match self.try_delete(doc_id, alongside.clone()).await {
                Err(error) if error.kind() == ErrorKind::Overtaken => {}
                Ok(deleted) => {
                    self.garbage.notify_one();
                    return Ok(deleted);
                }
                Err(error) => return Err(error),
            }
        }
        Err(contended())
    }

    async fn try_delete(&self, doc_id: DocId, alongside: Vec<Write>) -> Result<Deleted> {
        let present = self.ports.catalog.document_state(doc_id).await?;
        if present.is_unknown() && present.held.is_empty() {
            return Ok(Deleted::default());
        }
        let alongside = if present.is_unknown() { Vec::new() } else { alongside };
        let deleted = self.ports.catalog.remove(&present, alongside).await?;
        self.twins.deleted(doc_id);
        self.drop_originals(doc_id, &deleted.originals).await;
        Ok(deleted)
    }

    /// Removes originals that are trash now. The janitor does it too, later; but whoever deletes or replaces a file
    /// expects it gone when that is answered or done.
    pub(crate) async fn drop_originals(&self, doc_id: DocId, paths: &[String]) {
        let Ok(_collecting) = self.collecting.try_read() else { return };
        for path in paths {
            if let Err(error) = self.ports.originals.delete(path).await {
                tracing::warn!(%doc_id, %error, "an original could not be removed; it will be tried again");
            }
        }
    }

    /// Removes the original of a task that does not need it any more.
    pub(crate) async fn drop_original(&self, task: &Task) {
        if let Some(Garbage { doc_id, original: Some(path), .. }) = Garbage::of_task(task) {
            self.drop_originals(doc_id, &[path]).await;
        }
    }

    async fn cancel(&self, task_id: TaskId) -> Result<Option<Task>> {
        for _ in 0..CONTENDED_TRIES {
            let Some(task) = self.ports.catalog.task(task_id).await? else { return Ok(None) };
            // The change of the model is not half-way when it is cancelled.
            let _deciding = match task.kind {
                TaskKind::Reembed => Some(self.deciding.lock().await),
                _ => None,
            };
            if task.status.has_ended() {
                return Err(Error::new(ErrorKind::Refused, "cancel task", "the task has ended"));
            }
            let unfinished = self.ports.catalog.unfinished_task(task.subject).await?;
            let Some(unfinished) = unfinished.filter(|now| now.task.task_id == task_id) else {
                continue;
            };
            match self.ports.catalog.cancel(&unfinished, reembed::alongside_cancel(&task)).await {
                Err(error) if error.kind() == lkr_catalog::ErrorKind::Conflict => {}
                cancelled => {
                    let cancelled = cancelled?;
                    self.drop_original(&task).await;
                    self.garbage.notify_one();
                    return Ok(Some(cancelled));
                }
            }
        }
        Err(contended())
    }

    async fn retry(&self, task_id: TaskId) -> Result<Option<Task>> {
        for _ in 0..CONTENDED_TRIES {
            match self.ports.catalog.retry(task_id).await {
                Err(error) if error.kind() == lkr_catalog::ErrorKind::Conflict => {}
                retried => {
                    // A step that failed may have been done all the same.
                    let retried = retried.inspect_err(|_| self.requeue_soon())?;
                    if let Some(task) = &retried {
                        self.queue(std::slice::from_ref(task)).await;
                    }
                    return Ok(retried);
                }
            }
        }
        Err(contended())
    }
}

pub(crate) fn contended() -> Error {
    Error::new(ErrorKind::StoreAway, "write record", "it kept changing meanwhile")
}

fn unknown() -> Error {
    Error::new(ErrorKind::Internal, "submit document", "no task came of it")
}
