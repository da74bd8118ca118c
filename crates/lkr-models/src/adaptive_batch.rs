//! An embedder that is asked for no more than it bears.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use tokio::time::{Instant, sleep_until};

use crate::{EmbedKind, Embedder, EmbedderProfile, Error, ErrorKind, Result};

/// How an embedder is paced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdaptiveBatchOptions {
    /// How many texts it is sent at a time at first.
    pub at_first: usize,
    /// The most texts that it is sent at a time.
    pub at_once: usize,
    /// How long it may work on what it is sent at a time: whoever asks for one text waits behind it.
    pub busy: Duration,
    /// The first pause after a refusal that names none; it doubles with each.
    pub pause: Duration,
    /// The longest such pause.
    pub longest_pause: Duration,
    /// How long one call waits in all, before it answers as it was refused last.
    pub patience: Duration,
}

impl Default for AdaptiveBatchOptions {
    fn default() -> Self {
        Self {
            at_first: 8,
            at_once: 64,
            busy: Duration::from_secs(2),
            pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(30),
            patience: Duration::from_secs(120),
        }
    }
}

/// An embedder that sends another one, on a machine of its own, fewer texts at a time where they take it long, fewer and
/// later where it refuses, and more where it bears them. All who share it keep its pace: while it refuses, one of them
/// tries and the others wait.
///
/// What is too large is cut in halves. What names a time to wait is tried again after it, what is away after pauses that
/// double. Queries, for which somebody waits, are passed on as they are.
#[derive(Debug)]
pub struct AdaptiveBatch {
    inner: Arc<dyn Embedder>,
    options: AdaptiveBatchOptions,
    pace: Mutex<Pace>,
    /// Whoever tries while the others wait has it.
    trying: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Pace {
    at_once: usize,
    /// Whether nothing was too much yet: then what is answered quickly may be twice as much the next time.
    begins: bool,
    /// How many calls in a row were answered at this size.
    answered: u32,
    /// How many calls in a row were refused.
    refused: u32,
    not_before: Option<Instant>,
}

/// After so many answers in a row, twice as much is tried.
const ANSWERS: u32 = 8;

impl AdaptiveBatch {
    /// Paces `inner`.
    #[must_use]
    pub fn new(inner: Arc<dyn Embedder>, options: AdaptiveBatchOptions) -> Self {
        let at_once = options.at_first.min(options.at_once).max(1);
        let pace = Pace { at_once, begins: true, answered: 0, refused: 0, not_before: None };
        Self { inner, options, pace: Mutex::new(pace), trying: tokio::sync::Mutex::default() }
    }

    async fn embed_passages(&self, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        let deadline = Instant::now() + self.options.patience;
        let mut vectors = Vec::with_capacity(texts.len());
        while let Some(rest) = texts.get(vectors.len()..).filter(|rest| !rest.is_empty()) {
            let _trying = self.turn().await;
            let part = rest.get(..self.pace().at_once).unwrap_or(rest);
            let begun = Instant::now();
            match self.inner.embed(EmbedKind::Passage, part).await {
                Ok(more) if more.len() == part.len() => {
                    self.answered(part.len(), begun.elapsed());
                    vectors.extend(more);
                }
                Ok(more) => {
                    let reason = format!("{} vectors came of {} texts", more.len(), part.len());
                    return Err(Error::new(ErrorKind::Internal, "embed", reason));
                }
                Err(error) => self.refused(error, part.len(), deadline)?,
            }
        }
        Ok(vectors)
    }

    /// Waits until it is one's turn: at once while all goes well, else alone and after the pause.
    async fn turn(&self) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        if self.pace().refused == 0 {
            return None;
        }
        let trying = self.trying.lock().await;
        let not_before = self.pace().not_before;
        if let Some(not_before) = not_before {
            sleep_until(not_before).await;
        }
        // Who waited while another found that all is well again need keep nobody waiting.
        (self.pace().refused > 0).then_some(trying)
    }

    /// Takes note that so many texts were answered in this time.
    fn answered(&self, texts: usize, took: Duration) {
        let busy = self.options.busy;
        let mut pace = self.pace();
        (pace.refused, pace.not_before) = (0, None);
        if took > busy {
            pace.less_than(texts);
            return;
        }
        pace.answered += 1;
        let bears_more =
            if pace.begins { took < busy / 4 } else { pace.answered >= ANSWERS && took < busy / 2 };
        if bears_more && texts >= pace.at_once {
            pace.at_once = pace.at_once.saturating_mul(2).min(self.options.at_once.max(1));
            pace.answered = 0;
        }
    }

