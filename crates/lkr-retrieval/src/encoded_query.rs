//! What a query says to the legs: its vector and its terms.

use std::sync::Arc;

use lkr_domain::SparseVector;
use lkr_models::{EmbedKind, Embedder};
use tokio::time::timeout;

use crate::{LegKind, SearchOptions, warning};

/// Below so many letters a word piece, the model does not speak the query's language: English has 2.4 and more,
/// medical English 1.6, Chinese and Japanese about 1.05 with an English model. Found by experiment, see docs.
const MIN_LETTERS_PER_PIECE: f32 = 1.5;

/// What a query says to the legs.
#[derive(Debug, Clone, Default)]
pub(crate) struct EncodedQuery {
    /// What the dense legs are asked; `None` where they have no vote.
    pub(crate) dense: Option<Dense>,
    /// What the sparse legs are asked; empty where the query has no words.
    pub(crate) sparse: SparseVector,
    /// What the reader should know.
    pub(crate) warnings: Vec<String>,
    /// Whether the same query might say more a moment later.
    pub(crate) passing: bool,
}

/// A query's vector.
#[derive(Debug, Clone)]
pub(crate) struct Dense {
    /// The vector.
    pub(crate) vector: Vec<f32>,
    /// The id of the model that made it.
    pub(crate) model: String,
    /// How far the model's cosines spread: what it states, until what was found out takes its place.
    pub(crate) cosine_scale: f32,
}

/// Who makes a query's vector.
#[derive(Debug, Clone)]
pub(crate) enum Speaker {
    /// There are no models.
    Nobody,
    /// There is none for the vectors that are stored; the id of another.
    ModelMismatch(String),
    /// The model of the vectors that are stored.
    Model(Arc<dyn Embedder>),
}

impl Speaker {
    /// The id of the model.
    pub(crate) fn id(&self) -> Option<&str> {
        match self {
            Self::Model(embedder) => Some(&embedder.profile().id),
            Self::ModelMismatch(id) => Some(id),
            Self::Nobody => None,
        }
    }
}

/// Gives `query` its voice, or the one half of it that is wanted. A model that fails leaves the keywords.
pub(crate) async fn voice(
    query: &str,
    sparse: SparseVector,
    speaker: &Speaker,
    SearchOptions { only, embed_wait, .. }: &SearchOptions,
) -> EncodedQuery {
    let only = *only;
    let sparse = if only == Some(LegKind::Dense) { SparseVector::default() } else { sparse };
    let silent = EncodedQuery { sparse, ..EncodedQuery::default() };
    if only == Some(LegKind::Sparse) {
        return silent;
    }
    let embedder = match speaker {
        Speaker::Model(embedder) => &**embedder,
        Speaker::ModelMismatch(_) => {
            return EncodedQuery {
                warnings: vec![warning::NOT_EMBEDDED.to_owned()],
                passing: true,
                ..silent
            };
        }
        Speaker::Nobody => return EncodedQuery { warnings: vec![warning::NO_MODEL.to_owned()], ..silent },
    };
    if only.is_none() && !speaks(embedder, query) {
        return silent;
    }
    match timeout(*embed_wait, embed(embedder, query)).await {
        Ok(Ok(dense)) => return EncodedQuery { dense: Some(dense), ..silent },
        Ok(Err(error)) => tracing::warn!(%error, "the query could not be embedded"),
        Err(_) => tracing::warn!("the query was not embedded in time"),
    }
    EncodedQuery { warnings: vec![warning::MODEL_FAILED.to_owned()], passing: true, ..silent }
}

fn speaks(embedder: &dyn Embedder, query: &str) -> bool {
    embedder.letters_per_piece(query).is_none_or(|letters| letters >= MIN_LETTERS_PER_PIECE)
}

async fn embed(embedder: &dyn Embedder, query: &str) -> lkr_models::Result<Dense> {
    let profile = embedder.profile();
    let mut vectors = embedder.embed(EmbedKind::Query, &[query.to_owned()]).await?;
    let vector = vectors.pop().filter(|vector| vector.len() == profile.dims).ok_or_else(|| {
        let reason = format!("the model answered no vector of {} dimensions", profile.dims);
        lkr_models::Error::new(lkr_models::ErrorKind::Internal, "embed query", reason)
    })?;
    Ok(Dense { vector, model: profile.id.clone(), cosine_scale: profile.cosine_scale })
}
