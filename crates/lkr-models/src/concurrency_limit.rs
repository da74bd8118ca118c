//! Bounds the calls of a model that run at once.

use std::{num::NonZeroUsize, sync::Arc};

use async_trait::async_trait;
use futures_util::StreamExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{
    ChatAnswer, ChatModel, ChatProfile, ChatRequest, ChatStream, EmbedKind, Embedder, EmbedderProfile, Error,
    ErrorKind, Result,
};

/// A decorator that runs a bounded number of calls at once and queues the others in order of arrival.
///
/// A stream counts until it is dropped. For an embedder with a limit above one, one slot is reserved for queries. At most
/// one call for passages is ahead of a query in the queue, regardless of how many wait.
#[derive(Debug)]
pub struct ConcurrencyLimit<M: ?Sized> {
    inner: Arc<M>,
    calls: Arc<Semaphore>,
    /// A call for passages acquires this semaphore before `calls`.
    passages: Arc<Semaphore>,
}

/// Fields are dropped in order: `_call` is released first, so a query that waits for it precedes the next passages.
struct CallPermit {
    _call: OwnedSemaphorePermit,
    _passages: Option<OwnedSemaphorePermit>,
}

impl<M: ?Sized> ConcurrencyLimit<M> {
    /// Wraps `inner`, and runs at most `max_concurrent` calls at once.
    #[must_use]
    pub fn new(inner: Arc<M>, max_concurrent: NonZeroUsize) -> Self {
        let max_concurrent = max_concurrent.get().min(Semaphore::MAX_PERMITS);
        let calls = Arc::new(Semaphore::new(max_concurrent));
        let passages = Arc::new(Semaphore::new((max_concurrent - 1).max(1)));
        Self { inner, calls, passages }
    }

    async fn acquire(&self, for_passages: bool) -> Result<CallPermit> {
        let passages = if for_passages { Some(acquire_one(&self.passages).await?) } else { None };
        Ok(CallPermit { _call: acquire_one(&self.calls).await?, _passages: passages })
    }
}

async fn acquire_one(semaphore: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit> {
    let closed = |error| Error::new(ErrorKind::Internal, "acquire call permit", error);
    Arc::clone(semaphore).acquire_owned().await.map_err(closed)
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ChatModel for ConcurrencyLimit<dyn ChatModel> {
    fn profile(&self) -> &ChatProfile {
        self.inner.profile()
    }

    async fn complete(&self, request: &ChatRequest) -> Result<ChatAnswer> {
        let _permit = self.acquire(false).await?;
        self.inner.complete(request).await
    }

    async fn stream(&self, request: &ChatRequest) -> Result<ChatStream> {
        let permit = self.acquire(false).await?;
        let parts = self.inner.stream(request).await?;
        let hold_permit = move |part| {
            let _ = &permit;
            part
        };
        Ok(parts.map(hold_permit).boxed())
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Embedder for ConcurrencyLimit<dyn Embedder> {
    fn profile(&self) -> &EmbedderProfile {
        self.inner.profile()
    }

    async fn embed(&self, kind: EmbedKind, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        let _permit = self.acquire(kind == EmbedKind::Passage).await?;
        self.inner.embed(kind, texts).await
    }

    fn letters_per_piece(&self, text: &str) -> Option<f32> {
        self.inner.letters_per_piece(text)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{task::JoinSet, time::Instant};

    use super::*;
    use crate::faulty_model::{FaultyModel, request, text_of};

    const SECOND: Duration = Duration::from_secs(1);

    fn limit(count: usize) -> NonZeroUsize {
        NonZeroUsize::new(count).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn calls_beyond_the_limit_wait() {
        let faulty = FaultyModel::delayed(SECOND);
        let limited = Arc::new(ConcurrencyLimit::new(Arc::clone(&faulty) as Arc<dyn ChatModel>, limit(3)));
        let (mut calls, started) = (JoinSet::new(), Instant::now());
        for _ in 0..9 {
            let limited = Arc::clone(&limited);
            calls.spawn(async move { limited.complete(&request()).await.unwrap() });
        }
        assert_eq!(calls.join_all().await.len(), 9);
        assert_eq!(faulty.max_running(), 3);
        assert!(started.elapsed() >= 3 * SECOND && started.elapsed() < 4 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn stream_holds_its_permit_until_dropped() {
        let faulty = FaultyModel::failing([]);
        let limited = ConcurrencyLimit::new(Arc::clone(&faulty) as Arc<dyn ChatModel>, limit(1));
        let parts = limited.stream(&request()).await.unwrap();
        let second = request();
        let second = limited.complete(&second);
        tokio::pin!(second);
        assert!(tokio::time::timeout(SECOND, &mut second).await.is_err());
        assert_eq!(text_of(parts).await.unwrap(), "one two three");
        second.await.unwrap();
        // A call that is dropped before it runs holds no permit.
        drop(limited.complete(&request()));
        limited.complete(&request()).await.unwrap();
    }

    /// The latency of a query while 50 calls for passages run or wait.
    async fn query_latency(count: usize) -> Duration {
        let faulty = FaultyModel::delayed(SECOND);
        let limited = Arc::new(ConcurrencyLimit::new(Arc::clone(&faulty) as Arc<dyn Embedder>, limit(count)));
        let texts = ["a text".to_owned()];
        let mut passages = JoinSet::new();
        for _ in 0..50 {
            let (limited, texts) = (Arc::clone(&limited), texts.clone());
            passages.spawn(async move { limited.embed(EmbedKind::Passage, &texts).await.unwrap() });
        }
        tokio::time::sleep(SECOND / 2).await;
        let started = Instant::now();
        limited.embed(EmbedKind::Query, &texts).await.unwrap();
        let latency = started.elapsed();
        passages.join_all().await;
        assert_eq!(faulty.kinds().len(), 51);
        latency
    }

    #[tokio::test(start_paused = true)]
    async fn queries_do_not_wait_behind_passages() {
        // With a limit of two, a query runs at once. With a limit of one, it waits for the running call only.
        assert!(query_latency(2).await < SECOND + SECOND / 10);
        assert!(query_latency(1).await < 2 * SECOND);
    }
}
