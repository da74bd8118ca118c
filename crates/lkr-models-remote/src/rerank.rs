use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use lkr_models::{ErrorKind, Reranker, RerankerProfile, Result};
use lkr_outgoing::Outgoing;
use serde::{Deserialize, Serialize};

use crate::{RemoteOptions, error, provider::Provider};

const PATH: &str = "/rerank";

/// How many passages a search has scored: as many as TEI takes at a time unless it is told otherwise.
const CANDIDATES: usize = 32;

/// A reranker behind the rerank API that vLLM, TEI, Jina and others share.
#[derive(Debug)]
pub struct HttpReranker {
    profile: RerankerProfile,
    provider: Provider,
    /// What was found out about the provider.
    known: Mutex<Known>,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    form: Option<Form>,
    /// The most passages that it takes at a time.
    at_once: usize,
}

/// How passages are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As `documents`.
    Documents,
    /// As `texts`: TEI.
    Texts,
}

impl HttpReranker {
    /// The reranker that `options` name. Nothing is sent yet.
    ///
    /// # Errors
    /// `Config` where the address may not be called or the key cannot be sent.
    pub fn new(outgoing: Outgoing, options: RemoteOptions) -> Result<Self> {
        let RemoteOptions { base_url, model, .. } = &options;
        let name = if model.is_empty() { "reranker".to_owned() } else { model.clone() };
        let profile = RerankerProfile { id: format!("{base_url} {model}"), name, candidates: CANDIDATES };
        let provider = Provider::new(outgoing, options)?;
        Ok(Self { profile, provider, known: Mutex::new(Known { form: None, at_once: usize::MAX }) })
    }

    fn known(&self) -> Known {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn learn(&self, change: impl FnOnce(&mut Known)) {
        change(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Asks in the form that the provider takes.
    async fn ask(&self, query: &str, passages: &[String]) -> Result<Vec<f32>> {
        let form = self.known().form;
        let first = form.unwrap_or(Form::Documents);
        let answered = match self.ask_in(first, query, passages).await {
            // The other form may be what it wants; if not, what it said first is what counts.
            Err(error) if form.is_none() && error.kind() == ErrorKind::Input => {
                let other = self.ask_in(Form::Texts, query, passages).await;
                other.map(|scores| (Form::Texts, scores)).map_err(|_| error)
            }
            answered => answered.map(|scores| (first, scores)),
        };
        let (form, scores) = answered?;
        self.learn(|known| known.form = Some(form));
        Ok(scores)
    }

    async fn ask_in(&self, form: Form, query: &str, passages: &[String]) -> Result<Vec<f32>> {
        let model = self.provider.options().model.as_str();
        let answer: Answer = match form {
            Form::Documents => {
                let top_n = passages.len();
                let ask = AskDocuments { model, query, documents: passages, top_n, return_documents: false };
                self.post(&ask, passages).await?
            }
            Form::Texts => self.post(&AskTexts { query, texts: passages, truncate: true }, passages).await?,
        };
        let (Answer::Named { results: rows } | Answer::Bare(rows)) = answer;
        in_order(&rows, passages.len())
    }

    async fn post(&self, ask: &(impl Serialize + Sync), passages: &[String]) -> Result<Answer> {
        // Some repeat the passages.
        let bytes = passages.iter().map(|passage| passage.len().saturating_mul(4)).sum();
        self.provider.post(PATH, ask, bytes).await.map_err(|failure| failure.error)
    }
}

#[async_trait]
impl Reranker for HttpReranker {
    fn profile(&self) -> &RerankerProfile {
        &self.profile
    }

    async fn rerank(&self, query: &str, passages: &[String]) -> Result<Vec<f32>> {
        let mut scores = Vec::with_capacity(passages.len());
        while let Some(rest) = passages.get(scores.len()..).filter(|rest| !rest.is_empty()) {
            let part = rest.get(..self.known().at_once).unwrap_or(rest);
            match self.ask(query, part).await {
                Ok(more) => scores.extend(more),
                Err(error) if error.kind() == ErrorKind::TooLarge && part.len() > 1 => {
                    let half = part.len() / 2;
                    self.learn(|known| known.at_once = known.at_once.min(half));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(scores)
    }
}

#[derive(Serialize)]
struct AskDocuments<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    model: &'a str,
    query: &'a str,
    documents: &'a [String],
    top_n: usize,
    return_documents: bool,
}

#[derive(Serialize)]
struct AskTexts<'a> {
    query: &'a str,
    texts: &'a [String],
    /// Whether what is too long is cut, and not refused.
    truncate: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    Named {
        #[serde(alias = "data")]
        results: Vec<Row>,
    },
    Bare(Vec<Row>),
}

#[derive(Deserialize)]
struct Row {
    index: usize,
    #[serde(alias = "score")]
    relevance_score: f32,
}

/// The scores by their places: each once.
fn in_order(rows: &[Row], passages: usize) -> Result<Vec<f32>> {
    let mut scores = vec![None; passages];
    for Row { index, relevance_score } in rows {
        let place = scores.get_mut(*index).filter(|place| place.is_none());
        let place = place.ok_or_else(|| {
            error::wrong_answer(format_args!("index {index} of {passages} passages is none or comes twice"))
        })?;
        *place = relevance_score.is_finite().then_some(*relevance_score);
    }
    let missing = || error::wrong_answer(format_args!("a score is missing of {passages} passages"));
    scores.into_iter().collect::<Option<_>>().ok_or_else(missing)
}
