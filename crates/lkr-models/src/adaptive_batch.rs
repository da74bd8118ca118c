//! Adapts the batch size of a remote embedder to its speed and to its refusals.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use tokio::time::{Instant, sleep_until};

use crate::{EmbedKind, Embedder, EmbedderProfile, Error, ErrorKind, Result};

/// The bounds of [`AdaptiveBatch`]. See docs/studies.md#adaptive-batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdaptiveBatchOptions {
    /// The size of the first batch, in texts.
    pub initial_size: usize,
    /// The largest batch, in texts.
    pub max_size: usize,
    /// The longest time that a batch should take, because a query may wait behind it.
    pub target_latency: Duration,
    /// The pause after the first refusal that names no time to wait. It doubles with each further refusal.
    pub initial_backoff: Duration,
    /// The longest pause after a refusal that names no time to wait.
    pub max_backoff: Duration,
    /// The longest time that one call waits in total. Then it fails with the last refusal.
    pub max_wait: Duration,
}

impl Default for AdaptiveBatchOptions {
    fn default() -> Self {
        Self {
            initial_size: 8,
            max_size: 64,
            target_latency: Duration::from_secs(2),
            initial_backoff: Duration::from_millis(500),
            max_backoff: Duration::from_secs(30),
            max_wait: Duration::from_secs(120),
        }
    }
}

/// A decorator that sends passages to a remote embedder in batches of adaptive size: larger ones while the embedder is
/// fast, smaller ones while it is slow or refuses.
///
/// A batch that is too large is halved. A throttled batch is repeated after the time that the provider names, and after
/// an exponential backoff if it names none or is unavailable. All callers share the batch size and the backoff: while
/// the provider refuses, one of them probes it and the others wait. Queries are forwarded unchanged, because a user
/// waits for them.
#[derive(Debug)]
pub struct AdaptiveBatch {
    inner: Arc<dyn Embedder>,
    options: AdaptiveBatchOptions,
    state: Mutex<BatchState>,
    /// Held by the caller that probes the provider while the others wait.
    probe: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct BatchState {
    size: usize,
    /// Whether no batch was too large, too slow or refused yet. Until then, each fast batch doubles the size.
    slow_start: bool,
    /// The number of consecutive successful batches at this size.
    successes: u32,
    /// The number of consecutive refused batches.
    refusals: u32,
    /// No batch is sent before this time.
    not_before: Option<Instant>,
}

/// The number of consecutive successes after which the batch size doubles. See docs/studies.md#adaptive-batch.
const SUCCESSES_TO_GROW: u32 = 8;

impl AdaptiveBatch {
    /// Wraps `inner`.
    #[must_use]
    pub fn new(inner: Arc<dyn Embedder>, options: AdaptiveBatchOptions) -> Self {
        let size = options.initial_size.min(options.max_size).max(1);
        let state = BatchState { size, slow_start: true, successes: 0, refusals: 0, not_before: None };
        Self { inner, options, state: Mutex::new(state), probe: tokio::sync::Mutex::default() }
    }

    async fn embed_passages(&self, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        let deadline = Instant::now() + self.options.max_wait;
        let mut vectors = Vec::with_capacity(texts.len());
        while let Some(rest) = texts.get(vectors.len()..).filter(|rest| !rest.is_empty()) {
            let _probe = self.wait_for_backoff().await;
            let batch = rest.get(..self.state().size).unwrap_or(rest);
            let started = Instant::now();
            match self.inner.embed(EmbedKind::Passage, batch).await {
                Ok(more) if more.len() == batch.len() => {
                    self.record_success(batch.len(), started.elapsed());
                    vectors.extend(more);
                }
                Ok(more) => {
                    let reason = format!("got {} vectors for {} texts", more.len(), batch.len());
                    return Err(Error::new(ErrorKind::Internal, "embed", reason));
                }
                Err(error) => self.record_failure(error, batch.len(), deadline)?,
            }
        }
        Ok(vectors)
    }

