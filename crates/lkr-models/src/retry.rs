//! Models that are asked again.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use tokio::time::{Instant, sleep};

use crate::{
    ChatAnswer, ChatModel, ChatProfile, ChatRequest, ChatStream, EmbedKind, Embedder, EmbedderProfile, Error,
    ErrorKind, Result,
};

/// How often and when a model is asked again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryOptions {
    /// How often it is asked at most.
    pub tries: u32,
    /// The first pause; it doubles with each.
    pub pause: Duration,
    /// The longest pause, and the longest that the model may ask for: who asks to be left alone for longer is.
    pub longest_pause: Duration,
    /// No try begins later than this after the first.
    pub patience: Duration,
}

impl Default for RetryOptions {
    fn default() -> Self {
        Self {
            tries: 4,
            pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(30),
            patience: Duration::from_secs(60),
        }
    }
}

/// A model that is asked again where that may help, after pauses that double and are never quite the same, or the time
/// that it names.
///
/// An answer in parts is asked for again until its first part has come. Of an embedder, queries alone are asked again:
/// passages are for [`AdaptiveBatch`](crate::AdaptiveBatch).
#[derive(Debug)]
pub struct Retry<M: ?Sized> {
    inner: Arc<M>,
    options: RetryOptions,
}

impl<M: ?Sized> Retry<M> {
    /// Asks `inner`.
    #[must_use]
    pub const fn new(inner: Arc<M>, options: RetryOptions) -> Self {
        Self { inner, options }
    }

    async fn again<T, F: Future<Output = Result<T>>>(&self, mut call: impl FnMut() -> F) -> Result<T> {
        let deadline = Instant::now() + self.options.patience;
        let mut tries = 0;
        loop {
            let error = match call().await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            tries += 1;
            let pause = self.options.pause_after(tries, error.kind());
            match pause.filter(|pause| Instant::now() + *pause <= deadline) {
                Some(pause) => sleep(pause).await,
                None => return Err(error),
            }
        }
    }
}

impl RetryOptions {
    /// How long to wait after so many tries; `None` where another would not help.
    fn pause_after(&self, tries: u32, failed: ErrorKind) -> Option<Duration> {
        if tries >= self.tries {
            return None;
        }
        let doubled = self.pause.saturating_mul(1 << tries.saturating_sub(1).min(16)).min(self.longest_pause);
        // Those who failed together do not come back together.
        let some = doubled.mul_f64(rand::random_range(0.5..=1.0));
        match failed {
            ErrorKind::Throttled { retry_after: Some(wait) } if wait > self.longest_pause => None,
            ErrorKind::Throttled { retry_after: Some(wait) } => Some(wait + some.min(wait / 4)),
            ErrorKind::Throttled { retry_after: None } | ErrorKind::Unavailable => Some(some),
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
        self.again(|| self.inner.complete(request)).await
    }

    async fn stream(&self, request: &ChatRequest) -> Result<ChatStream> {
        self.again(|| begun(&*self.inner, request)).await
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
            EmbedKind::Query => self.again(|| self.inner.embed(kind, texts)).await,
            EmbedKind::Passage => self.inner.embed(kind, texts).await,
        }
    }

    fn letters_per_piece(&self, text: &str) -> Option<f32> {
        self.inner.letters_per_piece(text)
    }
}

