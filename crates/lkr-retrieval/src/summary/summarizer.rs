//! Making a summary: by a language model, or by extraction.

use std::{sync::Arc, time::Duration};

use futures_util::{
    FutureExt, StreamExt,
    stream::{self, BoxStream},
};
use lkr_models::{ChatModel, ChatRequest, ErrorKind, FinishReason};
use tokio::{
    sync::mpsc::{Sender, channel},
    task::spawn_blocking,
    time::timeout,
};

use crate::{
    SearchResponse, Summary, SummaryKind,
    blocking::blocking,
    summary::{
        answer_reading::AnswerReading,
        event::{FinishedSummary, SummaryEvent},
        extractive::extractive,
        grounding::Grounding,
        model_deadline::{ModelDeadline, ReaderPauses},
        prompt,
        stream::{SummaryPart, SummaryStream},
    },
    warning,
};

/// What makes summaries.
#[derive(Debug, Clone)]
pub(crate) enum Summarizer {
    /// Extraction: no language model is configured.
    Extractive,
    /// Extraction: the configured language model cannot be opened.
    Unavailable,
    /// This language model.
    Model(Arc<dyn ChatModel>),
}

/// How many parts of a summary may wait for the reader.
const CHANNEL_CAPACITY: usize = 16;

impl Summarizer {
    /// The name of the language model.
    pub(crate) fn model_name(&self) -> Option<&str> {
        match self {
            Self::Model(model) => Some(&model.profile().name),
            Self::Extractive | Self::Unavailable => None,
        }
    }

    /// The warning that is known before the summary is made.
    pub(crate) const fn warning(&self) -> Option<&'static str> {
        match self {
            Self::Extractive => Some(warning::EXTRACTIVE),
            Self::Unavailable => Some(warning::CHAT_FAILED),
            Self::Model(_) => None,
        }
    }

    /// The complete summary of a response.
    pub(crate) async fn summarize(
        &self,
        response: &Arc<SearchResponse>,
        time_limit: Duration,
    ) -> FinishedSummary {
        let Self::Model(model) = self else { return self.extract(response).await };
        let Some((request, source_count)) = prompt_for(&**model, response) else {
            return without_prompt(response).await;
        };
        let profile = model.profile();
        match timeout(time_limit, model.complete(&request)).await {
            Ok(Ok(answer)) => {
                let cut = answer.finish_reason == FinishReason::Length;
                let (shared, model_name) = (Arc::clone(response), profile.name.clone());
                let grounding = blocking(move || {
                    let mut grounding = Grounding::new(shared, source_count, &model_name);
                    grounding.push(&answer.text);
                    grounding
                });
                let grounding = grounding.await.ok();
                let failure = grounding.is_none().then_some(warning::CHAT_FAILED);
                finish(response, grounding, cut, failure).await.1
            }
            failed => {
                log_failure(&profile.name, failed.ok().and_then(Result::err).as_ref());
                extract(response, Some(warning::CHAT_FAILED), false).await
            }
        }
    }

    /// The summary of a response as a stream, without the warning of [`warning`](Self::warning).
    pub(crate) fn stream(
        self,
        response: Arc<SearchResponse>,
        time_limit: Duration,
    ) -> BoxStream<'static, SummaryEvent> {
        let (sender, receiver) = channel(CHANNEL_CAPACITY);
        let pauses = ReaderPauses::default();
        let observed = pauses.clone();
        let work = async move { self.send(&response, (time_limit, observed), &sender).await };
        let received =
            stream::unfold(receiver, async |mut receiver| Some((receiver.recv().await?, receiver)));
        // Polling the stream does the work, so the work ends when the stream is dropped.
        let work = work.into_stream().filter_map(async |()| None);
        pauses.observe(stream::select(received, work).boxed()).boxed()
    }

    async fn send(
        self,
        response: &Arc<SearchResponse>,
        time_limit: (Duration, ReaderPauses),
        sender: &Sender<SummaryEvent>,
    ) {
        let (text_sent, summary) = match &self {
            Self::Model(model) => stream_from_model(&**model, response, time_limit, sender).await,
            Self::Extractive | Self::Unavailable => {
                let summary = self.extract(response).await;
                (false, FinishedSummary { warnings: Vec::new(), ..summary })
            }
        };
        // A send fails only if the reader is gone, which then needs no parts.
        if !text_sent {
            let _ = sender.send(SummaryEvent::Text(summary.summary.text.clone())).await;
        }
        let _ = sender.send(SummaryEvent::End(summary)).await;
    }

    async fn extract(&self, response: &Arc<SearchResponse>) -> FinishedSummary {
        extract(response, self.warning(), matches!(self, Self::Extractive)).await
    }
}

