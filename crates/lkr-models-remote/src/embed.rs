use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use lkr_models::{EmbedKind, Embedder, EmbedderProfile, Error, ErrorKind, Result};
use lkr_outgoing::Outgoing;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    EmbedOptions, RemoteOptions,
    cut::{cut, tokens},
    error,
    provider::Provider,
};

const PATH: &str = "/embeddings";

/// What is embedded to find out how many dimensions there are.
const PROBE: &str = "a short text to embed";
/// As many dimensions as no model has.
const MOST_DIMS: usize = 65_536;
/// What a number of a vector takes at the most, in bytes.
const NUMBER_BYTES: usize = 32;
/// How often a text that is still too long is cut in half.
const CUTS: u32 = 4;

/// An embedding model behind the API of OpenAI, which Ollama, llama.cpp, vLLM, TEI and many others share.
#[derive(Debug)]
pub struct HttpEmbedder {
    profile: EmbedderProfile,
    provider: Provider,
    options: EmbedOptions,
    /// The most texts that it takes at a time, as far as was found out.
    at_once: Mutex<usize>,
}

impl HttpEmbedder {
    /// The model that `remote` names. It is asked once, for the number of its dimensions.
    ///
    /// # Errors
    /// `Config` where the address may not be called or the key cannot be sent; else as `embed`.
    pub async fn connect(outgoing: Outgoing, remote: RemoteOptions, options: EmbedOptions) -> Result<Self> {
        let mut embedder = Self::with_dims(outgoing, remote, options, 0)?;
        let found = embedder.ask(&[PROBE.to_owned()]).await?;
        let dims = found.first().map_or(0, Vec::len);
        embedder.profile.id = id(embedder.provider.options(), &embedder.options, dims);
        embedder.profile.dims = dims;
        Ok(embedder)
    }

    /// The model that `remote` names, whose dimensions are known. Nothing is sent yet.
    ///
    /// # Errors
    /// `Config` where the address may not be called or the key cannot be sent.
    pub fn with_dims(
        outgoing: Outgoing,
        remote: RemoteOptions,
        options: EmbedOptions,
        dims: usize,
    ) -> Result<Self> {
        let profile = EmbedderProfile {
            id: id(&remote, &options, dims),
            name: if remote.model.is_empty() { "embedding model" } else { &remote.model }.to_owned(),
            dims,
            max_tokens: options.max_tokens.max(1),
            cosine_scale: options.cosine_scale,
        };
        let at_once = Mutex::new(options.batch_texts.max(1));
        Ok(Self { profile, provider: Provider::new(outgoing, remote)?, options, at_once })
    }

    /// A text as it is sent: with its prefix, cut, and never empty, which some refuse.
    fn prepared(&self, kind: EmbedKind, text: &str) -> String {
        let prefix = match kind {
            EmbedKind::Query => &self.options.query_prefix,
            EmbedKind::Passage => &self.options.passage_prefix,
        };
        let text = format!("{prefix}{text}");
        match cut(&text, self.profile.max_tokens) {
            "" => " ".to_owned(),
            left => left.to_owned(),
        }
    }