    /// Returns at once while the provider accepts batches. After a refusal, waits for the lock of the probe and then for
    /// the end of the backoff.
    async fn wait_for_backoff(&self) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        if self.state().refusals == 0 {
            return None;
        }
        let probe = self.probe.lock().await;
        let not_before = self.state().not_before;
        if let Some(not_before) = not_before {
            sleep_until(not_before).await;
        }
        // If another caller's probe succeeded meanwhile, the lock is released so that the others proceed too.
        (self.state().refusals > 0).then_some(probe)
    }

    /// Updates the batch size after a batch of `texts` texts that took `elapsed`.
    fn record_success(&self, texts: usize, elapsed: Duration) {
        let target = self.options.target_latency;
        let mut state = self.state();
        (state.refusals, state.not_before) = (0, None);
        if elapsed > target {
            state.shrink_below(texts);
            return;
        }
        state.successes += 1;
        let may_grow = if state.slow_start {
            elapsed < target / 4
        } else {
            state.successes >= SUCCESSES_TO_GROW && elapsed < target / 2
        };
        if may_grow && texts >= state.size {
            state.size = state.size.saturating_mul(2).min(self.options.max_size.max(1));
            state.successes = 0;
        }
    }

    /// Updates batch size and backoff after a failed batch. Returns the error if a repetition cannot help or would begin
    /// after `deadline`.
    fn record_failure(&self, error: Error, texts: usize, deadline: Instant) -> Result<()> {
        let pause = match error.kind() {
            ErrorKind::TooLarge if texts > 1 => Duration::ZERO,
            ErrorKind::TooLarge => return Err(Error::new(ErrorKind::Input, "embed", error)),
            ErrorKind::Throttled { retry_after } => retry_after.unwrap_or_else(|| self.backoff()),
            ErrorKind::Unavailable => self.backoff(),
            _ => return Err(error),
        };
        let not_before = Instant::now() + pause;
        let mut state = self.state();
        state.shrink_below(texts);
        if pause.is_zero() {
            return Ok(());
        }
        state.refusals = state.refusals.saturating_add(1);
        // A concurrent refusal may have named a longer time.
        state.not_before = state.not_before.max(Some(not_before));
        if not_before > deadline { Err(error) } else { Ok(()) }
    }

    fn backoff(&self) -> Duration {
        let doubled = self.options.initial_backoff.saturating_mul(1 << self.state().refusals.min(16));
        doubled.min(self.options.max_backoff)
    }

    fn state(&self) -> MutexGuard<'_, BatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BatchState {
    /// Halves the size because a batch of `texts` texts was too large.
    fn shrink_below(&mut self, texts: usize) {
        self.size = (texts / 2).clamp(1, self.size);
        (self.slow_start, self.successes) = (false, 0);
    }
}

#[async_trait]
impl Embedder for AdaptiveBatch {
    fn profile(&self) -> &EmbedderProfile {
        self.inner.profile()
    }

    async fn embed(&self, kind: EmbedKind, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        match kind {
            EmbedKind::Query => self.inner.embed(kind, texts).await,
            EmbedKind::Passage => self.embed_passages(texts).await,
        }
    }

