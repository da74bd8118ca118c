//! Applies the embedding model that the settings name: a change of it re-embeds all documents.

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use lkr::{
    Creator, KnowledgeBase,
    ports::{
        Embedder, Precision,
        models::{
            AdaptiveBatch, AdaptiveBatchOptions, CallObserver, CircuitBreaker, CircuitBreakerOptions,
            ConcurrencyLimit, Instrumented, Result, Retry, RetryOptions,
        },
    },
};
use lkr_models_remote::{EmbedOptions, HttpEmbedder};
use lkr_outgoing::Outgoing;
use lkr_settings::{ModelEntry, PreviousEmbedder, Settings, Snapshot};
use tokio::{
    sync::{mpsc, oneshot},
    task::AbortHandle,
    time::{sleep, timeout},
};

use crate::remote_models::{MAX_CONCURRENT_CALLS, remote_options};

/// Connects to the embedding model of an entry that names a provider.
pub type ConnectEmbedder =
    Arc<dyn Fn(ModelEntry, Outgoing) -> BoxFuture<'static, Result<Arc<dyn Embedder>>> + Send + Sync>;

/// How long a change of the settings waits for the new model. Usually the model is reached by then, and the response
/// shows the new state.
const CHANGE_WAIT: Duration = Duration::from_secs(2);

/// How long a start waits for the model.
const START_WAIT: Duration = Duration::from_secs(5);

/// How often the settings are read without a request, since another process may have changed them.
const POLL_INTERVAL: Duration = Duration::from_secs(30);

/// The backoff while the model cannot be reached. It doubles with each attempt.
const MIN_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// Keeps the knowledge base on the embedding model that the settings name. Cheap to clone.
#[derive(Debug, Clone)]
pub struct EmbedderReconciler {
    task: Arc<ReconcileTask>,
    unreached: Unreached,
}

/// How calls for queries are repeated. A search waits 10 s for a vector and goes on without it, so a provider that asks for a long
/// pause fails the call at once.
const QUERY_PAUSE: Duration = Duration::from_secs(4);
const QUERY_ELAPSED: Duration = Duration::from_secs(8);

/// The name of the model that the settings name, while it cannot be reached.
type Unreached = Arc<Mutex<Option<String>>>;

#[derive(Debug)]
struct ReconcileTask {
    requests: mpsc::Sender<ChangeRequest>,
    abort: AbortHandle,
}

impl Drop for ReconcileTask {
    fn drop(&mut self) {
        self.abort.abort();
    }
}

/// A user changed the entry of the embedding model.
#[derive(Debug)]
struct ChangeRequest {
    changed_by: Creator,
    /// Sent after the next reconciliation.
    done: oneshot::Sender<()>,
}

impl EmbedderReconciler {
    /// Starts to follow the settings, and waits a little for the model that they name. `local_model` is the folder
    /// of the model in this process, with the numbers of its vectors that are kept.
    pub async fn follow(
        kb: KnowledgeBase,
        settings: Settings,
        outgoing: Outgoing,
        local_model: (PathBuf, Option<usize>),
        connect: ConnectEmbedder,
    ) -> Self {
        let (requests, received) = mpsc::channel(16);
        let (done, first) = oneshot::channel();
        let unreached = Unreached::default();
        let reconciler = ReconcileLoop {
            kb,
            settings,
            outgoing,
            local_model,
            connect,
            applied: None,
            unreached: Arc::clone(&unreached),
        };
        let abort = tokio::spawn(reconciler.run(received, done)).abort_handle();
        if timeout(START_WAIT, first).await.is_err() {
            tracing::warn!("embedding model not reached yet; searches may use keywords alone");
        }
        Self { task: Arc::new(ReconcileTask { requests, abort }), unreached }
    }

