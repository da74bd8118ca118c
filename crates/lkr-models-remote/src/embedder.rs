use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use lkr_models::{EmbedKind, Embedder, EmbedderProfile, Error, ErrorKind, Result};
use lkr_outgoing::Outgoing;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    EmbedOptions, RemoteOptions, error,
    provider::Provider,
    truncate::{estimate_tokens, truncate},
};

const PATH: &str = "/embeddings";

/// The text that is embedded to learn the number of dimensions.
const PROBE: &str = "a short text to embed";
/// More dimensions than any model has; bounds the first response.
const MAX_DIMS: usize = 65_536;
/// The most bytes of a number in a JSON vector.
const NUMBER_BYTES: usize = 32;
/// How often a text that is still too long is halved.
const MAX_HALVINGS: u32 = 4;

/// An embedding model behind the API of OpenAI, which Ollama, llama.cpp, vLLM, TEI and many other servers implement.
#[derive(Debug)]
pub struct HttpEmbedder {
    profile: EmbedderProfile,
    provider: Provider,
    options: EmbedOptions,
    /// The largest batch, in texts. It shrinks if the provider refuses it.
    batch_size: Mutex<usize>,
}

impl HttpEmbedder {
    /// Creates a client of the model in `remote`. Sends one request to learn the number of dimensions.
    ///
    /// # Errors
    /// `Config` if the policy forbids the address, or the key is not a valid header value; otherwise as `embed`.
    pub async fn connect(outgoing: Outgoing, remote: RemoteOptions, options: EmbedOptions) -> Result<Self> {
        let mut embedder = Self::with_dims(outgoing, remote, options, 0)?;
        let vectors = embedder.call(&[PROBE.to_owned()]).await?;
        let dims = vectors.first().map_or(0, Vec::len);
        embedder.profile.id = model_id(embedder.provider.options(), &embedder.options, dims);
        embedder.profile.dims = dims;
        Ok(embedder)
    }

    /// Creates a client of the model in `remote` with a known number of dimensions. Sends no request.
    ///
    /// # Errors
    /// `Config` if the policy forbids the address, or the key is not a valid header value.
    pub fn with_dims(
        outgoing: Outgoing,
        remote: RemoteOptions,
        options: EmbedOptions,
        dims: usize,
    ) -> Result<Self> {
        let profile = EmbedderProfile {
            id: model_id(&remote, &options, dims),
            name: if remote.model.is_empty() { "embedding model" } else { &remote.model }.to_owned(),
            dims,
            max_tokens: options.max_tokens.max(1),
            cosine_scale: options.cosine_scale,
            precision: None,
        };
        let batch_size = Mutex::new(options.batch_texts.max(1));
        Ok(Self { profile, provider: Provider::new(outgoing, remote)?, options, batch_size })
    }

    /// A text as it is sent: prefixed, truncated, and never empty, because some providers refuse empty texts.
    fn prepare(&self, kind: EmbedKind, text: &str) -> String {
        let prefix = match kind {
            EmbedKind::Query => &self.options.query_prefix,
            EmbedKind::Passage => &self.options.passage_prefix,
        };
        let text = format!("{prefix}{text}");
        match truncate(&text, self.profile.max_tokens) {
            "" => " ".to_owned(),
            kept => kept.to_owned(),
        }
    }

