use std::{fmt::Debug, str::FromStr, sync::Arc};

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

/// The numbers that a model multiplies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Precision {
    /// 32-bit floating point.
    #[default]
    Float32,
    /// Brain floating point, 16 bits: weights and inputs are rounded to 8 leading bits, sums are those of [`Self::Float32`].
    Bf16,
    /// 8-bit integers: weights with a scale for each output, inputs with one for each token.
    Int8,
}

impl Precision {
    /// All precisions.
    pub const ALL: [Self; 3] = [Self::Float32, Self::Bf16, Self::Int8];

    /// The name in options: `float32`, `bf16` or `int8`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Float32 => "float32",
            Self::Bf16 => "bf16",
            Self::Int8 => "int8",
        }
    }
}

impl FromStr for Precision {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|precision| precision.name() == name);
        found.ok_or_else(|| format!("expected one of {}", Self::ALL.map(Self::name).join(", ")))
    }
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
    /// The precision of a model that runs in-process; `None` if it is not known.
    pub precision: Option<Precision>,
}

impl EmbedderProfile {
    /// Whether the model is known to run in this process, so that it embeds a query within milliseconds.
    /// A search then waits for it on a thread of the runtime's blocking pool, so it must not need such a thread itself: while all of
    /// them wait, it would get none.
    #[must_use]
    pub const fn runs_in_process(&self) -> bool {
        self.precision.is_some()
    }
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
