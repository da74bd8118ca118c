//! The embedding model that the settings name: a change of it has all documents embedded anew.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};
use lkr::{
    Creator, KnowledgeBase,
    ports::{
        Embedder,
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

use crate::remote::{AT_ONCE, remote_options};

/// What makes an embedder of an entry that names a provider.
pub type Connect =
    Arc<dyn Fn(ModelEntry, Outgoing) -> BoxFuture<'static, Result<Arc<dyn Embedder>>> + Send + Sync>;

/// How long whoever changes the settings waits for the model to be reached: most often it is, and what is answered
/// then tells how things stand.
const ANSWER_WAIT: Duration = Duration::from_secs(2);

/// How long a start waits for the model to be reached.
const START_WAIT: Duration = Duration::from_secs(5);

/// How often it is looked unasked whether the settings name another model: another process may have changed them.
const ROUND: Duration = Duration::from_secs(30);

/// The pause after a model could not be reached; it doubles with each try.
const PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Sees to it that documents have vectors of the model that the settings name. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Embedders {
    following: Arc<Following>,
}

#[derive(Debug)]
struct Following {
    asks: mpsc::Sender<Ask>,
    task: AbortHandle,
}

impl Drop for Following {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Somebody changed the entry of the embedding model.
#[derive(Debug)]
struct Ask {
    by: Creator,
    seen: oneshot::Sender<()>,
}

impl Embedders {
    /// From now on the settings count. `folder` is that of the model of the process. Waits a little for the model that
    /// they name.
    pub async fn follow(
        kb: KnowledgeBase,
        settings: Settings,
        outgoing: Outgoing,
        folder: PathBuf,
        connect: Connect,
    ) -> Self {
        let (asks, asked) = mpsc::channel(16);
        let (seen, first) = oneshot::channel();
        let follower = Follower { kb, settings, outgoing, folder, connect, applied: None };
        let task = tokio::spawn(follower.run(asked, seen)).abort_handle();
        if timeout(START_WAIT, first).await.is_err() {
            tracing::warn!("the embedding model was not reached yet; searches may go by words alone");
        }
        Self { following: Arc::new(Following { asks, task }) }
    }

    /// Has a change of the entry looked at that somebody made, and waits a little for what comes of it.
    pub(crate) async fn changed(&self, by: Creator) {
        let (seen, done) = oneshot::channel();
        // Where there is no room, the settings are about to be looked at anyway.
        if self.following.asks.try_send(Ask { by, seen }).is_ok() {
            // Where it takes longer, it goes on all the same.
            let _ = timeout(ANSWER_WAIT, done).await;
        }
    }
}

/// What connects to providers; `observer` is told of the calls of their models.
#[must_use]
pub fn connect(observer: Arc<dyn CallObserver>) -> Connect {
    Arc::new(move |entry, outgoing| remote(entry, outgoing, Arc::clone(&observer)).boxed())
}

/// The embedding model of an entry, as it stands; it is asked for the number of dimensions.
pub(crate) async fn reach(entry: &ModelEntry, outgoing: Outgoing) -> Result<HttpEmbedder> {
    HttpEmbedder::connect(outgoing, remote_options(entry)?, EmbedOptions::default()).await
}

/// The embedder of an entry that names a provider, which is asked for the number of dimensions, and from then on for no
/// more than it bears, each call counted.
async fn remote(
    entry: ModelEntry,
    outgoing: Outgoing,
    observer: Arc<dyn CallObserver>,
) -> Result<Arc<dyn Embedder>> {
    let model: Arc<dyn Embedder> = Arc::new(reach(&entry, outgoing).await?);
    let model: Arc<dyn Embedder> = Arc::new(Instrumented::new(model, observer));
    let model: Arc<dyn Embedder> = Arc::new(ConcurrencyLimit::new(model, AT_ONCE));
    let model: Arc<dyn Embedder> = Arc::new(CircuitBreaker::new(model, CircuitBreakerOptions::default()));
    let model: Arc<dyn Embedder> = Arc::new(Retry::new(model, RetryOptions::default()));
    Ok(Arc::new(AdaptiveBatch::new(model, AdaptiveBatchOptions::default())))
}

struct Follower {
    kb: KnowledgeBase,
    settings: Settings,
    outgoing: Outgoing,
    folder: PathBuf,
    connect: Connect,
    /// The entry whose model is wanted now.
    applied: Option<ModelEntry>,
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower").field("applied", &self.applied).finish_non_exhaustive()
    }
}

impl Follower {
    /// Whoever changes the settings while a model is waited for has the next one looked at.
    async fn run(mut self, mut asks: mpsc::Receiver<Ask>, first: oneshot::Sender<()>) {
        let mut asked: Option<Creator> = None;
        let mut waiting = vec![first];
        let mut pause = PAUSE;
        loop {
            let looked = tokio::select! {
                looked = self.look(asked.as_ref()) => Some(looked),
                Some(Ask { by, seen }) = asks.recv() => {
                    asked = Some(by);
                    waiting.push(seen);
                    None
                }
            };
            let next = match looked {
                None => continue,
                Some(Ok(())) => {
                    (asked, pause) = (None, PAUSE);
                    ROUND
                }
                Some(Err(error)) => {
                    tracing::warn!(
                        %error,
                        "the embedding model that the settings name cannot be had; the earlier one stays"
                    );
                    let longer = (2 * pause).min(MAX_PAUSE);
                    std::mem::replace(&mut pause, longer)
                }
            };
            for seen in waiting.drain(..) {
                let _ = seen.send(());
            }
            tokio::select! {
                () = sleep(next) => {}
                ask = asks.recv() => {
                    let Some(Ask { by, seen }) = ask else { return };
                    (asked, pause) = (Some(by), PAUSE);
                    waiting.push(seen);
                }
            }
        }
    }

    /// Has the knowledge base want the model that the settings name, unless it does. What somebody asked for is done also
    /// where the settings are as they were: a change that was cancelled begins anew then.
    async fn look(&mut self, asked: Option<&Creator>) -> anyhow::Result<()> {
        let snapshot = self.settings.current().await?;
        let entry = &snapshot.settings.models.embed;
        // Without a model, searches go by words alone, whatever vectors there are.
        let is_one_named = entry.provider.is_some() || self.kb.embedder().is_some();
        if is_one_named && let Err(error) = self.know_earlier().await {
            tracing::warn!(%error, "the model whose vectors are in use cannot be had; searches go by words alone");
        }
        if asked.is_none() && self.applied.as_ref() == Some(entry) {
            return Ok(());
        }
        let embedder = self.embedder(entry).await?;
        if let Some(embedder) = &embedder {
            self.keep(&snapshot, &embedder.profile().id).await?;
        }
        match (asked, &self.applied) {
            (None, None) => self.kb.start_embedder(embedder).await?,
            (asked, _) => self.kb.set_embedder(embedder, &asked.cloned().unwrap_or_default()).await?,
        };
        self.applied = Some(entry.clone());
        Ok(())
    }

    /// Makes the model known whose vectors are in use, where an earlier process was told of it: the settings may name
    /// another by now.
    async fn know_earlier(&self) -> anyhow::Result<()> {
        let live = self.kb.embedding().await?;
        let Some(live) = live.live.filter(|_| !live.speaks) else { return Ok(()) };
        let kept = self.settings.previous_embedders().await?.into_iter().find(|kept| kept.id == live);
        let Some(PreviousEmbedder { entry, folder, .. }) = kept else { return Ok(()) };
        let made = match (&entry.provider, folder) {
            (Some(_), _) => (self.connect)(entry, self.outgoing.clone()).await.map(Some)?,
            (None, Some(folder)) => lkr::open_embedder(folder).await?,
            (None, None) => None,
        };
        if let Some(embedder) = made.filter(|embedder| embedder.profile().id == live) {
            self.kb.know_embedder(embedder);
        }
        Ok(())
    }

    async fn embedder(&self, entry: &ModelEntry) -> Result<Option<Arc<dyn Embedder>>> {
        match entry.provider {
            None => Ok(self.kb.embedder().cloned()),
            Some(_) => (self.connect)(entry.clone(), self.outgoing.clone()).await.map(Some),
        }
    }

    /// Writes down how a model was reached, beside the one whose vectors are in use.
    async fn keep(&self, snapshot: &Snapshot, id: &str) -> anyhow::Result<()> {
        let folder = self.folder.display().to_string();
        let folder = Some(folder).filter(|_| snapshot.settings.models.embed.provider.is_none());
        let live = self.kb.embedding().await?.live.unwrap_or_default();
        Ok(self.settings.store_previous_embedder(snapshot, id, folder, &[&live]).await?)
    }
}
