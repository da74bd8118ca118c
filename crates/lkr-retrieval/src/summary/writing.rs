//! Having a summary written, or picking one.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt, StreamExt, stream};
use lkr_models::{AnswerEnd, ChatModel, ChatPart, ErrorKind};
use tokio::{
    sync::mpsc::{Sender, channel},
    task::spawn_blocking,
    time::{Instant, timeout, timeout_at},
};

use crate::{
    SearchResponse, Summary, SummaryKind, SummaryPart, SummaryStream,
    summary::{extractive, grounding::Grounding, prompt},
    warning,
};

/// Who writes summaries.
#[derive(Debug, Clone)]
pub(crate) enum Writer {
    /// Nobody: they are picked.
    Nobody,
    /// One who cannot be had.
    Failed,
    /// This one.
    Actor(Arc<dyn ChatModel>),
}

/// A summary, and what there is to say of it.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) summary: Summary,
    pub(crate) warnings: Vec<String>,
    /// Whether it would be the same if it was made again.
    pub(crate) lasting: bool,
}

/// How many parts wait for who reads them.
const WAITING: usize = 16;

impl Writer {
    /// The model's name.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Actor(model) => Some(&model.profile().name),
            Self::Nobody | Self::Failed => None,
        }
    }

    /// What can be said of a summary before it is made.
    pub(crate) const fn warning(&self) -> Option<&'static str> {
        match self {
            Self::Nobody => Some(warning::EXTRACTIVE),
            Self::Failed => Some(warning::CHAT_FAILED),
            Self::Actor(_) => None,
        }
    }

    /// The summary of a response, as a whole.
    pub(crate) async fn write(&self, response: &Arc<SearchResponse>, patience: Duration) -> Outcome {
        let Self::Actor(model) = self else { return self.picked(response).await };
        let profile = model.profile();
        let asked = prompt::request(&response.query, &response.results, profile.context_tokens);
        let Some((request, shown)) = asked else { return unasked(response).await };
        match timeout(patience, model.complete(&request)).await {
            Ok(Ok(answer)) => {
                let mut grounding = Grounding::new(Arc::clone(response), shown, &profile.name);
                grounding.push(&answer.text);
                finish(response, grounding, answer.end == AnswerEnd::Cut, None).await.1
            }
            failed => {
                failing(failed.ok().and_then(Result::err).as_ref());
                picked(response, Some(warning::CHAT_FAILED), false).await
            }
        }
    }

    /// The summary of a response as it comes. What [`warning`](Self::warning) says is not said again.
    pub(crate) fn stream(
        self,
        response: Arc<SearchResponse>,
        patience: Duration,
    ) -> stream::BoxStream<'static, Part> {
        let (parts, waiting) = channel(WAITING);
        let work = async move { self.send(&response, patience, &parts).await };
        let came = stream::unfold(waiting, async |mut waiting| Some((waiting.recv().await?, waiting)));
        // Whoever reads the parts does the work, so that it ends where nobody does.
        let work = work.into_stream().filter_map(async |()| None);
        stream::select(came, work).boxed()
    }

    async fn send(self, response: &Arc<SearchResponse>, patience: Duration, parts: &Sender<Part>) {
        let (sent, outcome) = match &self {
            Self::Actor(model) => write_in_parts(&**model, response, patience, parts).await,
            Self::Nobody | Self::Failed => {
                let outcome = self.picked(response).await;
                (false, Outcome { warnings: Vec::new(), ..outcome })
            }
        };
        if !sent {
            // Whoever is gone needs nothing.
            let _ = parts.send(Part::Text(outcome.summary.text.clone())).await;
        }
        let _ = parts.send(Part::End(outcome)).await;
    }

    async fn picked(&self, response: &Arc<SearchResponse>) -> Outcome {
        picked(response, self.warning(), matches!(self, Self::Nobody)).await
    }
}

/// A part of a summary on its way.
#[derive(Debug)]
pub(crate) enum Part {
    Text(String),
    End(Outcome),
}

