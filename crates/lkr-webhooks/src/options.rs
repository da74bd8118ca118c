use std::time::Duration;

/// How deliveries go.
#[derive(Debug, Clone)]
pub struct DeliveryOptions {
    /// For how long a delivery is tried.
    pub keep: Duration,
    /// How many deliveries of one webhook are on their way at once.
    pub at_once: usize,
    /// How many deliveries may wait for one webhook; what comes on top is not put down for it.
    pub most_waiting: usize,
    /// How many bytes those may be, as they are stored.
    pub most_waiting_bytes: usize,
    /// How long a receiver may take to let itself be connected to.
    pub connect: Duration,
    /// How long one try may take.
    pub timeout: Duration,
    /// The wait after the first try that failed; each further one doubles it.
    pub first_wait: Duration,
    /// The longest wait between two tries that the receiver did not ask for.
    pub longest_wait: Duration,
    /// How often somebody looks for what is due.
    pub look: Duration,
    /// How long a delivery stays with who took it; longer than a try may take.
    pub lease: Duration,
}

impl Default for DeliveryOptions {
    fn default() -> Self {
        Self {
            keep: Duration::from_secs(24 * 60 * 60),
            at_once: 4,
            most_waiting: 10_000,
            most_waiting_bytes: 256 * 1024 * 1024,
            connect: Duration::from_secs(5),
            timeout: Duration::from_secs(15),
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_secs(60 * 60),
            look: Duration::from_millis(200),
            lease: Duration::from_secs(60),
        }
    }
}

/// What came of a try, or of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeliveryOutcome {
    /// It arrived.
    Delivered,
    /// The try failed; there will be another.
    Retried,
    /// It was tried for as long as it is.
    Expired,
    /// Too many were waiting already.
    Dropped,
}

impl DeliveryOutcome {
    /// All of them.
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
