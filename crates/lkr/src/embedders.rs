//! The embedding models of a knowledge base, and changing them.

use std::sync::{Arc, PoisonError, RwLock};

use lkr_catalog::Task;
use lkr_domain::Creator;
use lkr_ingest::ReembedTrigger;
use lkr_models::{Embedder, EmbedderSource};
use tokio::sync::Mutex;

use crate::{KnowledgeBase, Result, error::During, kb::KnowledgeBaseShared};

/// The available embedders: the target, whose vectors all documents are to have, and others whose vectors may be in use
/// until re-embedding is done.
#[derive(Debug, Default)]
pub(crate) struct Embedders {
    set: RwLock<EmbedderSet>,
    /// Serialises changes of the target.
    change_lock: Mutex<()>,
}

#[derive(Debug, Default)]
struct EmbedderSet {
    target: Option<Arc<dyn Embedder>>,
    /// At most one for each model id.
    others: Vec<Arc<dyn Embedder>>,
}

impl Embedders {
    pub(crate) fn new(target: Option<Arc<dyn Embedder>>) -> Self {
        Self { set: RwLock::new(EmbedderSet { target, others: Vec::new() }), change_lock: Mutex::default() }
    }

    pub(crate) fn target(&self) -> Option<Arc<dyn Embedder>> {
        self.set.read().unwrap_or_else(PoisonError::into_inner).target.clone()
    }

    /// Replaces the target. The earlier one joins the others, because its vectors may be in use.
    fn set_target(&self, target: Option<Arc<dyn Embedder>>) {
        let mut set = self.set.write().unwrap_or_else(PoisonError::into_inner);
        let earlier = std::mem::replace(&mut set.target, target);
        earlier.into_iter().for_each(|earlier| set.add(earlier));
    }

    pub(crate) fn add(&self, embedder: Arc<dyn Embedder>) {
        self.set.write().unwrap_or_else(PoisonError::into_inner).add(embedder);
    }

    /// Removes all others but the one of the live model.
    fn retain_live(&self, live: Option<&str>) {
        let mut set = self.set.write().unwrap_or_else(PoisonError::into_inner);
        set.others.retain(|other| Some(other.profile().id.as_str()) == live);
    }
}

impl EmbedderSet {
    fn add(&mut self, embedder: Arc<dyn Embedder>) {
        self.others.retain(|other| other.profile().id != embedder.profile().id);
        self.others.push(embedder);
    }
}

impl EmbedderSource for Embedders {
    fn embedders(&self) -> Vec<Arc<dyn Embedder>> {
        let set = self.set.read().unwrap_or_else(PoisonError::into_inner);
        set.target.iter().chain(&set.others).cloned().collect()
    }
}

/// The target and the live embedding model of a knowledge base.
#[derive(Debug, Clone)]
pub struct EmbeddingStatus {
    /// The model whose vectors all documents are to have.
    pub target: Option<Arc<dyn Embedder>>,
    /// The id of the model whose vectors searches use; `None` if they use keywords only.
    pub live: Option<String>,
    /// Whether the live model is available, so that searches use vectors.
    pub live_is_available: bool,
    /// The name of the live model; `None` if it is not available.
    pub live_name: Option<String>,
}

impl KnowledgeBase {
    /// Re-embeds all documents with another model, as a task. Searches use the vectors of the earlier model until the
    /// task is done, then switch at once. Returns the task, or `None` if searches use this model already. A running
    /// change to a different model is cancelled; a running change to the same model continues.
    ///
    /// With `None` as `embedder`, searches use keywords only from now on; stored vectors are kept.
    pub async fn set_embedder(
        &self,
        embedder: Option<Arc<dyn Embedder>>,
        created_by: &Creator,
    ) -> Result<Option<Task>> {
        self.embed_by(embedder, ReembedTrigger::Actor(created_by.clone())).await
    }

    /// [`set_embedder`](Self::set_embedder) for the model that a program starts with: a change to it that was cancelled
    /// earlier is not started again.
    pub async fn set_embedder_at_start(&self, embedder: Option<Arc<dyn Embedder>>) -> Result<Option<Task>> {
        self.embed_by(embedder, ReembedTrigger::AtStart).await
    }

    /// Adds an embedder whose vectors may be in use. Searches use it until all documents have vectors of the target.
    pub fn add_embedder(&self, embedder: Arc<dyn Embedder>) {
        self.shared.embedders.add(embedder);
    }

    /// The target and the live embedding model.
    pub async fn embedding(&self) -> Result<EmbeddingStatus> {
        let live = self.shared.ingestor.live_model().await.during("read live embedding model")?;
        let embedders: &dyn EmbedderSource = &*self.shared.embedders;
        let live_embedder = live.as_ref().and_then(|live| embedders.embedder_of(live));
        let live_name = live_embedder.map(|embedder| embedder.profile().name.clone());
        Ok(EmbeddingStatus {
            target: self.shared.embedders.target(),
            live,
            live_is_available: live_name.is_some(),
            live_name,
        })
    }

    async fn embed_by(
        &self,
        embedder: Option<Arc<dyn Embedder>>,
        trigger: ReembedTrigger,
    ) -> Result<Option<Task>> {
        let profile = embedder.as_ref().map(|embedder| embedder.profile().clone());
        let KnowledgeBaseShared { embedders, ingestor, .. } = &*self.shared;
        let _guard = embedders.change_lock.lock().await;
        embedders.set_target(embedder);
        let task = ingestor.embed_by(profile.as_ref(), trigger).await.during("change the embedding model")?;
        // From here on only this model can become the live one.
        let live = ingestor.live_model().await.during("change the embedding model")?;
        embedders.retain_live(live.as_deref().filter(|_| profile.is_some()));
        Ok(task)
    }
}
