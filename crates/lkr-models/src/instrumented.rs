//! Reports each call of a model to an observer.

use std::{fmt::Debug, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::StreamExt;
use lkr_text::estimate_tokens;
use tokio::time::Instant;
use tracing::{Instrument, Span, debug_span};

use crate::{
    ChatAnswer, ChatModel, ChatPart, ChatProfile, ChatRequest, ChatStream, EmbedKind, Embedder,
    EmbedderProfile, Error, ErrorKind, Reranker, RerankerProfile, Result, TokenUsage,
};

/// Receives a report of each finished call of a model.
pub trait CallObserver: Debug + Send + Sync + 'static {
    /// Called when a call has ended. Must not block.
    fn ended(&self, call: &ModelCall);
}

/// A finished call of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelCall {
    /// The operation.
    pub operation: Operation,
    /// The duration; of a stream, up to its last part.
    pub took: Duration,
    /// The tokens used: as reported by a language model, estimated for an embedder and for the passages of a reranker.
    pub usage: TokenUsage,
    /// How the call ended.
    pub outcome: CallOutcome,
}

/// The operation of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// An answer in one piece.
    Complete,
    /// A streamed answer.
    Stream,
    /// Embedding of queries.
    EmbedQueries,
    /// Embedding of passages.
    EmbedPassages,
    /// Scoring of passages for a query.
    Rerank,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallOutcome {
    /// The model answered.
    Answered,
    /// The call failed.
    Failed(ErrorKind),
    /// The caller dropped the call before its end.
    Cancelled,
}

impl Operation {
    /// The name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Stream => "stream",
            Self::EmbedQueries => "embed_queries",
            Self::EmbedPassages => "embed_passages",
            Self::Rerank => "rerank",
        }
    }
}

impl CallOutcome {
    /// The name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Cancelled => "given_up",
            Self::Failed(kind) => kind.name(),
        }
    }
}

/// A decorator that reports each call to an observer.
#[derive(Debug)]
pub struct Instrumented<M: ?Sized> {
    inner: Arc<M>,
    observer: Arc<dyn CallObserver>,
}

/// A call in flight. It is reported when it is dropped.
struct CallInFlight {
    observer: Arc<dyn CallObserver>,
    operation: Operation,
    started: Instant,
    usage: TokenUsage,
    outcome: CallOutcome,
}

impl<M: ?Sized> Instrumented<M> {
    /// Wraps `inner` and reports its calls to `observer`.
    #[must_use]
    pub const fn new(inner: Arc<M>, observer: Arc<dyn CallObserver>) -> Self {
        Self { inner, observer }
    }

    fn start(&self, operation: Operation) -> CallInFlight {
        CallInFlight {
            observer: Arc::clone(&self.observer),
            operation,
            started: Instant::now(),
            usage: TokenUsage::default(),
            outcome: CallOutcome::Cancelled,
        }
    }
}

impl CallInFlight {
    fn answered(&mut self, usage: TokenUsage) {
        (self.usage, self.outcome) = (usage, CallOutcome::Answered);
    }

    const fn failed(&mut self, error: &Error) {
        self.outcome = CallOutcome::Failed(error.kind());
    }
}

impl Drop for CallInFlight {
    fn drop(&mut self) {
        let Self { operation, usage, outcome, .. } = *self;
        self.observer.ended(&ModelCall { operation, took: self.started.elapsed(), usage, outcome });
    }
}

