use std::{fmt, num::NonZeroU32, time::Duration};

/// How to reach a Qdrant server or cluster, and how to make collections there.
#[derive(Clone)]
#[non_exhaustive]
pub struct QdrantOptions {
    /// The address of the gRPC interface, such as `http://127.0.0.1:6334`. With `https`, the connection is encrypted and
    /// the server's certificate must be trusted by the system.
    pub url: String,
    /// The key that the server asks for. It appears in no error and in no log line.
    pub api_key: Option<String>,
    /// The beginning of the names of all collections and aliases. Stores with different prefixes share a server without
    /// seeing each other.
    pub prefix: String,
    /// The number of shards of a new collection. With more than one, the scores of sparse queries are not exact, because
    /// Qdrant counts terms in each shard alone.
    pub shard_number: NonZeroU32,
    /// The number of copies of each shard of a new collection.
    pub replication_factor: NonZeroU32,
    /// The number of copies that must have applied a write before it is acknowledged; for new collections.
    pub write_consistency_factor: NonZeroU32,
    /// Which copies a read asks; `None` for one of them.
    pub read_consistency: Option<ReadConsistency>,
    /// Whether new collections keep dense vectors on disk and not in memory.
    pub on_disk: bool,
    /// How new collections compress dense vectors in memory.
    pub quantization: Quantization,
    /// With quantised vectors, how many times a query's limit is compared by the original vectors. At least 1.
    pub oversampling: f64,
    /// The number of candidates that a search of the dense graph keeps: recall for time. It is at least twice a query's
    /// limit.
    pub ef_search: u64,
    /// Whether the scores of sparse queries do not depend on points outside the scope, down to the last bit. It costs
    /// queries of 3 to 64 terms a second request.
    pub exact_sums: bool,
    /// The longest time to wait for a connection.
    pub connect_timeout: Duration,
    /// The longest time to wait for the answer to a read.
    pub read_timeout: Duration,
    /// The longest time to wait for the answer to one attempt of a write.
    pub write_timeout: Duration,
    /// For how long a write with an unknown outcome is sent again until it is acknowledged.
    pub write_retry_for: Duration,
    /// The number of consecutive failures after which the server counts as away: calls fail at once, except for one each
    /// [`probe_interval`](Self::probe_interval).
    pub failure_threshold: u32,
    /// How often one call probes a server that is away.
    pub probe_interval: Duration,
    /// The largest request of an upsert, in bytes, unless a single point is larger. Qdrant applies each request
    /// completely or not at all.
    pub max_request_bytes: usize,
}

/// Which copies of a shard a read asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadConsistency {
    /// This number of copies; their common answer counts.
    Factor(u32),
    /// All copies; the answer of more than half of them counts.
    Majority,
    /// More than half of the copies; their common answer counts.
    Quorum,
    /// All copies; their common answer counts.
    All,
}

/// How dense vectors are compressed in memory. Queries compare the best candidates by the original vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Quantization {
    /// Not at all.
    None,
    /// A byte for each dimension: a quarter of the memory.
    ScalarInt8,
    /// A bit for each dimension: a thirty-second of the memory. For models of a thousand dimensions and more. Each query
    /// reads at least a thousand original vectors, if there are as many.
    Binary,
}

impl QdrantOptions {
    /// The defaults for the server at `url`.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            api_key: None,
            prefix: "lkr_".to_owned(),
            shard_number: NonZeroU32::MIN,
            replication_factor: NonZeroU32::MIN,
            write_consistency_factor: NonZeroU32::MIN,
            read_consistency: None,
            on_disk: false,
            quantization: Quantization::None,
            oversampling: 3.0,
            ef_search: 200,
            exact_sums: true,
            connect_timeout: Duration::from_millis(500),
            read_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(30),
            write_retry_for: Duration::from_secs(60),
            failure_threshold: 3,
            probe_interval: Duration::from_secs(1),
            max_request_bytes: 16 << 20,
        }
    }
}

impl fmt::Debug for QdrantOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QdrantOptions")
            .field("url", &without_credentials(&self.url))
            .field("api_key", &self.api_key.as_ref().map(|_| "***"))
            .field("prefix", &self.prefix)
            .field("shard_number", &self.shard_number)
            .field("replication_factor", &self.replication_factor)
            .field("write_consistency_factor", &self.write_consistency_factor)
            .field("read_consistency", &self.read_consistency)
            .field("on_disk", &self.on_disk)
            .field("quantization", &self.quantization)
            .field("oversampling", &self.oversampling)
            .field("ef_search", &self.ef_search)
            .field("exact_sums", &self.exact_sums)
            .field("connect_timeout", &self.connect_timeout)
            .field("read_timeout", &self.read_timeout)
            .field("write_timeout", &self.write_timeout)
            .field("write_retry_for", &self.write_retry_for)
            .field("failure_threshold", &self.failure_threshold)
            .field("probe_interval", &self.probe_interval)
            .field("max_request_bytes", &self.max_request_bytes)
            .finish()
    }
}

/// The URL without what stands before an `@` in its host part.
pub(crate) fn without_credentials(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (host, path) = rest.split_once('/').map_or((rest, None), |(host, path)| (host, Some(path)));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let separator = if scheme.is_empty() { "" } else { "://" };
    let path = path.map(|path| format!("/{path}")).unwrap_or_default();
    format!("{scheme}{separator}{host}{path}")
}
