//! The time that a model has for its answer. The time for which the reader of a streamed summary asks for nothing is not the model's.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{Stream, StreamExt, stream::poll_fn};
use tokio::time::{Instant, timeout_at};

/// The most time that a reader adds to a model's. A reader that accepts nothing is disconnected after that time.
const MAX_PAUSES: Duration = Duration::from_secs(60);

/// For how long, in milliseconds, the reader of a stream has asked for nothing.
#[derive(Debug, Clone, Default)]
pub(super) struct ReaderPauses(Arc<AtomicU64>);

impl ReaderPauses {
    /// The same parts. The time from each part until the reader asks for the next one is a pause.
    pub(super) fn observe<S: Stream + Unpin>(self, mut parts: S) -> impl Stream<Item = S::Item> {
        let mut yielded: Option<Instant> = None;
        poll_fn(move |cx| {
            if let Some(since) = yielded.take() {
                let millis = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
                self.0.fetch_add(millis, Ordering::Relaxed);
            }
            let part = parts.poll_next_unpin(cx);
            yielded = part.is_ready().then(Instant::now);
            part
        })
    }

    fn total(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed)).min(MAX_PAUSES)
    }
}

/// The time by which an answer must be complete.
#[derive(Debug)]
pub(super) struct ModelDeadline {
    without_pauses: Instant,
    pauses: ReaderPauses,
}

impl ModelDeadline {
    /// In `time_limit` from now, and later by the reader's pauses.
    pub(super) fn after(time_limit: Duration, pauses: ReaderPauses) -> Self {
        Self { without_pauses: Instant::now() + time_limit, pauses }
    }

    /// Waits for the model; `None` if the deadline has passed.
    pub(super) async fn wait_for<T>(&self, mut answer: impl Future<Output = T> + Unpin) -> Option<T> {
        loop {
            let deadline = self.now();
            match timeout_at(deadline, &mut answer).await {
                Ok(answer) => return Some(answer),
                // The reader has paused meanwhile.
                Err(_) if self.now() > deadline => {}
                Err(_) => return None,
            }
        }
    }

    fn now(&self) -> Instant {
        self.without_pauses + self.pauses.total()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use tokio::time::sleep;

    use super::*;

    const fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[tokio::test(start_paused = true)]
    async fn model_has_its_time_without_the_pauses_of_the_reader() {
        let pauses = ReaderPauses::default();
        let deadline = ModelDeadline::after(seconds(10), pauses.clone());
        let mut parts = pauses.observe(stream::iter(0..9));
        let answers_within = async |n: u64| deadline.wait_for(Box::pin(sleep(seconds(n)))).await.is_some();
        parts.next().await.unwrap();
        sleep(seconds(30)).await;
        parts.next().await.unwrap();
        assert!(answers_within(9).await, "after a pause of 30 s");
        assert!(!answers_within(2).await, "after 11 s without a pause");
        sleep(seconds(600)).await;
        parts.next().await.unwrap();
        assert!(!answers_within(1).await, "after a pause of 600 s");
    }
}