    /// The name of the model that the settings name, while it cannot be reached.
    pub(crate) fn unreached(&self) -> Option<String> {
        self.unreached.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reconciles after a user changed the entry, and waits a little for the result.
    pub(crate) async fn changed(&self, changed_by: Creator) {
        let (done, reconciled) = oneshot::channel();
        // If the channel is full, the settings are about to be read anyway.
        if self.task.requests.try_send(ChangeRequest { changed_by, done }).is_ok() {
            // After the timeout, the change continues in the background.
            let _ = timeout(CHANGE_WAIT, reconciled).await;
        }
    }
}

/// Connects to providers over HTTP. `observer` counts the calls of their models.
#[must_use]
pub fn connect(observer: Arc<dyn CallObserver>) -> ConnectEmbedder {
    Arc::new(move |entry, outgoing| connect_decorated(entry, outgoing, Arc::clone(&observer)).boxed())
}

/// The embedding model of an entry, without retries, limits and counting. Asks the model for its dimensions.
pub(crate) async fn connect_plain(entry: &ModelEntry, outgoing: Outgoing) -> Result<HttpEmbedder> {
    HttpEmbedder::connect(outgoing, remote_options(entry)?, EmbedOptions::default()).await
}

/// The embedding model of an entry, with adaptive batches, a circuit breaker, retries, a concurrency limit and call counts. While the
/// circuit is open, nothing is tried again, so that no search waits.
async fn connect_decorated(
    entry: ModelEntry,
    outgoing: Outgoing,
    observer: Arc<dyn CallObserver>,
) -> Result<Arc<dyn Embedder>> {
    let model: Arc<dyn Embedder> = Arc::new(connect_plain(&entry, outgoing).await?);
    let model: Arc<dyn Embedder> = Arc::new(Instrumented::new(model, observer));
    let model: Arc<dyn Embedder> = Arc::new(ConcurrencyLimit::new(model, MAX_CONCURRENT_CALLS));
    let retries =
        RetryOptions { max_backoff: QUERY_PAUSE, max_elapsed: QUERY_ELAPSED, ..RetryOptions::default() };
    let model: Arc<dyn Embedder> = Arc::new(Retry::new(model, retries));
    let model: Arc<dyn Embedder> = Arc::new(CircuitBreaker::new(model, CircuitBreakerOptions::default()));
    Ok(Arc::new(AdaptiveBatch::new(model, AdaptiveBatchOptions::default())))
}

struct ReconcileLoop {
    kb: KnowledgeBase,
    settings: Settings,
    outgoing: Outgoing,
    local_model: (PathBuf, Option<usize>),
    connect: ConnectEmbedder,
    /// The entry that was applied last.
    applied: Option<ModelEntry>,
    unreached: Unreached,
}

impl fmt::Debug for ReconcileLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReconcileLoop").field("applied", &self.applied).finish_non_exhaustive()
    }
}

impl ReconcileLoop {
    /// Reconciles at the start, on each request and at intervals. A request that arrives while a model is being reached
    /// starts the reconciliation again.
    async fn run(mut self, mut requests: mpsc::Receiver<ChangeRequest>, first: oneshot::Sender<()>) {
        let mut changed_by: Option<Creator> = None;
        let mut waiting = vec![first];
        let mut backoff = MIN_BACKOFF;
        loop {
            let result = tokio::select! {
                result = self.reconcile(changed_by.as_ref()) => result,
                Some(request) = requests.recv() => {
                    changed_by = Some(request.changed_by);
                    waiting.push(request.done);
                    continue;
                }
            };
            let pause = match result {
                Ok(()) => {
                    (changed_by, backoff) = (None, MIN_BACKOFF);
                    POLL_INTERVAL
                }
                Err(error) => {
                    tracing::warn!(
                        %error,
                        "cannot switch to the embedding model of the settings; keeping the earlier one"
                    );
                    let longer = (2 * backoff).min(MAX_BACKOFF);
                    std::mem::replace(&mut backoff, longer)
                }
            };
            for done in waiting.drain(..) {
                let _ = done.send(());
            }
            tokio::select! {
                () = sleep(pause) => {}
                request = requests.recv() => {
                    let Some(request) = request else { return };
                    (changed_by, backoff) = (Some(request.changed_by), MIN_BACKOFF);
                    waiting.push(request.done);
                }
            }
        }
    }