    /// The first texts that fit into one request by number and estimated tokens; at least one.
    fn next_batch<'a>(&self, texts: &'a [String], batch_size: usize) -> &'a [String] {
        let mut tokens_left = self.options.batch_tokens;
        let fits = |text: &&String| {
            let remaining = tokens_left.checked_sub(estimate_tokens(text));
            tokens_left = remaining.unwrap_or(tokens_left);
            remaining.is_some()
        };
        let count = texts.iter().take(batch_size).take_while(fits).count().max(1);
        texts.get(..count).unwrap_or(texts)
    }

    /// The vectors of prepared texts. A batch that the provider refuses is halved: providers tell in many words that it has too
    /// many texts. A text that is refused alone is refused for itself.
    async fn embed_prepared(&self, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        let learned = *self.batch_size();
        let (mut batch_size, mut has_shortened_text) = (learned, false);
        let mut vectors = Vec::with_capacity(texts.len());
        while let Some(rest) = texts.get(vectors.len()..).filter(|rest| !rest.is_empty()) {
            let batch = self.next_batch(rest, batch_size);
            match (self.call(batch).await, batch) {
                (Ok(more), _) => vectors.extend(more),
                (Err(error), [text]) if error.kind() == ErrorKind::TooLarge => {
                    vectors.push(self.embed_shortened(text, error).await?);
                    // The text was too long; this says nothing about the batch size.
                    (batch_size, has_shortened_text) = (learned, true);
                }
                (Err(error), [_, _, ..])
                    if matches!(error.kind(), ErrorKind::TooLarge | ErrorKind::Input) =>
                {
                    batch_size = batch.len() / 2;
                }
                (Err(error), _) => return Err(error),
            }
        }
        if !has_shortened_text {
            let mut learned = self.batch_size();
            *learned = batch_size.min(*learned);
        }
        Ok(vectors)
    }

    /// The vector of a beginning of `text`, for a text that the provider refused although the estimate was in bounds.
    async fn embed_shortened(&self, text: &str, mut refusal: Error) -> Result<Vec<f32>> {
        let mut max_tokens = estimate_tokens(text);
        for _ in 0..MAX_HALVINGS {
            max_tokens /= 2;
            match self.call(&[truncate(text, max_tokens.max(1)).to_owned()]).await {
                Ok(vectors) => {
                    let first = vectors.into_iter().next();
                    return first.ok_or_else(|| error::invalid_response("it contains no vector"));
                }
                Err(error) if error.kind() == ErrorKind::TooLarge => refusal = error,
                Err(error) => return Err(error),
            }
        }
        Err(Error::new(ErrorKind::Input, refusal.operation(), refusal.reason()))
    }

    async fn call(&self, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        let model = self.provider.options().model.as_str();
        let dims = if self.profile.dims == 0 { MAX_DIMS } else { self.profile.dims };
        let bytes = texts.len().saturating_mul(dims).saturating_mul(NUMBER_BYTES);
        let request = EmbeddingsRequest { model, input: texts };
        let response: Result<EmbeddingsResponse, _> = self.provider.post(PATH, &request, bytes).await;
        match response.map_err(|failure| failure.error)? {
            EmbeddingsResponse::Success { data } => vectors_by_index(data, texts.len(), self.profile.dims),
            EmbeddingsResponse::Failure { error } => Err(self.provider.error_in_success(&error)),
        }
    }

    fn batch_size(&self) -> MutexGuard<'_, usize> {
        self.batch_size.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Embedder for HttpEmbedder {
    fn profile(&self) -> &EmbedderProfile {
        &self.profile
    }

    async fn embed(&self, kind: EmbedKind, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        let texts: Vec<String> = texts.iter().map(|text| self.prepare(kind, text)).collect();
        self.embed_prepared(&texts).await
    }

    fn letters_per_piece(&self, _: &str) -> Option<f32> {
        None
    }
}

/// Identifies the vector space; stable across restarts, because stored vectors carry it.
fn model_id(remote: &RemoteOptions, options: &EmbedOptions, dims: usize) -> String {
    let EmbedOptions { query_prefix, passage_prefix, .. } = options;
    let base = remote.base_url.trim().trim_end_matches('/');
    let prefixes = match (query_prefix.as_str(), passage_prefix.as_str()) {
        ("", "") => String::new(),
        both => format!(" {both:?}"),
    };
    format!("{base} {} {dims}{prefixes}", remote.model)
}

/// It has no `encoding_format`: lists of numbers are the default, and some gateways refuse the field.
#[derive(Serialize)]
struct EmbeddingsRequest<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    model: &'a str,
    input: &'a [String],
}

#[derive(Deserialize)]
#[serde(untagged)]
enum EmbeddingsResponse {
    Success { data: Vec<IndexedVector> },
    Failure { error: Value },
}

#[derive(Deserialize)]
struct IndexedVector {
    /// Gemini leaves an index of 0 out, and others all of them: a vector without one is that of its place.
    #[serde(default)]
    index: Option<usize>,
    embedding: Vec<f32>,
}

/// The normalized vectors in the order of their texts. Each text must have exactly one vector, of `dims` dimensions, or
/// of as many as the first one if `dims` is 0.
fn vectors_by_index(data: Vec<IndexedVector>, texts: usize, dims: usize) -> Result<Vec<Vec<f32>>> {
    let dims = if dims == 0 { data.first().map_or(0, |first| first.embedding.len()) } else { dims };
    let mut vectors = vec![None; texts];
    for (place, IndexedVector { index, embedding }) in data.into_iter().enumerate() {
        let index = index.unwrap_or(place);
        let vector = vectors.get_mut(index).filter(|vector| vector.is_none()).ok_or_else(|| {
            let reason = "index of a vector is out of range or repeated";
            error::invalid_response(format_args!("{reason}: {index} of {texts} texts"))
        })?;
        if embedding.len() != dims || dims == 0 {
            let found = embedding.len();
            let reason = format!("a vector has {found} dimensions instead of {dims}");
            return Err(error::invalid_response(reason));
        }
        let normalized = normalize(&embedding);
        *vector = Some(normalized.ok_or_else(|| error::invalid_response("a vector is zero or not finite"))?);
    }
    let missing = || error::invalid_response(format_args!("fewer vectors than the {texts} texts"));
    vectors.into_iter().collect::<Option<_>>().ok_or_else(missing)
}

/// The vector scaled to length 1; `None` if its length is 0 or not finite.
fn normalize(vector: &[f32]) -> Option<Vec<f32>> {
    let length = vector.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
    let usable = length.is_finite() && length > 0.0;
    usable.then(|| vector.iter().map(|value| (f64::from(*value) / length) as f32).collect())
}
