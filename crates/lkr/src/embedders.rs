//! The embedding models in force, and changing them.

use std::sync::{Arc, PoisonError, RwLock};

use lkr_catalog::Task;
use lkr_domain::Creator;
use lkr_ingest::ReembedTrigger;
use lkr_models::{Embedder, EmbedderSource};
use tokio::sync::Mutex;

use crate::{KnowledgeBase, Result, error::During, kb::Parts};

/// The embedders that can be had: the one that all documents are to have vectors of, and those whose vectors may be in
/// use until they do.
#[derive(Debug, Default)]
pub(crate) struct Embedders {
    known: RwLock<Known>,
    /// Changes go one after another.
    changing: Mutex<()>,
}

#[derive(Debug, Default)]
struct Known {
    wanted: Option<Arc<dyn Embedder>>,
    /// Of one id each.
    others: Vec<Arc<dyn Embedder>>,
}

impl Embedders {
    pub(crate) fn new(wanted: Option<Arc<dyn Embedder>>) -> Self {
        Self { known: RwLock::new(Known { wanted, others: Vec::new() }), changing: Mutex::default() }
    }

    /// The one that all documents are to have vectors of.
    pub(crate) fn wanted(&self) -> Option<Arc<dyn Embedder>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).wanted.clone()
    }

    /// Has `wanted` in the place of the earlier one, which stays known beside those whose vectors may be in use.
    fn want(&self, wanted: Option<Arc<dyn Embedder>>) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let earlier = std::mem::replace(&mut known.wanted, wanted);
        earlier.into_iter().for_each(|earlier| known.add(earlier));
    }

    pub(crate) fn know(&self, embedder: Arc<dyn Embedder>) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).add(embedder);
    }

    /// Forgets those but for the wanted one that are not of the model in use.
    fn forget_but(&self, live: Option<&str>) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.others.retain(|other| Some(other.profile().id.as_str()) == live);
    }
}

impl Known {
    fn add(&mut self, embedder: Arc<dyn Embedder>) {
        self.others.retain(|other| other.profile().id != embedder.profile().id);
        self.others.push(embedder);
    }
}

impl EmbedderSource for Embedders {
    fn embedders(&self) -> Vec<Arc<dyn Embedder>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.wanted.iter().chain(&known.others).cloned().collect()
    }
}

/// The embedding models of a knowledge base.
#[derive(Debug, Clone)]
pub struct Embedding {
    /// The one that all documents are to have vectors of.
    pub wanted: Option<Arc<dyn Embedder>>,
    /// The id of the one whose vectors searches use; `None` where they go by words alone.
    pub live: Option<String>,
    /// Whether that one can be had, so that searches go by meaning too.
    pub speaks: bool,
    /// The name of the one that searches go by; `None` where they go by words alone.
    pub live_name: Option<String>,
}

impl KnowledgeBase {
    /// Has all documents get vectors of another model, as a task: searches use the earlier one's until all have them,
    /// then switch at once. Answers the task, or `None` where searches use this model already. The change to yet another
    /// model that is under way ends as cancelled, and the same one goes on.
    ///
    /// With `None`, searches go by words alone from now on; what is stored stays.
    pub async fn set_embedder(
        &self,
        embedder: Option<Arc<dyn Embedder>>,
        created_by: &Creator,
    ) -> Result<Option<Task>> {
        self.embed_by(embedder, ReembedTrigger::Actor(created_by.clone())).await
    }

    /// [`set_embedder`](Self::set_embedder) for the model that a program starts with: where the change to it was
    /// cancelled, that stays so.
    pub async fn start_embedder(&self, embedder: Option<Arc<dyn Embedder>>) -> Result<Option<Task>> {
        self.embed_by(embedder, ReembedTrigger::AtStart).await
    }

    /// Makes an embedder known whose vectors may be in use, so that searches have it until all documents have vectors
    /// of the one that is wanted.
    pub fn know_embedder(&self, embedder: Arc<dyn Embedder>) {
        self.parts.embedders.know(embedder);
    }

    /// The embedding models in force.
    pub async fn embedding(&self) -> Result<Embedding> {
        let live = self.parts.ingestor.live_model().await.during("look at models")?;
        let embedders: &dyn EmbedderSource = &*self.parts.embedders;
        let speaking = live.as_ref().and_then(|live| embedders.embedder_of(live));
        let live_name = speaking.map(|speaking| speaking.profile().name.clone());
        Ok(Embedding { wanted: self.parts.embedders.wanted(), live, speaks: live_name.is_some(), live_name })
    }

    async fn embed_by(
        &self,
        embedder: Option<Arc<dyn Embedder>>,
        asked: ReembedTrigger,
    ) -> Result<Option<Task>> {
        let profile = embedder.as_ref().map(|embedder| embedder.profile().clone());
        let Parts { embedders, ingestor, .. } = &*self.parts;
        let _changing = embedders.changing.lock().await;
        embedders.want(embedder);
        let task = ingestor.embed_by(profile.as_ref(), asked).await.during("change the embedding model")?;
        // From here on no other model than this one can come into use.
        let live = ingestor.live_model().await.during("change the embedding model")?;
        embedders.forget_but(live.as_deref().filter(|_| profile.is_some()));
        Ok(task)
    }
}