    /// So many of the texts as are sent together; at least one.
    fn batch<'a>(&self, texts: &'a [String], at_once: usize) -> &'a [String] {
        let mut left = self.options.batch_tokens;
        let fits = |text: &&String| {
            let room = left.checked_sub(tokens(text));
            left = room.unwrap_or(left);
            room.is_some()
        };
        let count = texts.iter().take(at_once).take_while(fits).count().max(1);
        texts.get(..count).unwrap_or(texts)
    }

    /// The vectors of texts that fit into one request each. What is too much at a time is halved.
    async fn embed_prepared(&self, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        let known = *self.known();
        let (mut at_once, mut cuts) = (known, false);
        let mut vectors = Vec::with_capacity(texts.len());
        while let Some(rest) = texts.get(vectors.len()..).filter(|rest| !rest.is_empty()) {
            let part = self.batch(rest, at_once);
            match (self.ask(part).await, part) {
                (Ok(more), _) => vectors.extend(more),
                (Err(error), [one]) if error.kind() == ErrorKind::TooLarge => {
                    vectors.push(self.ask_shorter(one, error).await?);
                    // It was the text that was too long, and not the texts that were too many.
                    (at_once, cuts) = (known, true);
                }
                (Err(error), _) if error.kind() == ErrorKind::TooLarge => at_once = part.len() / 2,
                (Err(error), _) => return Err(error),
            }
        }
        if !cuts {
            let mut known = self.known();
            *known = at_once.min(*known);
        }
        Ok(vectors)
    }

    /// The vector of as much of a text as the model takes, where less was estimated to be too much.
    async fn ask_shorter(&self, text: &str, mut refused: Error) -> Result<Vec<f32>> {
        let mut most = tokens(text);
        for _ in 0..CUTS {
            most /= 2;
            match self.ask(&[cut(text, most.max(1)).to_owned()]).await {
                Ok(vectors) => {
                    return vectors
                        .into_iter()
                        .next()
                        .ok_or_else(|| error::wrong_answer("it holds no vector"));
                }
                Err(error) if error.kind() == ErrorKind::TooLarge => refused = error,
                Err(error) => return Err(error),
            }
        }
        Err(Error::new(ErrorKind::Input, refused.operation(), refused.reason()))
    }

    async fn ask(&self, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        let model = self.provider.options().model.as_str();
        let dims = if self.profile.dims == 0 { MOST_DIMS } else { self.profile.dims };
        let bytes = texts.len().saturating_mul(dims).saturating_mul(NUMBER_BYTES);
        let ask = Ask { model, input: texts, encoding_format: "float" };
        let answer: Answer = self.provider.post(PATH, &ask, bytes).await.map_err(|failure| failure.error)?;
        match answer {
            Answer::Rows { data } => in_order(data, texts.len(), self.profile.dims),
            Answer::Failed { error } => Err(self.provider.refused_within(&error)),
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, usize> {
        self.at_once.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Embedder for HttpEmbedder {
    fn profile(&self) -> &EmbedderProfile {
        &self.profile
    }

    async fn embed(&self, kind: EmbedKind, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        let texts: Vec<String> = texts.iter().map(|text| self.prepared(kind, text)).collect();
        self.embed_prepared(&texts).await
    }

    fn letters_per_piece(&self, _: &str) -> Option<f32> {
        None
    }
}

/// What tells the vectors apart from any other model's, the same after a restart.
fn id(remote: &RemoteOptions, options: &EmbedOptions, dims: usize) -> String {
    let EmbedOptions { query_prefix, passage_prefix, .. } = options;
    let base = remote.base_url.trim().trim_end_matches('/');
    let prefixes = match (query_prefix.as_str(), passage_prefix.as_str()) {
        ("", "") => String::new(),
        both => format!(" {both:?}"),
    };
    format!("{base} {} {dims}{prefixes}", remote.model)
}

#[derive(Serialize)]
struct Ask<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    model: &'a str,
    input: &'a [String],
    encoding_format: &'static str,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    Rows { data: Vec<Row> },
    Failed { error: Value },
}

#[derive(Deserialize)]
struct Row {
    index: usize,
    embedding: Vec<f32>,
}

/// The vectors by their places, each once, of so many dimensions, where that is known, and brought to length 1.
fn in_order(rows: Vec<Row>, texts: usize, dims: usize) -> Result<Vec<Vec<f32>>> {
    let dims = if dims == 0 { rows.first().map_or(0, |row| row.embedding.len()) } else { dims };
    let mut vectors = vec![None; texts];
    for Row { index, embedding } in rows {
        let place = vectors.get_mut(index).filter(|place| place.is_none());
        let place = place.ok_or_else(|| {
            error::wrong_answer(format_args!("index {index} of {texts} texts is none or comes twice"))
        })?;
        if embedding.len() != dims || dims == 0 {
            let found = embedding.len();
            return Err(error::wrong_answer(format_args!(
                "a vector has {found} dimensions, expected are {dims}"
            )));
        }
        let unit = unit(&embedding);
        *place = Some(unit.ok_or_else(|| error::wrong_answer("a vector has no length, or no finite one"))?);
    }
    let missing = || error::wrong_answer(format_args!("a vector is missing of {texts} texts"));
    vectors.into_iter().collect::<Option<_>>().ok_or_else(missing)
}

/// The vector at length 1; `None` where it has none.
fn unit(vector: &[f32]) -> Option<Vec<f32>> {
    let length = vector.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
    let usable = length.is_finite() && length > 0.0;
    usable.then(|| vector.iter().map(|value| (f64::from(*value) / length) as f32).collect())
}
