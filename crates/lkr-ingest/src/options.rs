use std::time::Duration;

/// Options of ingestion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngestOptions {
    /// The number of documents that are processed at once. Beside them, if there are at least two, one document is processed
    /// of an account that has none in progress, and texts longer than 1 MiB are, as
    /// [`long_texts`](Self::long_texts) allows. With 0, documents are accepted and another process on the same stores
    /// processes them.
    pub workers: usize,
    /// The number of texts that are embedded and stored at a time: the most work that a crash can cost.
    pub batch: usize,
    /// The most bytes of texts longer than 1 MiB that are processed at once. A text longer than this is processed alone.
    /// Processing takes several times as much memory.
    pub long_texts: usize,
    /// The most tasks that may be queued. Beyond it, submissions fail with `Overloaded`. The documents of one account are at most as
    /// many as places are free, so an account that is alone has half of them.
    pub queue_limit: u64,
    /// How long a worker owns a task without a heartbeat.
    pub lease: Duration,
    /// The most attempts of a task.
    pub max_attempts: u32,
    /// The pause after the first failed attempt. It doubles with each attempt.
    pub backoff: Duration,
    /// The pause while one of the service's own stores is unavailable.
    pub store_pause: Duration,
    /// How long the record of an ended task is kept.
    pub retention: Duration,
}

impl Default for IngestOptions {
    fn default() -> Self {
        Self {
            workers: 8,
            batch: 64,
            long_texts: 8 << 20,
            queue_limit: 200_000,
            lease: Duration::from_secs(60),
            max_attempts: 5,
            backoff: Duration::from_secs(1),
            store_pause: Duration::from_secs(2),
            retention: Duration::from_secs(30 * 24 * 3600),
        }
    }
}

/// The pause before another attempt: `first`, doubled `doublings` times, and never more than `longest`.
pub(crate) fn backoff(first: Duration, doublings: u32, longest: Duration) -> Duration {
    first.saturating_mul(1 << doublings.min(16)).min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_up_to_the_longest_pause() {
        let pause = |doublings| backoff(Duration::from_secs(1), doublings, Duration::from_secs(60));
        assert_eq!(
            [0, 1, 5, 6, 7, u32::MAX].map(|doublings| pause(doublings).as_secs()),
            [1, 2, 32, 60, 60, 60]
        );
        assert_eq!(backoff(Duration::MAX, 3, Duration::MAX), Duration::MAX);
    }
}