    /// Makes the knowledge base use the model that the settings name. A user's change is applied even if the entry is
    /// the same as before: it restarts a re-embedding that was cancelled.
    async fn reconcile(&mut self, changed_by: Option<&Creator>) -> anyhow::Result<()> {
        let snapshot = self.settings.current().await?;
        let entry = &snapshot.settings.models.embed;
        // Without any model, searches use keywords alone, whatever vectors are stored.
        let has_model = entry.provider.is_some() || self.kb.embedder().is_some();
        if has_model && let Err(error) = self.restore_previous().await {
            tracing::warn!(%error, "the model of the live vectors is unavailable; searches use keywords alone");
        }
        if changed_by.is_none() && self.applied.as_ref() == Some(entry) {
            // The settings may have named another model meanwhile.
            self.set_unreached(None);
            return Ok(());
        }
        let embedder = self.embedder(entry).await;
        self.set_unreached(embedder.is_err().then(|| entry.model.clone()));
        let embedder = embedder?;
        if let Some(embedder) = &embedder {
            self.record(&snapshot, &embedder.profile().id).await?;
        }
        // Another process has told the change already that this one only notices, and it may have been cancelled since.
        match changed_by {
            None => self.kb.set_embedder_at_start(embedder).await?,
            Some(by) => self.kb.set_embedder(embedder, by).await?,
        };
        self.applied = Some(entry.clone());
        Ok(())
    }

    /// Connects to the model of the live vectors as an earlier process recorded it: the settings may name another model
    /// by now.
    async fn restore_previous(&self) -> anyhow::Result<()> {
        let live = self.kb.embedding().await?;
        let Some(live) = live.live.filter(|_| !live.live_is_available) else { return Ok(()) };
        let recorded = self.settings.previous_embedders().await?.into_iter().find(|kept| kept.id == live);
        let Some(PreviousEmbedder { entry, folder, dims, .. }) = recorded else { return Ok(()) };
        let embedder = match (&entry.provider, folder) {
            (Some(_), _) => Some((self.connect)(entry, self.outgoing.clone()).await?),
            (None, Some(folder)) => local_embedder(&folder, dims, &live).await?,
            (None, None) => None,
        };
        if let Some(embedder) = embedder.filter(|embedder| embedder.profile().id == live) {
            self.kb.add_embedder(embedder);
        }
        Ok(())
    }

    fn set_unreached(&self, model: Option<String>) {
        *self.unreached.lock().unwrap_or_else(PoisonError::into_inner) = model;
    }

    async fn embedder(&self, entry: &ModelEntry) -> Result<Option<Arc<dyn Embedder>>> {
        match entry.provider {
            None => Ok(self.kb.embedder().cloned()),
            Some(_) => (self.connect)(entry.clone(), self.outgoing.clone()).await.map(Some),
        }
    }

    /// Records how the model was reached, and keeps the record of the model of the live vectors.
    async fn record(&self, snapshot: &Snapshot, id: &str) -> anyhow::Result<()> {
        let (folder, dims) = &self.local_model;
        let local = match snapshot.settings.models.embed.provider {
            None => (Some(folder.display().to_string()), *dims),
            Some(_) => (None, None),
        };
        let live = self.kb.embedding().await?.live.unwrap_or_default();
        Ok(self.settings.store_previous_embedder(snapshot, id, local, &[&live]).await?)
    }
}

/// The model `id` in a folder, of whose vectors `dims` numbers are kept, with the precision that it has by its id.
async fn local_embedder(
    folder: &str,
    dims: Option<usize>,
    id: &str,
) -> lkr::Result<Option<Arc<dyn Embedder>>> {
    for precision in Precision::ALL {
        let embedder = lkr::open_embedder(folder, precision, dims).await?;
        if let Some(embedder) = embedder.filter(|embedder| embedder.profile().id == id) {
            return Ok(Some(embedder));
        }
    }
    Ok(None)
}
