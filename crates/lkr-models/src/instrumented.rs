//! Models whose calls are counted.

use std::{fmt::Debug, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::StreamExt;
use lkr_text::estimate_tokens;
use tokio::time::Instant;

use crate::{
    ChatAnswer, ChatModel, ChatPart, ChatProfile, ChatRequest, ChatStream, EmbedKind, Embedder,
    EmbedderProfile, Error, ErrorKind, Result, TokenUsage,
};

/// Is told of each call of a model when it has ended.
pub trait CallObserver: Debug + Send + Sync + 'static {
    /// A call has ended. Must not block.
    fn ended(&self, call: &ModelCall);
}

/// A call of a model that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelCall {
    /// What was asked for.
    pub operation: Operation,
    /// How long it took, to the last part of an answer in parts.
    pub took: Duration,
    /// What it cost: as far as a language model told, and for an embedder as it is estimated.
    pub usage: TokenUsage,
    /// What came of it.
    pub outcome: CallOutcome,
}

/// What a model is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A whole answer.
    Complete,
    /// An answer in parts.
    Stream,
    /// Vectors of queries.
    EmbedQueries,
    /// Vectors of passages.
    EmbedPassages,
}

/// What came of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallOutcome {
    /// It was answered.
    Answered,
    /// It failed.
    Failed(ErrorKind),
    /// Whoever asked did not wait for the end.
    GivenUp,
}

impl Operation {
    /// Its name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Stream => "stream",
            Self::EmbedQueries => "embed_queries",
            Self::EmbedPassages => "embed_passages",
        }
    }
}

impl CallOutcome {
    /// Its name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::GivenUp => "given_up",
            Self::Failed(kind) => kind.name(),
        }
    }
}

/// A model each of whose calls an observer is told of.
#[derive(Debug)]
pub struct Instrumented<M: ?Sized> {
    inner: Arc<M>,
    observer: Arc<dyn CallObserver>,
}

/// A call that runs. When it is dropped, it has ended.
struct Running {
    observer: Arc<dyn CallObserver>,
    operation: Operation,
    begun: Instant,
    usage: TokenUsage,
    outcome: CallOutcome,
}

impl<M: ?Sized> Instrumented<M> {
    /// Tells `observer` of the calls of `inner`.
    #[must_use]
    pub const fn new(inner: Arc<M>, observer: Arc<dyn CallObserver>) -> Self {
        Self { inner, observer }
    }

    fn run(&self, operation: Operation) -> Running {
        Running {
            observer: Arc::clone(&self.observer),
            operation,
            begun: Instant::now(),
            usage: TokenUsage::default(),
            outcome: CallOutcome::GivenUp,
        }
    }
}

impl Running {
    fn answered(&mut self, usage: TokenUsage) {
        (self.usage, self.outcome) = (usage, CallOutcome::Answered);
    }

    const fn failed(&mut self, error: &Error) {
        self.outcome = CallOutcome::Failed(error.kind());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Self { operation, usage, outcome, .. } = *self;
        self.observer.ended(&ModelCall { operation, took: self.begun.elapsed(), usage, outcome });
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ChatModel for Instrumented<dyn ChatModel> {
    fn profile(&self) -> &ChatProfile {
        self.inner.profile()
    }

    async fn complete(&self, request: &ChatRequest) -> Result<ChatAnswer> {
        let mut running = self.run(Operation::Complete);
        let answer = self.inner.complete(request).await;
        match &answer {
            Ok(answer) => running.answered(answer.usage),
            Err(error) => running.failed(error),
        }
        answer
    }

    async fn stream(&self, request: &ChatRequest) -> Result<ChatStream> {
        let mut running = self.run(Operation::Stream);
        let parts = self.inner.stream(request).await.inspect_err(|error| running.failed(error))?;
        let noted = move |part: &Result<ChatPart>| match part {
            Ok(ChatPart::Text(_)) => {}
            Ok(ChatPart::End(answer)) => running.answered(answer.usage),
            Err(error) => running.failed(error),
        };
        Ok(parts.inspect(noted).boxed())
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Embedder for Instrumented<dyn Embedder> {
    fn profile(&self) -> &EmbedderProfile {
        self.inner.profile()
    }

    async fn embed(&self, kind: EmbedKind, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        let mut running = self.run(match kind {
            EmbedKind::Query => Operation::EmbedQueries,
            EmbedKind::Passage => Operation::EmbedPassages,
        });
        let vectors = self.inner.embed(kind, texts).await;
        match &vectors {
            Ok(_) => {
                let prompt = texts.iter().map(|text| estimate_tokens(text) as u64).sum();
                running.answered(TokenUsage { prompt, answer: 0 });
            }
            Err(error) => running.failed(error),
        }
        vectors
    }

    fn letters_per_piece(&self, text: &str) -> Option<f32> {
        self.inner.letters_per_piece(text)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::faulty::{Faulty, request, text_of};

    #[derive(Debug, Default)]
    struct Kept(Mutex<Vec<ModelCall>>);

    impl CallObserver for Kept {
        fn ended(&self, call: &ModelCall) {
            self.0.lock().unwrap().push(*call);
        }
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn each_call_is_told_with_what_it_cost_and_came_to() {
        let (faulty, kept) = (Faulty::taking(SECOND), Arc::new(Kept::default()));
        let observer: Arc<dyn CallObserver> = kept.clone();
        let model = Instrumented::new(Arc::clone(&faulty) as Arc<dyn ChatModel>, Arc::clone(&observer));
        model.complete(&request()).await.unwrap();
        let parts = model.stream(&request()).await.unwrap();
        assert_eq!(kept.0.lock().unwrap().len(), 1, "an answer in parts ends with the last one");
        text_of(parts).await.unwrap();
        drop(model.stream(&request()).await.unwrap());
        faulty.fail(ErrorKind::Config);
        model.complete(&request()).await.unwrap_err();
        assert!(tokio::time::timeout(SECOND / 2, model.complete(&request())).await.is_err());
        let embedder = Instrumented::new(Arc::clone(&faulty) as Arc<dyn Embedder>, observer);
        embedder.embed(EmbedKind::Passage, &["cat".to_owned()]).await.unwrap();
        faulty.fail(ErrorKind::Unavailable);
        embedder.embed(EmbedKind::Query, &[]).await.unwrap_err();
        let told: Vec<_> = kept
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
        ];
        assert_eq!(told, expected);
    }
}