/// Has a model write, and sends on what stands. Answers whether anything was sent, and what came of it.
async fn write_in_parts(
    model: &dyn ChatModel,
    response: &Arc<SearchResponse>,
    patience: Duration,
    parts: &Sender<Part>,
) -> (bool, Outcome) {
    let profile = model.profile();
    let asked = prompt::request(&response.query, &response.results, profile.context_tokens);
    let Some((request, shown)) = asked else { return (false, unasked(response).await) };
    let deadline = Instant::now() + patience;
    let mut grounding = Grounding::new(Arc::clone(response), shown, &profile.name);
    let (mut sent, mut cut) = (false, true);
    let failure = match timeout_at(deadline, model.stream(&request)).await {
        Ok(Ok(mut answer)) => loop {
            let text = match timeout_at(deadline, answer.next()).await {
                Ok(Some(Ok(ChatPart::Text(text)))) => text,
                Ok(Some(Ok(ChatPart::End(answer)))) => {
                    cut = answer.end == AnswerEnd::Cut;
                    break None;
                }
                Ok(Some(Err(error))) => break Some(Some(error)),
                Ok(None) | Err(_) => break Some(None),
            };
            let more = grounding.push(&text);
            if !more.is_empty() {
                sent = true;
                let _ = parts.send(Part::Text(more)).await;
            }
        },
        failed => Some(failed.ok().and_then(Result::err)),
    };
    if let Some(error) = &failure {
        failing(error.as_ref());
    }
    let (last, outcome) = finish(response, grounding, cut, failure.map(|_| warning::CHAT_FAILED)).await;
    if !last.is_empty() {
        sent = true;
        let _ = parts.send(Part::Text(last)).await;
    }
    (sent, outcome)
}

/// Ends an answer, which failed where there is a warning: what stands of it stays. Answers what the text ends with, too.
async fn finish(
    response: &Arc<SearchResponse>,
    grounding: Grounding,
    cut: bool,
    failed: Option<&'static str>,
) -> (String, Outcome) {
    let (last, written) = grounding.finish(cut);
    let Some(summary) = written else {
        let warning = failed.unwrap_or(warning::NOT_BORNE_OUT);
        return (String::new(), picked(response, Some(warning), failed.is_none()).await);
    };
    let warnings = failed.map(|_| warning::CHAT_BROKE_OFF.to_owned()).into_iter().collect();
    (last, Outcome { summary, warnings, lasting: failed.is_none() })
}

/// What is said where the model is not even asked: there is nothing to show it, or it takes too little.
async fn unasked(response: &Arc<SearchResponse>) -> Outcome {
    let too_small = Some(warning::CHAT_TOO_SMALL).filter(|_| !response.results.is_empty());
    picked(response, too_small, true).await
}

async fn picked(response: &Arc<SearchResponse>, warning: Option<&'static str>, lasting: bool) -> Outcome {
    let of = Arc::clone(response);
    let summary = spawn_blocking(move || extractive(&of.query, &of.results)).await;
    let nothing =
        || Summary { text: String::new(), citations: Vec::new(), model: None, kind: SummaryKind::Extractive };
    let summary = summary.unwrap_or_else(|_| nothing());
    Outcome { summary, warnings: warning.map(str::to_owned).into_iter().collect(), lasting }
}

/// Notes why no summary was written.
fn failing(error: Option<&lkr_models::Error>) {
    match error {
        Some(error) if error.kind() == ErrorKind::Config => {
            tracing::error!(%error, "the language model is set up wrongly: a summary is extractive");
        }
        Some(error) => tracing::warn!(%error, "the language model failed: a summary is extractive"),
        None => tracing::warn!("the language model did not answer in time: a summary is extractive"),
    }
}

impl From<Outcome> for SummaryPart {
    fn from(outcome: Outcome) -> Self {
        Self::End(outcome.summary, outcome.warnings)
    }
}

/// The parts of a summary that is there already.
pub(crate) fn replay(summary: Summary) -> SummaryStream {
    let parts = [SummaryPart::Text(summary.text.clone()), SummaryPart::End(summary, Vec::new())];
    stream::iter(parts).boxed()
}
