use std::{fmt::Debug, sync::Arc};

use async_trait::async_trait;

use crate::Result;

/// The role of a text in search. Models with instruction prefixes treat the two differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EmbedKind {
    /// A query. Latency matters: a query never waits behind passages.
    Query,
    /// A passage that queries search for.
    Passage,
}

/// The static properties of an embedding model.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbedderProfile {
    /// Identifies the vector space: vectors of different ids are never compared.
    pub id: String,
    /// The display name.
    pub name: String,
    /// The number of dimensions.
    pub dims: usize,
    /// The longest input in tokens; text beyond it is ignored.
    pub max_tokens: usize,
    /// The factor of `c₁ − cos` in graded ranks, if it is known; 30.5 for all-MiniLM-L6-v2. Otherwise it is measured, see
    /// [`cosine_scale`](crate::cosine_scale()).
    pub cosine_scale: Option<f32>,
}

/// Turns texts into unit vectors.
#[async_trait]
pub trait Embedder: Debug + Send + Sync + 'static {
    /// The model's profile.
    fn profile(&self) -> &EmbedderProfile;

    /// The vectors of `texts`, in the same order: each has `profile().dims` finite components and length 1.
    ///
    /// A text that exceeds the model's limit is truncated at its end. Equal texts have equal vectors. The future is
    /// safe to drop at any await point.
    async fn embed(&self, kind: EmbedKind, texts: &[String]) -> Result<Vec<Vec<f32>>>;

    /// Letters per word piece of `text`, a measure of how well the model's vocabulary covers its language: from about 1
    /// (each character is a piece) to 4 and more. `None` if unknown.
    fn letters_per_piece(&self, text: &str) -> Option<f32>;
}

/// Lists the available embedders, which may change at any time.
///
/// The id that the stored vectors carry selects the embedder. So during a re-embedding both the new model and the old
/// one are listed.
pub trait EmbedderSource: Debug + Send + Sync + 'static {
    /// The available embedders. The first is the one whose vectors all documents should have. Empty if there is no
    /// model.
    fn embedders(&self) -> Vec<Arc<dyn Embedder>>;
}

impl dyn EmbedderSource {
    /// The embedder with this id, if it is available.
    #[must_use]
    pub fn embedder_of(&self, model: &str) -> Option<Arc<dyn Embedder>> {
        self.embedders().into_iter().find(|embedder| embedder.profile().id == model)
    }
}

/// A source with one fixed embedder.
impl EmbedderSource for Arc<dyn Embedder> {
    fn embedders(&self) -> Vec<Arc<dyn Embedder>> {
        vec![Self::clone(self)]
    }
}
