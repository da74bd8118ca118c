use std::sync::Arc;

use lkr_catalog::{Catalog, Deleted, DocumentChange, FIRST_WITH_SPACES, Idempotency, STORE_VERSION, Task};
use lkr_domain::{Clock, Creator, DocId, Document, NewDocument, SpaceName, TaskId};
use lkr_models::{Embedder, EmbedderProfile};
use lkr_state::Write;
use tokio::{runtime::Handle, task::JoinHandle};
use tracing::Instrument;

use crate::{
    Error, ErrorKind, GcPause, IngestOptions, NewFile, Ports, ReembedTrigger, Result, Submission, Workers,
    accept::{accept, accept_one},
    change::change_by_hand,
    collections::live_model,
    delete_where::{self, BulkDelete},
    item::Item,
    lifecycle,
    live_collections::{align_aliases, create_missing},
    move_document::move_document,
    refresh_tags::refresh_tags,
    state::IngestState,
    workers,
};

/// Adds, replaces, changes and deletes documents. Cheap to clone.
///
/// An operation that writes runs to its end even if the caller drops its future.
#[derive(Debug, Clone)]
pub struct Ingestor {
    state: Arc<IngestState>,
}

impl Ingestor {
    /// Opens ingestion over these ports. Creates the collections of the four layers unless they exist, and upgrades a store
    /// of an earlier version, once the processes of that version on it have ended.
    ///
    /// # Errors
    /// `Refused` if the store is of a later version.
    pub async fn open(ports: Ports, options: IngestOptions) -> Result<Self> {
        let version = ports.catalog.version().await?;
        if version < FIRST_WITH_SPACES {
            ports.peers.supersede_earlier().await?;
            // Before the version is raised, so that a crash in between repeats it.
            refresh_tags(&ports).await?;
        }
        upgrade_from(version, &ports).await?;
        let embedder = ports.embedders.embedders().into_iter().next();
        create_missing(&*ports.vectors, &ports.catalog, embedder.as_deref()).await?;
        align_aliases(&*ports.vectors, &ports.catalog).await?;
        if let Some(profile) = embedder.as_deref().map(Embedder::profile)
            && let Some(live) = live_model(&*ports.vectors).await?.filter(|live| *live != profile.id)
        {
            let model = profile.name.as_str();
            tracing::info!(
                model,
                live,
                "searches use another embedding model until all documents are re-embedded"
            );
        }
        Ok(Self::new(ports, options))
    }

    /// Opens ingestion only to accept documents that a later process ingests: creates and drops no collections, which may be
    /// damaged or of an unknown model. Its workers must not be started.
    ///
    /// # Errors
    /// `Refused` if the store is of a later version.
    pub async fn open_to_accept(ports: Ports, options: IngestOptions) -> Result<Self> {
        upgrade_from(ports.catalog.version().await?, &ports).await?;
        Ok(Self::new(ports, options))
    }

    /// Like [`open_to_accept`](Self::open_to_accept), for a store whose records were lost: it gets its version when they are
    /// restored, so that no process opens it before.
    #[must_use]
    pub fn open_without_records(ports: Ports, options: IngestOptions) -> Self {
        Self::new(ports, options)
    }

    fn new(ports: Ports, options: IngestOptions) -> Self {
        Self { state: Arc::new(IngestState::new(ports, options)) }
    }

    /// Accepts a document. On return its text and task are durable, and the task will end.
    ///
    /// Reserved metadata keys are dropped with a warning.
    ///
    /// # Errors
    /// `Invalid` if the text is blank, or the text, title, source or metadata exceeds its limit; `Overloaded` if the queue is
    /// full.
    pub async fn submit(&self, document: NewDocument, submission: Submission) -> Result<Task> {
        self.accept_one(Item::text(document, None)?, submission).await?.ok_or_else(no_task)
    }

    /// Accepts a file whose text was extracted already. On return its text and task are durable, and the task will end. If
    /// the file itself cannot be stored, that is logged, and the task has no original.
    ///
    /// Reserved metadata keys are dropped with a warning.
    ///
    /// # Errors
    /// `Invalid` if the text, title, source or metadata exceeds its limit; `Overloaded` if the queue is full.
    pub async fn submit_file(&self, file: NewFile, submission: Submission) -> Result<Task> {
        self.accept_one(Item::file(file, None)?, submission).await?.ok_or_else(no_task)
    }

    /// Accepts several documents in one step. Returns their tasks in order. Of several that replace the same document, all
    /// but the last are cancelled.
    ///
    /// # Errors
    /// `Invalid` if a document exceeds a limit, see [`submit`](Self::submit); `Overloaded` if the queue has no room for all.
    pub async fn submit_all(
        &self,
        documents: Vec<(NewDocument, Submission)>,
        idempotency: Option<Idempotency>,
    ) -> Result<Vec<Task>> {
        let item = |(document, submission)| Ok((Item::text(document, None)?, submission));
        let items: Vec<_> = documents.into_iter().map(item).collect::<Result<_>>()?;
        let creators = items.iter().map(|(_, submission)| &submission.created_by);
        self.state.queueing.check_room_of("submit documents", creators).await?;
        let state = Arc::clone(&self.state);
        let accepted = spawn(async move { accept(&state, items, idempotency.as_ref()).await }).await?;
        accepted?.ok_or_else(no_task)
    }

