use std::time::Duration;

/// How ingestion works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngestOptions {
    /// How many documents are worked on at once.
    pub workers: usize,
    /// How many texts are embedded and stored at a time; the unit of work that a crash can cost.
    pub batch: usize,
    /// How many bytes the texts of more than a megabyte that are worked on at once have together; one that is longer
    /// is worked on alone. Memory for several times as much is needed.
    pub long_texts: usize,
    /// How many tasks may wait; beyond that nothing is accepted.
    pub queue_limit: u64,
    /// How long a worker holds a task without a sign of life.
    pub lease: Duration,
    /// How many attempts a document has.
    pub max_attempts: u32,
    /// The pause after the first failed attempt; it doubles with each.
    pub backoff: Duration,
    /// The pause while a store of the service's own is away.
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
            queue_limit: 100_000,
            lease: Duration::from_secs(60),
            max_attempts: 5,
            backoff: Duration::from_secs(1),
            store_pause: Duration::from_secs(2),
            retention: Duration::from_secs(30 * 24 * 3600),
        }
    }
}
