//! Models that are asked for no more than so much at once.

use std::{num::NonZeroUsize, sync::Arc};

use async_trait::async_trait;
use futures_util::StreamExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{
    ChatAnswer, ChatModel, ChatProfile, ChatRequest, ChatStream, EmbedKind, Embedder, EmbedderProfile, Error,
    ErrorKind, Result,
};

/// A model that answers so many calls at once, and keeps the others waiting in their order.
///
/// An answer in parts counts until its stream is dropped. Of an embedder's, one call is kept for queries where there is
/// more than one, and however many passages wait, at most one of their calls stands before a query.
#[derive(Debug)]
pub struct ConcurrencyLimit<M: ?Sized> {
    inner: Arc<M>,
    calls: Arc<Semaphore>,
    /// What passages have to have first.
    passages: Arc<Semaphore>,
}

/// The order of the fields counts: who waits for a call gets it before the next passages do.
struct Turn {
    _call: OwnedSemaphorePermit,
    _passages: Option<OwnedSemaphorePermit>,
}

impl<M: ?Sized> ConcurrencyLimit<M> {
    /// Has `inner` answer so many calls at once.
    #[must_use]
    pub fn new(inner: Arc<M>, at_once: NonZeroUsize) -> Self {
        let at_once = at_once.get().min(Semaphore::MAX_PERMITS);
        let calls = Arc::new(Semaphore::new(at_once));
        let passages = Arc::new(Semaphore::new((at_once - 1).max(1)));
        Self { inner, calls, passages }
    }

    async fn turn(&self, of_passages: bool) -> Result<Turn> {
        let passages = if of_passages { Some(one_of(&self.passages).await?) } else { None };
        Ok(Turn { _call: one_of(&self.calls).await?, _passages: passages })
    }
}

async fn one_of(semaphore: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit> {
    let closed = |error| Error::new(ErrorKind::Internal, "wait for one's turn", error);
    Arc::clone(semaphore).acquire_owned().await.map_err(closed)
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ChatModel for ConcurrencyLimit<dyn ChatModel> {
    fn profile(&self) -> &ChatProfile {
        self.inner.profile()
    }

    async fn complete(&self, request: &ChatRequest) -> Result<ChatAnswer> {
        let _turn = self.turn(false).await?;
        self.inner.complete(request).await
    }

    async fn stream(&self, request: &ChatRequest) -> Result<ChatStream> {
        let turn = self.turn(false).await?;
        let parts = self.inner.stream(request).await?;
        let held = move |part| {
            let _ = &turn;
            part
        };
        Ok(parts.map(held).boxed())
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Embedder for ConcurrencyLimit<dyn Embedder> {
    fn profile(&self) -> &EmbedderProfile {
        self.inner.profile()
    }

    async fn embed(&self, kind: EmbedKind, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        let _turn = self.turn(kind == EmbedKind::Passage).await?;
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
    use crate::faulty::{Faulty, request, text_of};

    const SECOND: Duration = Duration::from_secs(1);

    fn at_once(count: usize) -> NonZeroUsize {
        NonZeroUsize::new(count).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_run_and_the_others_wait() {
        let faulty = Faulty::taking(SECOND);
        let limited = Arc::new(ConcurrencyLimit::new(Arc::clone(&faulty) as Arc<dyn ChatModel>, at_once(3)));
        let (mut calls, begun) = (JoinSet::new(), Instant::now());
        for _ in 0..9 {
            let limited = Arc::clone(&limited);
            calls.spawn(async move { limited.complete(&request()).await.unwrap() });
        }
        assert_eq!(calls.join_all().await.len(), 9);
        assert_eq!(faulty.most(), 3);
        assert!(begun.elapsed() >= 3 * SECOND && begun.elapsed() < 4 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_counts_until_it_is_dropped() {
        let faulty = Faulty::failing([]);
        let limited = ConcurrencyLimit::new(Arc::clone(&faulty) as Arc<dyn ChatModel>, at_once(1));
        let parts = limited.stream(&request()).await.unwrap();
        let second = request();
        let second = limited.complete(&second);
        tokio::pin!(second);
        assert!(tokio::time::timeout(SECOND, &mut second).await.is_err());
        assert_eq!(text_of(parts).await.unwrap(), "one two three");
        second.await.unwrap();
        // A call that nobody waits for any more takes no place either.
        drop(limited.complete(&request()));
        limited.complete(&request()).await.unwrap();
    }

    async fn time_of_a_query(count: usize) -> Duration {
        let faulty = Faulty::taking(SECOND);
        let limited =
            Arc::new(ConcurrencyLimit::new(Arc::clone(&faulty) as Arc<dyn Embedder>, at_once(count)));
        let texts = ["a text".to_owned()];
        let mut passages = JoinSet::new();
        for _ in 0..50 {
            let (limited, texts) = (Arc::clone(&limited), texts.clone());
            passages.spawn(async move { limited.embed(EmbedKind::Passage, &texts).await.unwrap() });
        }
        tokio::time::sleep(SECOND / 2).await;
        let begun = Instant::now();
        limited.embed(EmbedKind::Query, &texts).await.unwrap();
        let took = begun.elapsed();
        passages.join_all().await;
        assert_eq!(faulty.kinds().len(), 51);
        took
    }

    #[tokio::test(start_paused = true)]
    async fn queries_do_not_wait_behind_passages() {
        // At once where more than one call may run; else after the one that runs.
        assert!(time_of_a_query(2).await < SECOND + SECOND / 10);
        assert!(time_of_a_query(1).await < 2 * SECOND);
    }
}
