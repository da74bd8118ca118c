//! Repeats failed calls of a model.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use tokio::time::{Instant, sleep};

use crate::{
    ChatAnswer, ChatModel, ChatProfile, ChatRequest, ChatStream, EmbedKind, Embedder, EmbedderProfile, Error,
    ErrorKind, Result,
};

/// How often and when a failed call is repeated. See docs/studies.md#retry-and-circuit-breaker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryOptions {
    /// The most attempts of one call, including the first.
    pub max_attempts: u32,
    /// The upper bound of the first pause. It doubles with each further pause.
    pub initial_backoff: Duration,
    /// The longest pause. If the provider names a longer one, the call fails at once.
    pub max_backoff: Duration,
    /// No attempt begins later than this after the first one.
    pub max_elapsed: Duration,
}

impl Default for RetryOptions {
    fn default() -> Self {
        Self {
            max_attempts: 4,
            initial_backoff: Duration::from_millis(500),
            max_backoff: Duration::from_secs(30),
            max_elapsed: Duration::from_secs(60),
        }
    }
}

/// A decorator that repeats a call whose failure may be temporary, after an exponential backoff with jitter or after the
/// time that the provider names.
///
/// A stream is repeated only until its first part has arrived. Of an embedder, only calls for queries are repeated;
/// [`AdaptiveBatch`](crate::AdaptiveBatch) repeats those for passages.
#[derive(Debug)]
pub struct Retry<M: ?Sized> {
    inner: Arc<M>,
    options: RetryOptions,
}

impl<M: ?Sized> Retry<M> {
    /// Wraps `inner`.
    #[must_use]
    pub const fn new(inner: Arc<M>, options: RetryOptions) -> Self {
        Self { inner, options }
    }

    async fn with_retries<T, F: Future<Output = Result<T>>>(&self, mut call: impl FnMut() -> F) -> Result<T> {
        let deadline = Instant::now() + self.options.max_elapsed;
        let mut attempts = 0;
        loop {
            let error = match call().await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            attempts += 1;
            let pause = self.options.pause_after(attempts, error.kind());
            match pause.filter(|pause| Instant::now() + *pause <= deadline) {
                Some(pause) => sleep(pause).await,
                None => return Err(error),
            }
        }
    }
}

