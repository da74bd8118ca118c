use std::{
    env,
    sync::atomic::{AtomicU32, Ordering},
};

use lkr_state::{StateStore as _, Write};
use lkr_state_redis::{RedisConfig, RedisStore};
use lkr_test_qdrant::Loopback;
use lkr_test_support::{RedisServer, S3Server};

use crate::{ADMIN_PASSWORD, Server};

/// The address of a real Qdrant server.
const QDRANT_URL: &str = "LKR_TEST_QDRANT_URL";

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
    qdrant: Option<Loopback>,
    prefix: String,
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
        let (redis, s3) = (RedisServer::start()?, S3Server::start()?);
        s3.create_bucket(BUCKET);
        let qdrant = if env::var_os(QDRANT_URL).is_none() { Some(Loopback::start_blocking()) } else { None };
        let number = PREFIXES.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("e2e-{}-{number}-", std::process::id());
        Some(Self { redis, s3, qdrant, prefix })
    }

    /// The address of Qdrant.
    ///
    /// # Panics
    /// If the variable with the address is not text.
    #[must_use]
    pub fn qdrant_url(&self) -> String {
        match &self.qdrant {
            Some(loopback) => loopback.url(),
            None => env::var(QDRANT_URL).expect("an address"),
        }
    }

    /// Runs `work` while Qdrant does not answer; `false` if it is a server that this process has not started, which goes on.
    ///
    /// # Panics
    /// If Qdrant cannot be started again.
    pub fn without_qdrant(&mut self, work: impl FnOnce()) -> bool {
        let Some(qdrant) = self.qdrant.take() else { return false };
        let (data, address) = qdrant.stop_blocking();
        work();
        self.qdrant = Some(Loopback::start_blocking_with(data, address));
        true
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
        pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
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
