use std::{
    env,
    sync::atomic::{AtomicU32, Ordering},
};

use lkr_state::{StateStore as _, Write};
use lkr_state_redis::{RedisConfig, RedisStore};
use lkr_test_qdrant::{Loopback, RealCollections, Status};
use lkr_test_support::{RedisServer, S3Server};

use crate::{ADMIN_PASSWORD, Server};

/// The address of a real Qdrant server.
const QDRANT_URL: &str = "LKR_TEST_QDRANT_URL";

/// What servers are told about the real Qdrant server, each with the variable that it is taken from.
const QDRANT_KEYS: [(&str, &str); 3] = [
    ("LKR_QDRANT_SHARDS", "LKR_TEST_QDRANT_SHARDS"),
    ("LKR_QDRANT_REPLICAS", "LKR_TEST_QDRANT_REPLICAS"),
    ("LKR_QDRANT_WRITE_CONSISTENCY", "LKR_TEST_QDRANT_WRITE_CONSISTENCY"),
];

/// The bucket of the object store.
const BUCKET: &str = "documents";

/// The key that seals secrets in every process.
const SECRET_KEY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/// The numbers of the prefixes that were given away.
static PREFIXES: AtomicU32 = AtomicU32::new(0);

/// Stores that several servers work on: a Redis server, an object store, and Qdrant (the real server at
/// `LKR_TEST_QDRANT_URL`; without it a server in this process that speaks its protocol).
#[derive(Debug)]
pub struct SharedStores {
    /// The records and tasks.
    pub redis: RedisServer,
    /// The texts and originals.
    pub s3: S3Server,
    qdrant: Qdrant,
    prefix: String,
    /// More variables of each server.
    more: Vec<(String, String)>,
}

/// Where the points are.
#[derive(Debug)]
enum Qdrant {
    /// A server in this process; `None` while it does not answer.
    InProcess(Option<Loopback>),
    /// The server that all tests share.
    Shared(RealCollections),
    /// A server or cluster that the test started, at this address.
    OfTheTest(String),
}

/// What a server does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Answers requests and ingests.
    All,
    /// Answers requests.
    Api,
    /// Ingests.
    Worker,
}

impl SharedStores {
    /// Starts the stores; `None` with a visible skip if a server is not installed.
    ///
    /// # Panics
    /// If a server does not start; or if it is not installed and the environment variable `CI` is set.
    #[must_use]
    pub fn start() -> Option<Self> {
        let Some(url) = env::var_os(QDRANT_URL) else {
            return Self::start_with(|_| Qdrant::InProcess(Some(Loopback::start_blocking())), Vec::new());
        };
        let url = url.into_string().expect("an address");
        let keys = QDRANT_KEYS
            .iter()
            .filter_map(|(key, variable)| Some(((*key).to_owned(), env::var(variable).ok()?)));
        Self::start_with(|prefix| Qdrant::Shared(RealCollections::new(url, prefix)), keys.collect())
    }

    /// Starts Redis and an object store beside a Qdrant server or cluster of the test; `more` are variables of each server.
    ///
    /// # Panics
    /// As [`start`](Self::start) does.
    #[must_use]
    pub fn start_beside(qdrant_url: String, more: &[(&str, &str)]) -> Option<Self> {
        let more = more.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Self::start_with(|_| Qdrant::OfTheTest(qdrant_url), more.collect())
    }

    fn start_with(qdrant: impl FnOnce(&str) -> Qdrant, more: Vec<(String, String)>) -> Option<Self> {
        let (redis, s3) = (RedisServer::start()?, S3Server::start()?);
        s3.create_bucket(BUCKET);
        let number = PREFIXES.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("e2e-{}-{number}-", std::process::id());
        Some(Self { redis, s3, qdrant: qdrant(&prefix), prefix, more })
    }