impl RetryOptions {
    /// The pause after the attempt number `attempts`; `None` if no further attempt should be made.
    fn pause_after(&self, attempts: u32, failure: ErrorKind) -> Option<Duration> {
        if attempts >= self.max_attempts {
            return None;
        }
        let factor = 1 << attempts.saturating_sub(1).min(16);
        let backoff = self.initial_backoff.saturating_mul(factor).min(self.max_backoff);
        // Jitter spreads the retries of calls that failed at the same time.
        let jittered = backoff.mul_f64(rand::random_range(0.5..=1.0));
        match failure {
            ErrorKind::Throttled { retry_after: Some(wait) } if wait > self.max_backoff => None,
            ErrorKind::Throttled { retry_after: Some(wait) } => Some(wait + jittered.min(wait / 4)),
            ErrorKind::Throttled { retry_after: None } | ErrorKind::Unavailable => Some(jittered),
            _ => None,
        }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ChatModel for Retry<dyn ChatModel> {
    fn profile(&self) -> &ChatProfile {
        self.inner.profile()
    }

    async fn complete(&self, request: &ChatRequest) -> Result<ChatAnswer> {
        self.with_retries(|| self.inner.complete(request)).await
    }

    async fn stream(&self, request: &ChatRequest) -> Result<ChatStream> {
        self.with_retries(|| start_stream(&*self.inner, request)).await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Embedder for Retry<dyn Embedder> {
    fn profile(&self) -> &EmbedderProfile {
        self.inner.profile()
    }

    async fn embed(&self, kind: EmbedKind, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        match kind {
            EmbedKind::Query => self.with_retries(|| self.inner.embed(kind, texts)).await,
            EmbedKind::Passage => self.inner.embed(kind, texts).await,
        }
    }

    fn letters_per_piece(&self, text: &str) -> Option<f32> {
        self.inner.letters_per_piece(text)
    }
}

/// Starts a stream and waits for its first part.
async fn start_stream(model: &dyn ChatModel, request: &ChatRequest) -> Result<ChatStream> {
    let mut parts = model.stream(request).await?;
    let Some(first) = parts.next().await else {
        return Err(Error::new(ErrorKind::Internal, "stream", "the stream ended without an answer"));
    };
    let first = first?;
    Ok(stream::once(async { Ok(first) }).chain(parts).boxed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ChatPart,
        faulty_model::{FaultyModel, request, text_of},
    };

    const UNAVAILABLE: ErrorKind = ErrorKind::Unavailable;

    fn with_retry(faulty: &Arc<FaultyModel>) -> Retry<dyn ChatModel> {
        Retry::new(Arc::clone(faulty) as Arc<dyn ChatModel>, RetryOptions::default())
    }

    const fn throttled(seconds: u64) -> ErrorKind {
        ErrorKind::Throttled { retry_after: Some(Duration::from_secs(seconds)) }
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_double_and_have_jitter() {
        let mut first_pauses = Vec::new();
        for _ in 0..20 {
            let faulty = FaultyModel::failing([UNAVAILABLE; 3]);
            assert_eq!(with_retry(&faulty).complete(&request()).await.unwrap().text, "one two three");
            let times = faulty.call_times();
            let pauses: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
            for (pause, max) in pauses.iter().zip([0.5, 1.0, 2.0]) {
                assert!(*pause >= max / 2.0 - 0.002 && *pause <= max + 0.002, "{pauses:?}");
            }
            first_pauses.push(pauses[0]);
        }
        assert!(first_pauses.iter().any(|pause| (pause - first_pauses[0]).abs() > 0.001), "{first_pauses:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn retries_stop_at_max_attempts_and_at_max_elapsed() {
        let faulty = FaultyModel::failing([UNAVAILABLE; 9]);
        assert_eq!(with_retry(&faulty).complete(&request()).await.unwrap_err().kind(), UNAVAILABLE);
        assert_eq!(faulty.calls(), 4);
        let faulty = FaultyModel::failing([UNAVAILABLE; 9]);
        let options = RetryOptions {
            max_attempts: 100,
            max_elapsed: Duration::from_secs(3),
            ..RetryOptions::default()
        };
        let model = Retry::new(Arc::clone(&faulty) as Arc<dyn ChatModel>, options);
        let started = Instant::now();
        assert!(model.complete(&request()).await.is_err());
        assert!(started.elapsed() <= Duration::from_secs(3) && faulty.calls() > 2);
    }

    #[tokio::test(start_paused = true)]
    async fn lesson_04_retry_waits_for_retry_after() {
        let faulty = FaultyModel::failing([throttled(7)]);
        with_retry(&faulty).complete(&request()).await.unwrap();
        let times = faulty.call_times();
        let pause = times[1] - times[0];
        assert!(pause >= Duration::from_secs(7) && pause < Duration::from_secs(9), "{pause:?}");
        // A longer time than `max_backoff` fails the call; it is not shortened.
        let faulty = FaultyModel::failing([throttled(31)]);
        assert_eq!(with_retry(&faulty).complete(&request()).await.unwrap_err().kind(), throttled(31));
        assert_eq!(faulty.calls(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn permanent_failures_are_not_retried() {
        for kind in [ErrorKind::Config, ErrorKind::TooLarge, ErrorKind::Input, ErrorKind::Internal] {
            let faulty = FaultyModel::failing([kind]);
            assert_eq!(with_retry(&faulty).complete(&request()).await.unwrap_err().kind(), kind);
            assert_eq!(faulty.calls(), 1);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn streams_are_retried_only_before_their_first_part() {
        let faulty = FaultyModel::failing([UNAVAILABLE]);
        assert_eq!(
            text_of(with_retry(&faulty).stream(&request()).await.unwrap()).await.unwrap(),
            "one two three"
        );
        assert_eq!(faulty.calls(), 2);
        let faulty = FaultyModel::breaking_after(0, [UNAVAILABLE]);
        assert_eq!(
            text_of(with_retry(&faulty).stream(&request()).await.unwrap()).await.unwrap(),
            "one two three"
        );
        assert_eq!(faulty.calls(), 2);
        let faulty = FaultyModel::breaking_after(1, [UNAVAILABLE]);
        let mut parts = with_retry(&faulty).stream(&request()).await.unwrap();
        assert_eq!(parts.next().await.unwrap().unwrap(), ChatPart::Text("one ".to_owned()));
        assert_eq!(parts.next().await.unwrap().unwrap_err().kind(), UNAVAILABLE);
        assert_eq!(faulty.calls(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn embedder_retries_queries_but_not_passages() {
        let faulty = FaultyModel::failing([UNAVAILABLE, UNAVAILABLE]);
        let embedder = Retry::new(Arc::clone(&faulty) as Arc<dyn Embedder>, RetryOptions::default());
        let texts = ["a text".to_owned()];
        assert!(embedder.embed(EmbedKind::Passage, &texts).await.is_err());
        assert_eq!(faulty.calls(), 1);
        assert_eq!(embedder.embed(EmbedKind::Query, &texts).await.unwrap().len(), 1);
        assert_eq!(faulty.calls(), 3);
    }
}
