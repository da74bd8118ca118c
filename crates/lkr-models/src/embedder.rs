use std::{fmt::Debug, sync::Arc};

use async_trait::async_trait;

use crate::Result;

/// Which side of a search a text is on; models with prefixes treat the two differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EmbedKind {
    /// A query. Latency matters: a query never waits behind passages.
    Query,
    /// A passage to be found.
    Passage,
}

/// What is known of a model without asking it.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbedderProfile {
    /// What tells its vectors apart from any other model's: vectors of different ids are never compared.
    pub id: String,
    /// A name for people.
    pub name: String,
    /// The number of dimensions.
    pub dims: usize,
    /// The longest input in tokens; what lies beyond is not seen.
    pub max_tokens: usize,
    /// How far its cosines spread: the factor of `c₁ − cos` in graded ranks. 30.5 for all-MiniLM-L6-v2; what is seen of
    /// stored vectors counts before it, see [`cosine_scale`](crate::cosine_scale).
    pub cosine_scale: f32,
}

/// Turns texts into unit vectors.
#[async_trait]
pub trait Embedder: Debug + Send + Sync + 'static {
    /// The model's profile.
    fn profile(&self) -> &EmbedderProfile;

    /// The vectors of `texts`, in their order: each of `profile().dims` finite numbers and of length 1.
    ///
    /// A text longer than the model takes is cut at its end. Equal texts have equal vectors. The future may be
    /// dropped at any await.
    async fn embed(&self, kind: EmbedKind, texts: &[String]) -> Result<Vec<Vec<f32>>>;

    /// Letters per word piece of `text`: how well the model's vocabulary covers its language, from about 1 (every
    /// character a piece of its own) to 4 and more. `None` where the model cannot tell.
    fn letters_per_piece(&self, text: &str) -> Option<f32>;
}

/// Names the embedders that can be had, which may be others from one moment to the next.
///
/// Which of them is asked is told by the vectors that are to be searched or stored: an embedder goes with those of its
/// own id and no others. So while documents get the vectors of a new model, that of the old one is named too.
pub trait EmbedderSource: Debug + Send + Sync + 'static {
    /// The embedders that can be had, first the one that all documents should have vectors of; none where there are no
    /// models.
    fn embedders(&self) -> Vec<Arc<dyn Embedder>>;
}

impl dyn EmbedderSource {
    /// The embedder that makes vectors of this id, where it can be had.
    #[must_use]
    pub fn embedder_of(&self, model: &str) -> Option<Arc<dyn Embedder>> {
        self.embedders().into_iter().find(|embedder| embedder.profile().id == model)
    }
}

/// An embedder that stays.
impl EmbedderSource for Arc<dyn Embedder> {
    fn embedders(&self) -> Vec<Arc<dyn Embedder>> {
        vec![Self::clone(self)]
    }
}
