use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use lkr_models::{ErrorKind, Reranker, RerankerProfile, Result};
use lkr_outgoing::Outgoing;
use serde::{Deserialize, Serialize};

use crate::{RemoteOptions, error, provider::Provider};

const PATH: &str = "/rerank";

/// The passages that a search has scored: TEI's default for the largest batch. See docs/studies.md#reranking.
const CANDIDATES: usize = 32;

/// A reranker behind the rerank API that vLLM, TEI, Jina and other servers implement.
#[derive(Debug)]
pub struct HttpReranker {
    profile: RerankerProfile,
    provider: Provider,
    limits: Mutex<LearnedLimits>,
}

/// What earlier calls learned about the provider.
#[derive(Debug, Clone, Copy)]
struct LearnedLimits {
    /// The request format that it accepts; `None` before the first success.
    format: Option<RequestFormat>,
    /// The largest batch of passages that it accepts.
    batch_size: usize,
}

/// The field of a request that contains the passages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestFormat {
    /// `documents`, as in most servers.
    Documents,
    /// `texts`, as in TEI.
    Texts,
}

impl HttpReranker {
    /// Creates a client of the reranker in `options`. Sends no request.
    ///
    /// # Errors
    /// `Config` if the policy forbids the address, or the key is not a valid header value.
    pub fn new(outgoing: Outgoing, options: RemoteOptions) -> Result<Self> {
        let RemoteOptions { base_url, model, .. } = &options;
        let name = if model.is_empty() { "reranker".to_owned() } else { model.clone() };
        let profile = RerankerProfile { id: format!("{base_url} {model}"), name, candidates: CANDIDATES };
        let provider = Provider::new(outgoing, options)?;
        let limits = LearnedLimits { format: None, batch_size: usize::MAX };
        Ok(Self { profile, provider, limits: Mutex::new(limits) })
    }

    fn limits(&self) -> MutexGuard<'_, LearnedLimits> {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Scores one batch in the request format that the provider accepts.
    async fn rerank_batch(&self, query: &str, passages: &[String]) -> Result<Vec<f32>> {
        let learned = self.limits().format;
        let first = learned.unwrap_or(RequestFormat::Documents);
        let result = match self.call(first, query, passages).await {
            // The provider may accept the other format. If it does not, the first error is the relevant one.
            Err(error) if learned.is_none() && error.kind() == ErrorKind::Input => {
                let second = self.call(RequestFormat::Texts, query, passages).await;
                second.map(|scores| (RequestFormat::Texts, scores)).map_err(|_| error)
            }
            result => result.map(|scores| (first, scores)),
        };
        let (format, scores) = result?;
        self.limits().format = Some(format);
        Ok(scores)
    }

    async fn call(&self, format: RequestFormat, query: &str, passages: &[String]) -> Result<Vec<f32>> {
        let model = self.provider.options().model.as_str();
        let response: RerankResponse = match format {
            RequestFormat::Documents => {
                let top_n = passages.len();
                let body =
                    DocumentsRequest { model, query, documents: passages, top_n, return_documents: false };
                self.post(&body, passages).await?
            }
            RequestFormat::Texts => {
                self.post(&TextsRequest { query, texts: passages, truncate: true }, passages).await?
            }
        };
        let (RerankResponse::Named { results } | RerankResponse::Bare(results)) = response;
        scores_by_index(&results, passages.len())
    }

    async fn post(&self, body: &(impl Serialize + Sync), passages: &[String]) -> Result<RerankResponse> {
        // Some servers repeat the passages in the response.
        let bytes = passages.iter().map(|passage| passage.len().saturating_mul(4)).sum();
        self.provider.post(PATH, body, bytes).await.map_err(|failure| failure.error)
    }
}

#[async_trait]
impl Reranker for HttpReranker {
    fn profile(&self) -> &RerankerProfile {
        &self.profile
    }

    async fn rerank(&self, query: &str, passages: &[String]) -> Result<Vec<f32>> {
        let mut batch_size = self.limits().batch_size;
        let mut scores = Vec::with_capacity(passages.len());
        while let Some(rest) = passages.get(scores.len()..).filter(|rest| !rest.is_empty()) {
            let batch = rest.get(..batch_size).unwrap_or(rest);
            match self.rerank_batch(query, batch).await {
                Ok(more) => scores.extend(more),
                Err(error) if error.kind() == ErrorKind::TooLarge && batch.len() > 1 => {
                    batch_size = batch.len() / 2;
                }
                Err(error) => return Err(error),
            }
        }
        // If a passage was refused alone, it or the query was too long; this says nothing about the batch size.
        let mut limits = self.limits();
        limits.batch_size = limits.batch_size.min(batch_size);
        drop(limits);
        Ok(scores)
    }
}

#[derive(Serialize)]
struct DocumentsRequest<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    model: &'a str,
    query: &'a str,
    documents: &'a [String],
    top_n: usize,
    return_documents: bool,
}

#[derive(Serialize)]
struct TextsRequest<'a> {
    query: &'a str,
    texts: &'a [String],
    /// Whether passages that are too long are truncated instead of refused.
    truncate: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RerankResponse {
    Named {
        #[serde(alias = "data")]
        results: Vec<ScoredIndex>,
    },
    Bare(Vec<ScoredIndex>),
}

#[derive(Deserialize)]
struct ScoredIndex {
    index: usize,
    #[serde(alias = "score")]
    relevance_score: f32,
}

/// The scores in the order of their passages. Each passage must have exactly one finite score.
fn scores_by_index(results: &[ScoredIndex], passages: usize) -> Result<Vec<f32>> {
    let mut scores = vec![None; passages];
    for ScoredIndex { index, relevance_score } in results {
        let score = scores.get_mut(*index).filter(|score| score.is_none()).ok_or_else(|| {
            let reason = "index of a score is out of range or repeated";
            error::invalid_response(format_args!("{reason}: {index} of {passages} passages"))
        })?;
        *score = relevance_score.is_finite().then_some(*relevance_score);
    }
    let missing =
        || error::invalid_response(format_args!("not each of {passages} passages has a finite score"));
    scores.into_iter().collect::<Option<_>>().ok_or_else(missing)
}