    /// Accepts new content and properties for a live document. Searches see either the old or the new revision. An
    /// unfinished replacement is cancelled. `None` if the document is not live.
    ///
    /// # Errors
    /// Those of [`submit`](Self::submit).
    pub async fn replace(
        &self,
        doc_id: DocId,
        document: NewDocument,
        submission: Submission,
    ) -> Result<Option<Task>> {
        self.accept_one(Item::text(document, Some(doc_id))?, submission).await
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
        self.accept_one(Item::file(file, Some(doc_id))?, submission).await
    }

    async fn accept_one(&self, item: Item, submission: Submission) -> Result<Option<Task>> {
        self.state.queueing.check_room_of("submit document", [&submission.created_by]).await?;
        let state = Arc::clone(&self.state);
        spawn(async move { accept_one(&state, item, submission).await }).await?
    }

    /// Deletes a document and cancels its unfinished task. `alongside` is written in the same step, but only if there is
    /// something to delete.
    ///
    /// # Errors
    /// Those of the stores.
    pub async fn delete(&self, doc_id: DocId, alongside: Vec<Write>) -> Result<Deleted> {
        let state = Arc::clone(&self.state);
        spawn(async move { lifecycle::delete(&state, doc_id, alongside).await }).await?
    }

    /// Cancels an unfinished task and removes what it stored. `None` for an unknown task.
    ///
    /// # Errors
    /// `Refused` if the task has ended.
    pub async fn cancel(&self, task_id: TaskId) -> Result<Option<Task>> {
        let state = Arc::clone(&self.state);
        spawn(async move { lifecycle::cancel(&state, task_id).await }).await?
    }

    /// Makes a failed task pending again. It continues with what its earlier attempts stored. `None` for an unknown task.
    ///
    /// # Errors
    /// `Refused` if the task did not fail, was cancelled or superseded, its text is no longer stored, or its space was deleted.
    pub async fn retry(&self, task_id: TaskId) -> Result<Option<Task>> {
        self.state.queueing.check_room("retry task").await?;
        let state = Arc::clone(&self.state);
        spawn(async move { lifecycle::retry(&state, task_id).await }).await?
    }

    /// Discards what the failed tasks of a deleted space keep for their retries.
    ///
    /// # Errors
    /// Those of the stores.
    pub async fn discard_failed(&self, space: &SpaceName) -> Result<()> {
        let (state, space) = (Arc::clone(&self.state), space.clone());
        spawn(async move { lifecycle::discard_failed(&state, &space).await }).await?
    }

    /// Deletes the record of an ended task. `None` for an unknown task.
    ///
    /// # Errors
    /// `Refused` if the task has not ended.
    pub async fn forget(&self, task_id: TaskId) -> Result<Option<Task>> {
        lifecycle::forget(&self.state, task_id).await
    }

    /// Pauses garbage collection in all processes until the returned guard is dropped. Waits for a running collection of this
    /// process.
    ///
    /// # Errors
    /// Those of the state store.
    pub async fn pause_gc(&self) -> Result<GcPause> {
        self.state.gc.pause().await
    }

    /// Changes the properties of a live document without ingesting it again. Returns the changed document; `None` if it is
    /// not live. `alongside` is written in the same step, but only if something changes.
    ///
    /// # Errors
    /// `Invalid` if the document would exceed a limit.
    pub async fn change(
        &self,
        doc_id: DocId,
        change: DocumentChange,
        alongside: Vec<Write>,
    ) -> Result<Option<Document>> {
        let state = Arc::clone(&self.state);
        spawn(async move {
            if moves(&state.ports.catalog, doc_id, &change).await? {
                return move_document(&state, doc_id, &change, alongside).await;
            }
            change_by_hand(&state.ports, &state.changes, doc_id, &change, alongside).await
        })
        .await?
    }

    /// Where the times and ids of tasks come from.
    #[must_use]
    pub fn clock(&self) -> &dyn Clock {
        self.state.ports.catalog.clock()
    }

    /// The writes that accept a task about several documents, for a step that also changes other records. Afterwards,
    /// [`queue_accepted`](Self::queue_accepted) must be called.
    ///
    /// # Errors
    /// `Overloaded` if the queue is full.
    pub async fn writes_to_accept(&self, task: &Task) -> Result<Vec<Write>> {
        self.state.queueing.check_room("accept task").await?;
        Ok(self.state.ports.catalog.corpus_task_writes(task)?)
    }

    /// Queues a task that a step accepted. `is_known` is false if the step failed: it may have been written nevertheless.
    pub async fn queue_accepted(&self, task: &Task, is_known: bool) {
        match is_known {
            true => self.state.queueing.push(std::slice::from_ref(task)).await,
            false => self.state.queueing.requeue_later(),
        }
    }