    /// The address of Qdrant.
    ///
    /// # Panics
    /// If it does not answer.
    #[must_use]
    pub fn qdrant_url(&self) -> String {
        match &self.qdrant {
            Qdrant::InProcess(server) => server.as_ref().expect("a server").url(),
            Qdrant::Shared(collections) => collections.url().to_owned(),
            Qdrant::OfTheTest(url) => url.clone(),
        }
    }

    /// Runs `work` while Qdrant does not answer; `false` if it is a server that this process has not started, which goes on.
    ///
    /// # Panics
    /// If Qdrant cannot be started again.
    pub fn without_qdrant(&mut self, work: impl FnOnce()) -> bool {
        let Qdrant::InProcess(server) = &mut self.qdrant else { return false };
        let (data, address) = server.take().expect("a server").stop_blocking();
        work();
        *server = Some(Loopback::start_blocking_with(data, address));
        true
    }

    /// Sets what Qdrant answers to each call that needs a shard, as a node does that reaches no copy of one; `None` ends it.
    /// `false` if it is a server that this process has not started, which goes on.
    ///
    /// # Panics
    /// If Qdrant does not answer.
    pub fn set_qdrant_outage(&self, outage: Option<Status>) -> bool {
        let Qdrant::InProcess(server) = &self.qdrant else { return false };
        server.as_ref().expect("a server").data.state().outage = outage;
        true
    }

    /// Whether searches by words have the same scores as with the embedded store: Qdrant counts words in each shard alone.
    #[must_use]
    pub fn has_exact_scores(&self) -> bool {
        !self.more.iter().any(|(key, value)| key == "LKR_QDRANT_SHARDS" && value != "1")
    }

    /// Applies writes to the records.
    ///
    /// # Panics
    /// If they cannot be applied.
    pub fn apply(&self, writes: Vec<Write>) {
        let config = RedisConfig::new(self.redis.url());
        let applied = async move {
            let opened = RedisStore::open(config, None).await.expect("Redis answers");
            opened.store.state().apply(writes).await.expect("the writes are applied");
        };
        tokio::runtime::Runtime::new().expect("a runtime").block_on(applied);
    }

    /// The configuration of a server on these stores.
    #[must_use]
    pub fn environment(&self, role: Role) -> Vec<(String, String)> {
        let role = format!("{role:?}").to_lowercase();
        let pairs = [
            ("LKR_ADMIN_PASSWORD", ADMIN_PASSWORD.to_owned()),
            ("LKR_SECRET_KEY", SECRET_KEY.to_owned()),
            ("LKR_ROLE", role),
            ("LKR_STATE", "redis".to_owned()),
            ("LKR_REDIS_URL", self.redis.url()),
            ("LKR_VECTORS", "qdrant".to_owned()),
            ("LKR_QDRANT_URL", self.qdrant_url()),
            ("LKR_QDRANT_PREFIX", self.prefix.clone()),
            ("LKR_BLOBS", format!("s3://{BUCKET}/lkr")),
            ("LKR_S3_ENDPOINT", self.s3.url()),
            ("LKR_S3_ACCESS_KEY_ID", "key".to_owned()),
            ("LKR_S3_SECRET_ACCESS_KEY", "secret".to_owned()),
        ];
        let pairs = pairs.into_iter().map(|(key, value)| (key.to_owned(), value));
        pairs.chain(self.more.clone()).collect()
    }

    /// A running server on these stores, with a data folder of its own.
    #[must_use]
    pub fn server(&self, role: Role) -> Server {
        self.server_with(role, &[])
    }

    /// A running server on these stores with more variables.
    #[must_use]
    pub fn server_with(&self, role: Role, more: &[(&str, &str)]) -> Server {
        let mut server = self.stopped_server(role);
        more.iter().for_each(|(key, value)| server.set(key, value));
        server.restart();
        server
    }

    /// A server on these stores that was not started.
    #[must_use]
    pub fn stopped_server(&self, role: Role) -> Server {
        let environment = self.environment(role);
        let pairs: Vec<(&str, &str)> =
            environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        Server::stopped(Some("data"), &pairs)
    }
}