/// A stream whose first part has come.
async fn begun(model: &dyn ChatModel, request: &ChatRequest) -> Result<ChatStream> {
    let mut parts = model.stream(request).await?;
    let Some(first) = parts.next().await else {
        return Err(Error::new(ErrorKind::Internal, "stream", "it ended without an answer"));
    };
    let first = first?;
    Ok(stream::once(async { Ok(first) }).chain(parts).boxed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ChatPart,
        faulty::{Faulty, request, text_of},
    };

    const UNAVAILABLE: ErrorKind = ErrorKind::Unavailable;

    fn retried(faulty: &Arc<Faulty>) -> Retry<dyn ChatModel> {
        Retry::new(Arc::clone(faulty) as Arc<dyn ChatModel>, RetryOptions::default())
    }

    const fn throttled(seconds: u64) -> ErrorKind {
        ErrorKind::Throttled { retry_after: Some(Duration::from_secs(seconds)) }
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_double_and_differ() {
        let mut firsts = Vec::new();
        for _ in 0..20 {
            let faulty = Faulty::failing([UNAVAILABLE; 3]);
            assert_eq!(retried(&faulty).complete(&request()).await.unwrap().text, "one two three");
            let at = faulty.asked();
            let pauses: Vec<f64> = at.windows(2).map(|at| (at[1] - at[0]).as_secs_f64()).collect();
            for (pause, most) in pauses.iter().zip([0.5, 1.0, 2.0]) {
                assert!(*pause >= most / 2.0 - 0.002 && *pause <= most + 0.002, "{pauses:?}");
            }
            firsts.push(pauses[0]);
        }
        assert!(firsts.iter().any(|first| (first - firsts[0]).abs() > 0.001), "{firsts:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn tries_and_patience_come_to_an_end() {
        let faulty = Faulty::failing([UNAVAILABLE; 9]);
        assert_eq!(retried(&faulty).complete(&request()).await.unwrap_err().kind(), UNAVAILABLE);
        assert_eq!(faulty.asked().len(), 4);
        let faulty = Faulty::failing([UNAVAILABLE; 9]);
        let options =
            RetryOptions { tries: 100, patience: Duration::from_secs(3), ..RetryOptions::default() };
        let impatient = Retry::new(Arc::clone(&faulty) as Arc<dyn ChatModel>, options);
        let begun = Instant::now();
        assert!(impatient.complete(&request()).await.is_err());
        assert!(begun.elapsed() <= Duration::from_secs(3) && faulty.asked().len() > 2);
    }

    #[tokio::test(start_paused = true)]
    async fn lesson_04_a_time_to_wait_is_honoured() {
        let faulty = Faulty::failing([throttled(7)]);
        retried(&faulty).complete(&request()).await.unwrap();
        let at = faulty.asked();
        assert!(at[1] - at[0] >= Duration::from_secs(7) && at[1] - at[0] < Duration::from_secs(9), "{at:?}");
        // Nobody waits for longer than that, and nobody is asked sooner than he wants.
        let faulty = Faulty::failing([throttled(31)]);
        assert_eq!(retried(&faulty).complete(&request()).await.unwrap_err().kind(), throttled(31));
        assert_eq!(faulty.asked().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_another_try_does_not_mend_is_said_at_once() {
        for kind in [ErrorKind::Config, ErrorKind::TooLarge, ErrorKind::Input, ErrorKind::Internal] {
            let faulty = Faulty::failing([kind]);
            assert_eq!(retried(&faulty).complete(&request()).await.unwrap_err().kind(), kind);
            assert_eq!(faulty.asked().len(), 1);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn streams_are_asked_for_again_until_their_first_part() {
        let faulty = Faulty::failing([UNAVAILABLE]);
        assert_eq!(
            text_of(retried(&faulty).stream(&request()).await.unwrap()).await.unwrap(),
            "one two three"
        );
        assert_eq!(faulty.asked().len(), 2);
        let faulty = Faulty::breaking_after(0, [UNAVAILABLE]);
        assert_eq!(
            text_of(retried(&faulty).stream(&request()).await.unwrap()).await.unwrap(),
            "one two three"
        );
        assert_eq!(faulty.asked().len(), 2);
        let faulty = Faulty::breaking_after(1, [UNAVAILABLE]);
        let mut parts = retried(&faulty).stream(&request()).await.unwrap();
        assert_eq!(parts.next().await.unwrap().unwrap(), ChatPart::Text("one ".to_owned()));
        assert_eq!(parts.next().await.unwrap().unwrap_err().kind(), UNAVAILABLE);
        assert_eq!(faulty.asked().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn of_an_embedder_queries_alone_are_asked_again() {
        let faulty = Faulty::failing([UNAVAILABLE, UNAVAILABLE]);
        let retried = Retry::new(Arc::clone(&faulty) as Arc<dyn Embedder>, RetryOptions::default());
        let texts = ["a text".to_owned()];
        assert!(retried.embed(EmbedKind::Passage, &texts).await.is_err());
        assert_eq!(faulty.asked().len(), 1);
        assert_eq!(retried.embed(EmbedKind::Query, &texts).await.unwrap().len(), 1);
        assert_eq!(faulty.asked().len(), 3);
    }
}
