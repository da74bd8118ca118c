//! Context for a language model: the best passages for a question within a budget of tokens.

mod expand;
mod material;
mod pack;
mod passages;
mod render;
mod response;

use std::{ops::RangeInclusive, sync::Arc, time::Instant};

use lkr_catalog::Texts;
use lkr_domain::Scope;
use tokio::task::spawn_blocking;
use tracing::{Instrument, debug_span};

use crate::{
    Error, Fusion, Mode, Result, SearchFilters, SearchRequest, SearchStage,
    pipeline::{Found, find},
    searcher::{Searcher, elapsed_ms},
    validated_request::ValidatedRequest,
    warning,
};
use material::Material;
use passages::{ReadError, run_texts};

pub use response::{ContextPassage, ContextResponse};

const MAX_TOKENS: RangeInclusive<usize> = 50..=32_000;
/// The chunks that are considered, best first.
const CANDIDATES: usize = 100;
/// How often a context is made again because a document changed meanwhile.
const MAX_ATTEMPTS: usize = 3;

/// A request for context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextRequest {
    /// The question: 1 to 2,000 code points, without surrounding white space.
    pub query: String,
    /// The most tokens of the text: 50 to 32,000.
    pub max_tokens: usize,
    /// The spaces that are searched. Documents of other spaces affect nothing in the response.
    pub scope: Scope,
    /// Which documents of the scope are searched.
    pub filters: SearchFilters,
    /// Which layers are searched.
    pub mode: Mode,
    /// How the legs are fused.
    pub fusion: Fusion,
    /// Whether a reranker orders the best candidates again, as in [`SearchRequest::rerank`].
    pub rerank: Option<bool>,
}

impl Default for ContextRequest {
    fn default() -> Self {
        let SearchRequest { query, scope, filters, mode, fusion, rerank, .. } = SearchRequest::default();
        Self { query, max_tokens: 2_000, scope, filters, mode, fusion, rerank }
    }
}

impl ContextRequest {
    /// A request for `query` with default values otherwise.
    #[must_use]
    pub fn new(query: impl Into<String>) -> Self {
        Self { query: query.into(), ..Self::default() }
    }

    /// Checks all bounds.
    ///
    /// # Errors
    /// `Invalid`, with the first key that is out of bounds.
    pub fn validate(&self) -> Result<()> {
        self.search().validate()?;
        if MAX_TOKENS.contains(&self.max_tokens) {
            return Ok(());
        }
        let (low, high) = (MAX_TOKENS.start(), MAX_TOKENS.end());
        let reason = format!("max_tokens is out of bounds: {}, {low} to {high} are allowed", self.max_tokens);
        Err(Error::invalid(reason))
    }

    /// The search for the passages.
    fn search(&self) -> SearchRequest {
        let Self { query, max_tokens: _, scope, filters, mode, fusion, rerank } = self.clone();
        let default = SearchRequest::default();
        SearchRequest { query, top_k: CANDIDATES, scope, filters, mode, fusion, rerank, ..default }
    }
}

impl Searcher {
    /// The best passages for a question within a budget of tokens: the best chunks of a search, completed by the rest of
    /// their sections and by their neighbours as far as the budget allows. See docs/studies.md#context.
    ///
    /// `texts` holds the extracted texts of the documents. The future may be dropped at any await.
    ///
    /// # Errors
    /// Those of [`search`](Self::search), `Overloaded` if too many texts are being read for contexts, and `Corrupt` if the text of
    /// a document is damaged. If texts are unavailable, chunks that follow one another are passages of their own, and a warning
    /// says so.
    pub async fn context(&self, request: &ContextRequest, texts: &Texts) -> Result<ContextResponse> {
        request.validate()?;
        let search = ValidatedRequest::new(&request.search())?;
        let max_tokens = request.max_tokens;
        let span = debug_span!("context", max_tokens, query_chars = search.query.chars().count());
        self.complete_context(&search, max_tokens, texts).instrument(span).await
    }

    async fn complete_context(
        &self,
        search: &ValidatedRequest,
        max_tokens: usize,
        texts: &Texts,
    ) -> Result<ContextResponse> {
        let started = Instant::now();
        let mut attempts = MAX_ATTEMPTS;
        loop {
            attempts -= 1;
            let mut found = find(&self.state, &self.sources, search.clone()).await?;
            let mut profile = std::mem::take(&mut found.profile);
            let attempt = self.attempt(search, max_tokens, found, texts, attempts == 0);
            if let Some(response) = profile.measure(SearchStage::Assemble, attempt).await? {
                return Ok(ContextResponse { took_ms: elapsed_ms(started), profile, ..response });
            }
        }
    }

    /// Makes the context of what was found; `None` if a document changed since, unless it is the last attempt.
    async fn attempt(
        &self,
        search: &ValidatedRequest,
        max_tokens: usize,
        found: Found,
        texts: &Texts,
        is_last: bool,
    ) -> Result<Option<ContextResponse>> {
        let Found { retrieved, marks, mut warnings, .. } = found;
        let material = Material::read(&*self.state.vectors, retrieved, marks, max_tokens).await?;
        let material = Arc::new(material);
        let packed = Arc::clone(&material);
        let pieces = spawn_blocking(move || pack::pack(&packed, max_tokens)).await?;
        let texts = match run_texts(&material, &pieces, &self.state, texts).await {
            Ok(texts) => Some(texts),
            Err(ReadError::Overloaded(error)) => return Err(error),
            Err(ReadError::Text(_, error)) if error.is_retryable() => {
                tracing::warn!(%error, "reading texts failed; the passages of a context are not merged");
                warnings.push(warning::NOT_MERGED.to_owned());
                None
            }
            Err(ReadError::Text(doc_id, error)) => {
                let current = self.state.catalog.document(doc_id).await?;
                let revision = material.documents.get(&doc_id).map(|document| document.revision);
                let is_unchanged = current.map(|current| current.value.revision) == revision;
                return if is_unchanged || is_last { Err(error.into()) } else { Ok(None) };
            }
        };
        if pieces.is_empty() && !material.candidates.is_empty() {
            warnings.push(warning::CONTEXT_BUDGET_TOO_SMALL.to_owned());
        }
        let rendered =
            spawn_blocking(move || render::render(&material, pieces, texts.as_ref(), max_tokens)).await?;
        let query = search.query.clone();
        let render::Rendered { text, tokens, passages } = rendered;
        let response =
            ContextResponse { query, text, tokens, passages, warnings, ..ContextResponse::default() };
        Ok(Some(response))
    }
}