/// The request to the model, and the number of results in it; `None` if there is no result or no room for one.
fn prompt_for(model: &dyn ChatModel, response: &SearchResponse) -> Option<(ChatRequest, usize)> {
    prompt::request(&response.query, &response.results, model.profile().context_tokens)
}

/// Calls a model and sends the grounded sentences as they arrive. Returns whether any text was sent, and the summary. The model's
/// time is limited, not counting the reader's pauses.
async fn stream_from_model(
    model: &dyn ChatModel,
    response: &Arc<SearchResponse>,
    (time_limit, pauses): (Duration, ReaderPauses),
    sender: &Sender<SummaryEvent>,
) -> (bool, FinishedSummary) {
    let Some((request, source_count)) = prompt_for(model, response) else {
        return (false, without_prompt(response).await);
    };
    let model_name = &model.profile().name;
    let grounding = Grounding::new(Arc::clone(response), source_count, model_name);
    let mut reading = AnswerReading { grounding: Some(grounding), text_sent: false, sender };
    let end = reading.read(model, &request, &ModelDeadline::after(time_limit, pauses)).await;
    let AnswerReading { grounding, mut text_sent, .. } = reading;
    let cut = end.as_ref().map_or(true, |end| *end == FinishReason::Length);
    let failure = end.err().map(|error| {
        log_failure(model_name, error.as_ref());
        warning::CHAT_FAILED
    });
    let (last, summary) = finish(response, grounding, cut, failure).await;
    if !last.is_empty() {
        text_sent = true;
        let _ = sender.send(SummaryEvent::Text(last)).await;
    }
    (text_sent, summary)
}

/// Ends an answer, with the warning of its failure if it failed. Grounded sentences are kept; without a grounding there are none.
/// Returns the last piece of the text and the summary.
async fn finish(
    response: &Arc<SearchResponse>,
    grounding: Option<Grounding>,
    cut: bool,
    failure: Option<&'static str>,
) -> (String, FinishedSummary) {
    let finished = blocking(move || grounding.map(|grounding| grounding.finish(cut))).await;
    let (last, grounded) = finished.ok().flatten().unwrap_or_default();
    let Some(summary) = grounded else {
        let warning = failure.unwrap_or(warning::NOT_GROUNDED);
        return (String::new(), extract(response, Some(warning), failure.is_none()).await);
    };
    let warnings = failure.map(|_| warning::CHAT_CUT_OFF.to_owned()).into_iter().collect();
    (last, FinishedSummary { summary, warnings, cacheable: failure.is_none() })
}

/// The summary if the model is not called, because there are no results or its context is too small for one.
async fn without_prompt(response: &Arc<SearchResponse>) -> FinishedSummary {
    let too_small = Some(warning::CONTEXT_TOO_SMALL).filter(|_| !response.results.is_empty());
    extract(response, too_small, true).await
}

async fn extract(
    response: &Arc<SearchResponse>,
    warning: Option<&'static str>,
    cacheable: bool,
) -> FinishedSummary {
    let shared = Arc::clone(response);
    let summary = spawn_blocking(move || extractive(&shared.query, &shared.results)).await;
    let empty =
        || Summary { text: String::new(), citations: Vec::new(), model: None, kind: SummaryKind::Extractive };
    let summary = summary.unwrap_or_else(|_| empty());
    FinishedSummary { summary, warnings: warning.map(str::to_owned).into_iter().collect(), cacheable }
}

fn log_failure(model: &str, error: Option<&lkr_models::Error>) {
    match error {
        Some(error) if error.kind() == ErrorKind::Config => {
            tracing::error!(%error, model, "the language model is misconfigured; the summary is extractive");
        }
        Some(error) => {
            tracing::warn!(%error, model, "the language model failed; the summary is extractive or incomplete");
        }
        None => {
            tracing::warn!(model, "the language model timed out; the summary is extractive or incomplete");
        }
    }
}

impl From<FinishedSummary> for SummaryPart {
    fn from(finished: FinishedSummary) -> Self {
        Self::End(finished.summary, finished.warnings)
    }
}

/// A complete summary as a stream.
pub(crate) fn replay(summary: Summary) -> SummaryStream {
    let parts = [SummaryPart::Text(summary.text.clone()), SummaryPart::End(summary, Vec::new())];
    stream::iter(parts).boxed()
}
