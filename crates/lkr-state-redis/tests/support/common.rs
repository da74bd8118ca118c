//! Helpers of several tests.
#![allow(dead_code, reason = "each test uses some")]

use std::{sync::Arc, time::Duration};

use lkr_state::StateStore;
use lkr_state_redis::{Opened, RedisConfig, RedisStore};
use lkr_test_support::RedisServer;

/// The configuration of tests on slow machines.
pub(crate) fn config(url: String) -> RedisConfig {
    RedisConfig {
        command_timeout: Duration::from_secs(10),
        write_timeout: Duration::from_secs(20),
        ..RedisConfig::new(url)
    }
}

pub(crate) async fn open(config: RedisConfig) -> RedisStore {
    opened(config).await.store
}

pub(crate) async fn opened(config: RedisConfig) -> Opened {
    RedisStore::open(config, None).await.unwrap()
}

/// A server, and a store on it; `None` if Redis is not installed.
pub(crate) async fn start() -> Option<(RedisServer, RedisStore)> {
    let server = RedisServer::start()?;
    let store = open(config(server.url())).await;
    Some((server, store))
}

pub(crate) fn state(store: &RedisStore) -> Arc<dyn StateStore> {
    Arc::new(store.state())
}

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
