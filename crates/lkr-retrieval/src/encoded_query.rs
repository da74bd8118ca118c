//! What legs ask for: a query's dense vector, which a model makes, and its sparse vector.

use std::sync::Arc;

use lkr_domain::SparseVector;
use lkr_models::{EmbedKind, Embedder};
use tokio::time::timeout;
use tracing::{Instrument, debug_span};

use crate::{LegKind, SearchOptions, warning};

/// A model whose tokenizer yields fewer letters a word piece does not know the query's language. With an English model,
/// English has 2.4 letters a piece or more, medical English 1.6, Chinese and Japanese about 1.05.
/// See docs/studies.md#language-gate.
const MIN_LETTERS_PER_PIECE: f32 = 1.5;

/// A query in the form that the legs understand.
#[derive(Debug, Clone, Default)]
pub(crate) struct EncodedQuery {
    /// The query of the dense legs; `None` if they have no vote.
    pub(crate) dense: Option<DenseQuery>,
    /// The query of the sparse legs; empty if the query has no words.
    pub(crate) sparse: SparseVector,
    /// Warnings for the response.
    pub(crate) warnings: Vec<String>,
    /// Whether a temporary failure left out the dense vector, so that the response must not be cached.
    pub(crate) degraded: bool,
}

/// A query's dense vector.
#[derive(Debug, Clone)]
pub(crate) struct DenseQuery {
    /// The vector.
    pub(crate) vector: Vec<f32>,
    /// The id of the model that made it.
    pub(crate) model: String,
    /// The factor of cosine distances in graded ranks, if it is known. See docs/studies.md#cosine-scale.
    pub(crate) cosine_scale: Option<f32>,
}

/// What makes a query's dense vector.
#[derive(Debug, Clone)]
pub(crate) enum DenseEncoder {
    /// No embedding model is configured.
    NoModel,
    /// No available model made the live vectors; the id of the model that is configured.
    ModelMismatch(String),
    /// The model that made the live vectors.
    Model(Arc<dyn Embedder>),
}

impl DenseEncoder {
    /// The id of the model.
    pub(crate) fn id(&self) -> Option<&str> {
        match self {
            Self::Model(embedder) => Some(&embedder.profile().id),
            Self::ModelMismatch(id) => Some(id),
            Self::NoModel => None,
        }
    }

    /// Whether it is a model that embeds a query within milliseconds.
    pub(crate) fn runs_in_process(&self) -> bool {
        matches!(self, Self::Model(embedder) if embedder.profile().runs_in_process())
    }

    /// Whether it is a model that another process runs.
    pub(crate) fn runs_elsewhere(&self) -> bool {
        matches!(self, Self::Model(embedder) if !embedder.profile().runs_in_process())
    }
}

/// Encodes `query` for the dense legs, unless the options name the sparse ones. If the model fails, the query has no vector.
pub(crate) async fn encode_dense(
    query: &str,
    encoder: &DenseEncoder,
    SearchOptions { only, embed_timeout, .. }: &SearchOptions,
) -> EncodedQuery {
    let only = *only;
    if only == Some(LegKind::Sparse) {
        return EncodedQuery::default();
    }
    let embedder = match encoder {
        DenseEncoder::Model(embedder) => &**embedder,
        DenseEncoder::ModelMismatch(_) => {
            let warnings = vec![warning::MODEL_MISMATCH.to_owned()];
            return EncodedQuery { warnings, degraded: true, ..EncodedQuery::default() };
        }
        DenseEncoder::NoModel => {
            return EncodedQuery { warnings: vec![warning::NO_MODEL.to_owned()], ..EncodedQuery::default() };
        }
    };
    if only.is_none() && !knows_language(embedder, query) {
        return EncodedQuery::default();
    }
    let model = &embedder.profile().id;
    let embedding = embed(embedder, query).instrument(debug_span!("model.embed", texts = 1));
    match timeout(*embed_timeout, embedding).await {
        Ok(Ok(dense)) => return EncodedQuery { dense: Some(dense), ..EncodedQuery::default() },
        Ok(Err(error)) => {
            tracing::warn!(%error, model, "embedding the query failed; searching by keyword only");
        }
        Err(_) => {
            tracing::warn!(model, timeout = ?embed_timeout, "embedding the query timed out; searching by keyword only");
        }
    }
    EncodedQuery {
        warnings: vec![warning::MODEL_FAILED.to_owned()],
        degraded: true,
        ..EncodedQuery::default()
    }
}

fn knows_language(embedder: &dyn Embedder, query: &str) -> bool {
    embedder.letters_per_piece(query).is_none_or(|letters| letters >= MIN_LETTERS_PER_PIECE)
}

async fn embed(embedder: &dyn Embedder, query: &str) -> lkr_models::Result<DenseQuery> {
    let profile = embedder.profile();
    let mut vectors = embedder.embed(EmbedKind::Query, &[query.to_owned()]).await?;
    let vector = vectors.pop().filter(|vector| vector.len() == profile.dims).ok_or_else(|| {
        let reason = format!("the model returned no vector of {} dimensions", profile.dims);
        lkr_models::Error::new(lkr_models::ErrorKind::Internal, "embed query", reason)
    })?;
    Ok(DenseQuery { vector, model: profile.id.clone(), cosine_scale: profile.cosine_scale })
}