    /// Accepts a task that classifies all documents again, or those of a space, except those whose category a person chose.
    ///
    /// # Errors
    /// `Overloaded` if the queue is full.
    pub async fn reclassify(&self, space: Option<SpaceName>, created_by: &Creator) -> Result<Task> {
        let task = Task::reclassify(self.clock(), space, created_by.clone());
        self.accept_corpus_task("reclassify", task, Vec::new()).await
    }

    /// Accepts a task that re-embeds all documents with `model`, which must become one of the embedders. Searches use the
    /// previous model until it is done. An unfinished change to another model is cancelled. Returns the task; `None` if
    /// searches use the model already, or `model` is `None`.
    ///
    /// Calling it again with the same model, as at each start, returns the unfinished task.
    ///
    /// # Errors
    /// Those of the stores.
    pub async fn embed_by(
        &self,
        model: Option<&EmbedderProfile>,
        trigger: ReembedTrigger,
    ) -> Result<Option<Task>> {
        let (state, model) = (Arc::clone(&self.state), model.cloned());
        spawn(async move {
            state.model_change.accept(&state.ports, &state.queueing, model.as_ref(), &trigger).await
        })
        .await?
    }

    /// The id of the model whose vectors searches use; `None` if they use words alone.
    ///
    /// # Errors
    /// Those of the vector store.
    pub async fn live_model(&self) -> Result<Option<String>> {
        live_model(&*self.state.ports.vectors).await
    }

    /// Accepts a task that measures the quality of searches against a gold set, in the format of the
    /// [`Evaluator`](crate::Evaluator).
    ///
    /// # Errors
    /// `Overloaded` if the queue is full.
    pub async fn evaluate(&self, gold: Vec<u8>, created_by: &Creator) -> Result<Task> {
        let task = Task::evaluate(self.clock(), created_by.clone());
        let gold = Catalog::put_task_input(task.task_id, gold);
        self.accept_corpus_task("evaluate", task, vec![gold]).await
    }

    /// Accepts a task that deletes the documents that match a filter and that its creator may delete when their turn comes.
    /// Documents that are added later are not deleted.
    ///
    /// # Errors
    /// `Overloaded` if the queue is full.
    pub async fn delete_where(&self, delete: &BulkDelete, created_by: &Creator) -> Result<Task> {
        let task = Task::delete_where(self.clock(), created_by.clone(), delete.key.clone());
        let input = delete_where::encode(&self.state.ports.catalog, delete).await?;
        let input = Catalog::put_task_input(task.task_id, input);
        self.accept_corpus_task("delete documents", task, vec![input]).await
    }

    async fn accept_corpus_task(
        &self,
        operation: &'static str,
        task: Task,
        alongside: Vec<Write>,
    ) -> Result<Task> {
        self.state.queueing.check_room(operation).await?;
        let state = Arc::clone(&self.state);
        spawn(async move { lifecycle::accept_corpus_task(&state, task, alongside).await }).await?
    }

    /// Queues the unfinished tasks of earlier processes, then starts the workers, the janitor and the backfill.
    ///
    /// # Errors
    /// Those of the stores, unless they are merely unavailable.
    pub async fn start(&self) -> Result<Workers> {
        self.start_on(&Handle::current()).await
    }

    /// [`start`](Self::start) on another runtime. Its threads do all that the workers compute.
    ///
    /// # Errors
    /// Those of [`start`](Self::start).
    pub async fn start_on(&self, runtime: &Handle) -> Result<Workers> {
        workers::start(&self.state, runtime).await
    }
}

/// Upgrades a store of this version to that of this program. Processes of an earlier version would go on writing their format
/// meanwhile, so they end before. Other processes of this version may upgrade it too.
async fn upgrade_from(version: u64, ports: &Ports) -> Result<()> {
    if version == STORE_VERSION {
        return Ok(());
    }
    if version < STORE_VERSION {
        ports.peers.supersede_earlier().await?;
    }
    let attempt = || async { Ok::<_, Error>(ports.catalog.upgrade().await?) };
    if let Some(earlier) = ports.catalog.retry_on_conflict("upgrade the store", attempt).await? {
        tracing::debug!(from = earlier, to = STORE_VERSION, "upgraded the store");
    }
    Ok(())
}

/// Whether a change moves a live document to another space.
async fn moves(catalog: &Catalog, doc_id: DocId, change: &DocumentChange) -> Result<bool> {
    let Some(space) = &change.space else { return Ok(false) };
    let document = catalog.document(doc_id).await?;
    Ok(document.is_some_and(|document| document.value.space != *space))
}

/// Spawns work of the current span, which runs to its end even if nobody waits for it.
fn spawn<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(work.in_current_span())
}

fn no_task() -> Error {
    Error::new(ErrorKind::Internal, "submit document", "no task was accepted")
}