    /// Takes note of a refusal; fails where there is nothing to be done about it, or no time.
    fn refused(&self, error: Error, texts: usize, deadline: Instant) -> Result<()> {
        let pause = match error.kind() {
            ErrorKind::TooLarge if texts > 1 => Duration::ZERO,
            ErrorKind::TooLarge => return Err(Error::new(ErrorKind::Input, "embed", error)),
            ErrorKind::Throttled { retry_after } => retry_after.unwrap_or_else(|| self.pause()),
            ErrorKind::Unavailable => self.pause(),
            _ => return Err(error),
        };
        let not_before = Instant::now() + pause;
        let mut pace = self.pace();
        pace.less_than(texts);
        if pause.is_zero() {
            return Ok(());
        }
        pace.refused = pace.refused.saturating_add(1);
        // Another may have been told of a longer time.
        pace.not_before = pace.not_before.max(Some(not_before));
        if not_before > deadline { Err(error) } else { Ok(()) }
    }

    fn pause(&self) -> Duration {
        let doubled = self.options.pause.saturating_mul(1 << self.pace().refused.min(16));
        doubled.min(self.options.longest_pause)
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pace {
    /// So many were too much.
    fn less_than(&mut self, texts: usize) {
        self.at_once = (texts / 2).clamp(1, self.at_once);
        (self.begins, self.answered) = (false, 0);
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
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::MemoryEmbedder;

    /// Takes so many texts at a time, refuses as it is told, and remembers how many it was sent when.
    #[derive(Debug)]
    struct Provider {
        inner: MemoryEmbedder,
        takes: usize,
        refusals: Mutex<Vec<ErrorKind>>,
        sent: Mutex<Vec<(Duration, usize)>>,
        began: Instant,
        at_once: AtomicUsize,
    }

    impl Provider {
        fn new(takes: usize, refusals: &[ErrorKind]) -> Arc<Self> {
            Arc::new(Self {
                inner: MemoryEmbedder::default(),
                takes,
                refusals: Mutex::new(refusals.iter().rev().copied().collect()),
                sent: Mutex::default(),
                began: Instant::now(),
                at_once: AtomicUsize::new(0),
            })
        }

        fn sizes(&self) -> Vec<usize> {
            self.sent.lock().unwrap().iter().map(|(_, size)| *size).collect()
        }
    }

    #[async_trait]
    impl Embedder for Provider {
        fn profile(&self) -> &EmbedderProfile {
            self.inner.profile()
        }

        async fn embed(&self, kind: EmbedKind, texts: &[String]) -> Result<Vec<Vec<f32>>> {
            self.sent.lock().unwrap().push((self.began.elapsed(), texts.len()));
            self.at_once.fetch_add(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            let now = self.at_once.fetch_sub(1, Ordering::SeqCst);
            let refusal = self.refusals.lock().unwrap().pop();
            if let Some(kind) = refusal {
                return Err(Error::new(kind, "embed", format!("told to, to {now} at once")));
            }
            if texts.len() > self.takes {
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

    async fn same_as_unpaced(paced: &AdaptiveBatch, n: usize) {
        let vectors = paced.embed(EmbedKind::Passage, &texts(n)).await.unwrap();
        assert_eq!(vectors, MemoryEmbedder::default().embed(EmbedKind::Passage, &texts(n)).await.unwrap());
    }

    const AFTER: Duration = Duration::from_millis(400);

    /// Nobody waits long in a test.
    fn options() -> AdaptiveBatchOptions {
        let (pause, patience) = (Duration::from_millis(10), Duration::from_millis(600));
        AdaptiveBatchOptions { pause, patience, at_first: 64, ..AdaptiveBatchOptions::default() }
    }

    /// Takes so long for each text.
    #[derive(Debug)]
    struct Slow(MemoryEmbedder, Duration, Mutex<Vec<usize>>);

    #[async_trait]
    impl Embedder for Slow {
        fn profile(&self) -> &EmbedderProfile {
            self.0.profile()
        }

        async fn embed(&self, kind: EmbedKind, texts: &[String]) -> Result<Vec<Vec<f32>>> {
            self.2.lock().unwrap().push(texts.len());
            tokio::time::sleep(self.1 * u32::try_from(texts.len()).unwrap()).await;
            self.0.embed(kind, texts).await
        }

        fn letters_per_piece(&self, _: &str) -> Option<f32> {
            None
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_never_busy_for_long() {
        for (millis, expected) in
            [(1, vec![8, 16, 32, 64, 64, 16]), (100, vec![8; 25]), (400, vec![8, 4, 4, 4])]
        {
            let slow =
                Arc::new(Slow(MemoryEmbedder::default(), Duration::from_millis(millis), Mutex::default()));
            let paced = AdaptiveBatch::new(slow.clone(), AdaptiveBatchOptions::default());
            same_as_unpaced(&paced, expected.iter().sum()).await;
            assert_eq!(*slow.2.lock().unwrap(), expected, "{millis} ms");
        }
        let slow = Arc::new(Slow(MemoryEmbedder::default(), Duration::from_secs(9), Mutex::default()));
        same_as_unpaced(&AdaptiveBatch::new(slow.clone(), AdaptiveBatchOptions::default()), 20).await;
        assert_eq!(slow.2.lock().unwrap()[..6], [8, 4, 2, 1, 1, 1]);
    }

    #[tokio::test]
    async fn lesson_04_what_is_too_much_is_split() {
        let provider = Provider::new(10, &[]);
        let paced = AdaptiveBatch::new(provider.clone(), options());
        same_as_unpaced(&paced, 64).await;
        assert_eq!(provider.sizes(), [64, 32, 16, 8, 8, 8, 8, 8, 8, 8, 8]);
        // Once it was answered often enough, more is tried; what is still too much is not lost.
        same_as_unpaced(&paced, 64).await;
        assert_eq!(provider.sizes()[11..13], [16, 8]);
        let alone = AdaptiveBatch::new(Provider::new(0, &[]), options());
        assert_eq!(alone.embed(EmbedKind::Passage, &texts(3)).await.unwrap_err().kind(), ErrorKind::Input);
    }

    #[tokio::test]
    async fn lesson_04_a_time_to_wait_is_honoured_by_all() {
        let throttled = ErrorKind::Throttled { retry_after: Some(AFTER) };
        let provider = Provider::new(100, &[throttled]);
        let paced = Arc::new(AdaptiveBatch::new(provider.clone(), AdaptiveBatchOptions::default()));
        let first = tokio::spawn({
            let paced = Arc::clone(&paced);
            async move { same_as_unpaced(&paced, 20).await }
        });
        // Those who come while it refuses wait too.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let others = (0..6).map(|_| {
            let paced = Arc::clone(&paced);
            tokio::spawn(async move { same_as_unpaced(&paced, 5).await })
        });
        for one in others.collect::<Vec<_>>().into_iter().chain([first]) {
            one.await.unwrap();
        }
        let sent = provider.sent.lock().unwrap().clone();
        assert!(sent[1..].iter().all(|(at, _)| *at >= AFTER), "{sent:?}");
        assert!(sent[1].1 <= 10, "half as much: {sent:?}");
        assert!(sent[2].0 > sent[1].0, "one tries, the others wait: {sent:?}");
    }

    #[tokio::test]
    async fn lesson_04_who_is_away_is_asked_ever_more_seldom() {
        let provider = Provider::new(100, &[ErrorKind::Unavailable; 5]);
        let paced = AdaptiveBatch::new(provider.clone(), options());
        same_as_unpaced(&paced, 64).await;
        let sent: Vec<u128> = provider.sent.lock().unwrap().iter().map(|(at, _)| at.as_millis()).collect();
        assert!(sent[1] >= 10 && sent[2] >= sent[1] + 20 && sent[3] >= sent[2] + 40, "{sent:?}");
        assert_eq!(provider.sizes()[..6], [64, 32, 16, 8, 4, 2]);

        let gone = AdaptiveBatch::new(Provider::new(100, &[ErrorKind::Unavailable; 100]), options());
        let error = gone.embed(EmbedKind::Passage, &texts(1)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.is_retryable());
    }

    #[tokio::test]
    async fn what_is_wrong_is_said_at_once_and_queries_do_not_wait() {
        let provider = Provider::new(100, &[ErrorKind::Config, ErrorKind::Unavailable]);
        let paced = AdaptiveBatch::new(provider.clone(), options());
        assert_eq!(paced.embed(EmbedKind::Passage, &texts(2)).await.unwrap_err().kind(), ErrorKind::Config);
        assert_eq!(
            paced.embed(EmbedKind::Query, &texts(1)).await.unwrap_err().kind(),
            ErrorKind::Unavailable
        );
        assert!(paced.embed(EmbedKind::Query, &texts(1)).await.is_ok());
        assert_eq!(provider.sizes(), [2, 1, 1], "none was tried again");
    }
}