/// The span of one attempt of a call.
fn span(operation: Operation) -> Span {
    debug_span!("model.call", operation = operation.name())
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ChatModel for Instrumented<dyn ChatModel> {
    fn profile(&self) -> &ChatProfile {
        self.inner.profile()
    }

    async fn complete(&self, request: &ChatRequest) -> Result<ChatAnswer> {
        let mut call = self.start(Operation::Complete);
        let answer = self.inner.complete(request).instrument(span(Operation::Complete)).await;
        match &answer {
            Ok(answer) => call.answered(answer.usage),
            Err(error) => call.failed(error),
        }
        answer
    }

    async fn stream(&self, request: &ChatRequest) -> Result<ChatStream> {
        let mut call = self.start(Operation::Stream);
        let streaming = self.inner.stream(request).instrument(span(Operation::Stream));
        let parts = streaming.await.inspect_err(|error| call.failed(error))?;
        let record = move |part: &Result<ChatPart>| match part {
            Ok(ChatPart::Text(_)) => {}
            Ok(ChatPart::End(answer)) => call.answered(answer.usage),
            Err(error) => call.failed(error),
        };
        Ok(parts.inspect(record).boxed())
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Embedder for Instrumented<dyn Embedder> {
    fn profile(&self) -> &EmbedderProfile {
        self.inner.profile()
    }

    async fn embed(&self, kind: EmbedKind, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        let operation = match kind {
            EmbedKind::Query => Operation::EmbedQueries,
            EmbedKind::Passage => Operation::EmbedPassages,
        };
        let mut call = self.start(operation);
        let vectors = self.inner.embed(kind, texts).instrument(span(operation)).await;
        match &vectors {
            Ok(_) => call.answered(estimated_usage(texts)),
            Err(error) => call.failed(error),
        }
        vectors
    }

    fn letters_per_piece(&self, text: &str) -> Option<f32> {
        self.inner.letters_per_piece(text)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Reranker for Instrumented<dyn Reranker> {
    fn profile(&self) -> &RerankerProfile {
        self.inner.profile()
    }

    async fn rerank(&self, query: &str, passages: &[String]) -> Result<Vec<f32>> {
        let mut call = self.start(Operation::Rerank);
        let scores = self.inner.rerank(query, passages).instrument(span(Operation::Rerank)).await;
        match &scores {
            Ok(_) => call.answered(estimated_usage(passages)),
            Err(error) => call.failed(error),
        }
        scores
    }
}

fn estimated_usage(texts: &[String]) -> TokenUsage {
    TokenUsage { prompt: texts.iter().map(|text| estimate_tokens(text) as u64).sum(), answer: 0 }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::{
        MemoryReranker,
        faulty_model::{FaultyModel, request, text_of},
    };

    #[derive(Debug, Default)]
    struct RecordingObserver(Mutex<Vec<ModelCall>>);

    impl CallObserver for RecordingObserver {
        fn ended(&self, call: &ModelCall) {
            self.0.lock().unwrap().push(*call);
        }
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn observer_receives_duration_usage_and_outcome_of_each_call() {
        let (faulty, recorder) = (FaultyModel::delayed(SECOND), Arc::new(RecordingObserver::default()));
        let observer: Arc<dyn CallObserver> = recorder.clone();
        let model = Instrumented::new(Arc::clone(&faulty) as Arc<dyn ChatModel>, Arc::clone(&observer));
        model.complete(&request()).await.unwrap();
        let parts = model.stream(&request()).await.unwrap();
        assert_eq!(recorder.0.lock().unwrap().len(), 1, "the stream was reported before its last part");
        text_of(parts).await.unwrap();
        drop(model.stream(&request()).await.unwrap());
        faulty.fail(ErrorKind::Config);
        model.complete(&request()).await.unwrap_err();
        assert!(tokio::time::timeout(SECOND / 2, model.complete(&request())).await.is_err());
        let embedder = Instrumented::new(Arc::clone(&faulty) as Arc<dyn Embedder>, observer);
        embedder.embed(EmbedKind::Passage, &["cat".to_owned()]).await.unwrap();
        faulty.fail(ErrorKind::Unavailable);
        embedder.embed(EmbedKind::Query, &[]).await.unwrap_err();
        let reranker: Arc<dyn Reranker> = Arc::new(MemoryReranker::default());
        let reranker = Instrumented::new(reranker, Arc::clone(&embedder.observer));
        reranker.rerank("cat", &["cat".to_owned()]).await.unwrap();
        let reported: Vec<_> = recorder
            .0
            .lock()
            .unwrap()
            .iter()
            .map(|call| {
                (call.operation.name(), call.outcome.name(), call.usage.total(), call.took.as_millis() / 500)
            })
            .collect();
        let tokens = estimate_tokens("cat") as u64;
        let expected = [
            ("complete", "answered", 4, 2),
            ("stream", "answered", 4, 2),
            ("stream", "given_up", 0, 2),
            ("complete", "config", 0, 2),
            ("complete", "given_up", 0, 1),
            ("embed_passages", "answered", tokens, 2),
            ("embed_queries", "unavailable", 0, 2),
            ("rerank", "answered", tokens, 0),
        ];
        assert_eq!(reported, expected);
    }
}
