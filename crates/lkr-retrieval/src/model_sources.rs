//! The sources of the models that a searcher uses. Each is consulted at every search, so that a change of the
//! configuration takes effect from the next search.

use std::sync::Arc;

use lkr_domain::Layer;
use lkr_models::{ChatModelSource, ChatPurpose, EmbedderSource, RerankerSource};

use crate::{
    Result, SearchRequest, encoded_query::DenseEncoder, rerank::Reranking, searcher_state::SearcherState,
    summary::Summarizer,
};

/// The sources of models; `None` for kinds that are not configured.
#[derive(Debug, Clone, Default)]
pub(crate) struct ModelSources {
    pub(crate) embedders: Option<Arc<dyn EmbedderSource>>,
    pub(crate) rerankers: Option<Arc<dyn RerankerSource>>,
    pub(crate) chat_models: Option<Arc<dyn ChatModelSource>>,
}

impl ModelSources {
    /// The encoder whose model made the live vectors.
    pub(crate) async fn dense_encoder(&self, state: &SearcherState) -> Result<DenseEncoder> {
        let Some(embedders) = &self.embedders else { return Ok(DenseEncoder::NoModel) };
        let Some(configured) = embedders.embedders().into_iter().next() else {
            return Ok(DenseEncoder::NoModel);
        };
        let live = state.vectors.describe(&Layer::Chunks.into()).await?;
        let model = live.and_then(|live| live.dense).map(|dense| dense.model);
        let Some(embedder) = model.and_then(|model| embedders.embedder_of(&model)) else {
            return Ok(DenseEncoder::ModelMismatch(configured.profile().id.clone()));
        };
        Ok(DenseEncoder::Model(embedder))
    }

    /// The reranking of `request`.
    pub(crate) async fn reranking(&self, request: &SearchRequest, state: &SearcherState) -> Reranking {
        let Some(source) = self.rerankers.as_ref().filter(|_| request.rerank != Some(false)) else {
            return Reranking::Off;
        };
        let timeout = state.options.rerank_timeout;
        match source.reranker().await {
            Ok(Some(reranker)) if state.is_cooling_down(&reranker.profile().id) => Reranking::Unavailable,
            Ok(reranker) => reranker.map_or(Reranking::Off, |model| Reranking::Model(model, timeout)),
            Err(error) => {
                tracing::warn!(%error, "opening the reranker failed; results are not reranked");
                Reranking::Unavailable
            }
        }
    }

    /// The summarizer of `request`; `None` if it wants no summary.
    pub(crate) async fn summarizer(&self, request: &SearchRequest) -> Option<Summarizer> {
        if !request.summarize {
            return None;
        }
        let Some(source) = &self.chat_models else { return Some(Summarizer::Extractive) };
        Some(match source.chat_model(ChatPurpose::Summarize).await {
            Ok(model) => model.map_or(Summarizer::Extractive, Summarizer::Model),
            Err(error) => {
                tracing::warn!(%error, "opening the language model failed; the summary is extractive");
                Summarizer::Unavailable
            }
        })
    }
}
