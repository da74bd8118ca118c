use std::time::Duration;

/// How deliveries are sent and retried.
#[derive(Debug, Clone)]
pub struct DeliveryOptions {
    /// How long a delivery is retried, counted from its event.
    pub max_age: Duration,
    /// How many deliveries of one webhook are in flight at once.
    pub concurrency: usize,
    /// How many deliveries may wait for one webhook; further ones are dropped.
    pub max_backlog: usize,
    /// How many stored bytes of deliveries may wait for one webhook; further ones are dropped.
    pub max_backlog_bytes: usize,
    /// How long connecting to a receiver may take.
    pub connect_timeout: Duration,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// The wait after the first failed attempt; it doubles with each further one.
    pub initial_backoff: Duration,
    /// The longest wait between two attempts, unless the receiver asks for a longer one.
    pub max_backoff: Duration,
    /// How often the store is searched for due deliveries.
    pub poll_interval: Duration,
    /// How long a process owns a delivery that it takes; longer than one attempt may take.
    pub lease: Duration,
}

impl Default for DeliveryOptions {
    /// See docs/studies.md#webhook-backoff.
    fn default() -> Self {
        Self {
            max_age: Duration::from_secs(24 * 60 * 60),
            concurrency: 4,
            max_backlog: 10_000,
            max_backlog_bytes: 256 * 1024 * 1024,
            connect_timeout: Duration::from_secs(5),
            timeout: Duration::from_secs(15),
            initial_backoff: Duration::from_secs(1),
            max_backoff: Duration::from_secs(60 * 60),
            poll_interval: Duration::from_millis(200),
            lease: Duration::from_secs(60),
        }
    }
}

/// The outcome of an attempt or of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeliveryOutcome {
    /// The receiver accepted the delivery.
    Delivered,
    /// The attempt failed; another one will follow.
    Retried,
    /// The last attempt failed, and the delivery was dropped.
    Expired,
    /// The delivery was not created, because the webhook's backlog was full.
    Dropped,
}

impl DeliveryOutcome {
    /// All outcomes.
    pub const ALL: [Self; 4] = [Self::Delivered, Self::Retried, Self::Expired, Self::Dropped];

    /// The name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Retried => "retried",
            Self::Expired => "expired",
            Self::Dropped => "dropped",
        }
    }
}