    fn letters_per_piece(&self, text: &str) -> Option<f32> {
        self.inner.letters_per_piece(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryEmbedder;

    /// Accepts at most `max_texts` texts a batch, fails first with the given errors, and records the batches.
    #[derive(Debug)]
    struct RefusingEmbedder {
        inner: MemoryEmbedder,
        max_texts: usize,
        refusals: Mutex<Vec<ErrorKind>>,
        /// When each batch arrived, and its size.
        batches: Mutex<Vec<(Duration, usize)>>,
        started: Instant,
    }

    impl RefusingEmbedder {
        fn new(max_texts: usize, refusals: &[ErrorKind]) -> Arc<Self> {
            Arc::new(Self {
                inner: MemoryEmbedder::default(),
                max_texts,
                refusals: Mutex::new(refusals.iter().rev().copied().collect()),
                batches: Mutex::default(),
                started: Instant::now(),
            })
        }

        fn sizes(&self) -> Vec<usize> {
            self.batches.lock().unwrap().iter().map(|(_, size)| *size).collect()
        }

        fn times(&self) -> Vec<Duration> {
            self.batches.lock().unwrap().iter().map(|(at, _)| *at).collect()
        }
    }

    #[async_trait]
    impl Embedder for RefusingEmbedder {
        fn profile(&self) -> &EmbedderProfile {
            self.inner.profile()
        }

        async fn embed(&self, kind: EmbedKind, texts: &[String]) -> Result<Vec<Vec<f32>>> {
            self.batches.lock().unwrap().push((self.started.elapsed(), texts.len()));
            tokio::task::yield_now().await;
            let refusal = self.refusals.lock().unwrap().pop();
            if let Some(kind) = refusal {
                return Err(Error::new(kind, "embed", "scripted refusal"));
            }
            if texts.len() > self.max_texts {
                return Err(Error::new(ErrorKind::TooLarge, "embed", "too many"));
            }
            self.inner.embed(kind, texts).await
        }

        fn letters_per_piece(&self, _: &str) -> Option<f32> {
            None
        }
    }

    fn texts(n: usize) -> Vec<String> {
        (0..n).map(|n| format!("text {n}")).collect()
    }

    async fn assert_vectors_unchanged(adaptive: &AdaptiveBatch, n: usize) {
        let vectors = adaptive.embed(EmbedKind::Passage, &texts(n)).await.unwrap();
        assert_eq!(vectors, MemoryEmbedder::default().embed(EmbedKind::Passage, &texts(n)).await.unwrap());
    }

    const RETRY_AFTER: Duration = Duration::from_millis(400);

    fn options() -> AdaptiveBatchOptions {
        let (initial_backoff, max_wait) = (Duration::from_millis(10), Duration::from_millis(600));
        AdaptiveBatchOptions {
            initial_backoff,
            max_wait,
            initial_size: 64,
            ..AdaptiveBatchOptions::default()
        }
    }

    /// Takes `time_per_text` for each text and records the batch sizes.
    #[derive(Debug)]
    struct SlowEmbedder {
        inner: MemoryEmbedder,
        time_per_text: Duration,
        sizes: Mutex<Vec<usize>>,
    }

    impl SlowEmbedder {
        fn new(time_per_text: Duration) -> Arc<Self> {
            Arc::new(Self { inner: MemoryEmbedder::default(), time_per_text, sizes: Mutex::default() })
        }
    }

    #[async_trait]
    impl Embedder for SlowEmbedder {
        fn profile(&self) -> &EmbedderProfile {
            self.inner.profile()
        }

        async fn embed(&self, kind: EmbedKind, texts: &[String]) -> Result<Vec<Vec<f32>>> {
            self.sizes.lock().unwrap().push(texts.len());
            tokio::time::sleep(self.time_per_text * u32::try_from(texts.len()).unwrap()).await;
            self.inner.embed(kind, texts).await
        }

        fn letters_per_piece(&self, _: &str) -> Option<f32> {
            None
        }
    }

    #[tokio::test(start_paused = true)]
    async fn batch_size_follows_embedder_speed() {
        for (millis, expected) in
            [(1, vec![8, 16, 32, 64, 64, 16]), (100, vec![8; 25]), (400, vec![8, 4, 4, 4])]
        {
            let slow = SlowEmbedder::new(Duration::from_millis(millis));
            let adaptive = AdaptiveBatch::new(slow.clone(), AdaptiveBatchOptions::default());
            assert_vectors_unchanged(&adaptive, expected.iter().sum()).await;
            assert_eq!(*slow.sizes.lock().unwrap(), expected, "{millis} ms");
        }
        let slow = SlowEmbedder::new(Duration::from_secs(9));
        let adaptive = AdaptiveBatch::new(slow.clone(), AdaptiveBatchOptions::default());
        assert_vectors_unchanged(&adaptive, 20).await;
        assert_eq!(slow.sizes.lock().unwrap()[..6], [8, 4, 2, 1, 1, 1]);
    }

    #[tokio::test]
    async fn lesson_04_batch_that_is_too_large_is_split() {
        let provider = RefusingEmbedder::new(10, &[]);
        let adaptive = AdaptiveBatch::new(provider.clone(), options());
        assert_vectors_unchanged(&adaptive, 64).await;
        assert_eq!(provider.sizes(), [64, 32, 16, 8, 8, 8, 8, 8, 8, 8, 8]);
        // After enough successes a larger batch is tried. If it is refused, its texts are sent again.
        assert_vectors_unchanged(&adaptive, 64).await;
        assert_eq!(provider.sizes()[11..13], [16, 8]);
        let adaptive = AdaptiveBatch::new(RefusingEmbedder::new(0, &[]), options());
        assert_eq!(adaptive.embed(EmbedKind::Passage, &texts(3)).await.unwrap_err().kind(), ErrorKind::Input);
    }

    #[tokio::test(start_paused = true)]
    async fn lesson_04_retry_after_delays_all_callers() {
        let throttled = ErrorKind::Throttled { retry_after: Some(RETRY_AFTER) };
        let provider = RefusingEmbedder::new(100, &[throttled]);
        let adaptive = Arc::new(AdaptiveBatch::new(provider.clone(), AdaptiveBatchOptions::default()));
        let first = tokio::spawn({
            let adaptive = Arc::clone(&adaptive);
            async move { assert_vectors_unchanged(&adaptive, 20).await }
        });
        // Callers that arrive during the backoff wait too.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let others = (0..6).map(|_| {
            let adaptive = Arc::clone(&adaptive);
            tokio::spawn(async move { assert_vectors_unchanged(&adaptive, 5).await })
        });
        for call in others.collect::<Vec<_>>().into_iter().chain([first]) {
            call.await.unwrap();
        }
        let (times, sizes) = (provider.times(), provider.sizes());
        assert!(times[1..].iter().all(|at| *at >= RETRY_AFTER), "{times:?}");
        assert!(sizes[1] <= 10, "the batch size was not halved: {sizes:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn only_one_caller_probes_during_backoff() {
        let provider = RefusingEmbedder::new(100, &[ErrorKind::Unavailable; 3]);
        let adaptive = Arc::new(AdaptiveBatch::new(provider.clone(), options()));
        let calls = (0..6).map(|n| {
            let adaptive = Arc::clone(&adaptive);
            let delay = Duration::from_millis(n);
            tokio::spawn(async move {
                tokio::time::sleep(delay).await;
                assert_vectors_unchanged(&adaptive, 1).await;
            })
        });
        for call in calls.collect::<Vec<_>>() {
            call.await.unwrap();
        }
        let times = provider.times();
        assert_eq!(times.len(), 9, "{times:?}");
        assert!(
            times[1] > times[0] && times[2] > times[1] && times[3] > times[2],
            "probes overlap: {times:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn lesson_04_unavailable_provider_is_backed_off_exponentially() {
        let provider = RefusingEmbedder::new(100, &[ErrorKind::Unavailable; 5]);
        let adaptive = AdaptiveBatch::new(provider.clone(), options());
        assert_vectors_unchanged(&adaptive, 64).await;
        let times: Vec<u128> = provider.times().iter().map(Duration::as_millis).collect();
        assert!(times[1] >= 10 && times[2] >= times[1] + 20 && times[3] >= times[2] + 40, "{times:?}");
        assert_eq!(provider.sizes()[..6], [64, 32, 16, 8, 4, 2]);

        let unavailable = RefusingEmbedder::new(100, &[ErrorKind::Unavailable; 100]);
        let adaptive = AdaptiveBatch::new(unavailable, options());
        let error = adaptive.embed(EmbedKind::Passage, &texts(1)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.is_retryable());
    }

    #[tokio::test]
    async fn permanent_failures_and_queries_are_not_repeated() {
        let provider = RefusingEmbedder::new(100, &[ErrorKind::Config, ErrorKind::Unavailable]);
        let adaptive = AdaptiveBatch::new(provider.clone(), options());
        let error = adaptive.embed(EmbedKind::Passage, &texts(2)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        let error = adaptive.embed(EmbedKind::Query, &texts(1)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(adaptive.embed(EmbedKind::Query, &texts(1)).await.is_ok());
        assert_eq!(provider.sizes(), [2, 1, 1], "a batch was repeated");
    }
}
