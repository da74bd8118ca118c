//! The time of the store is the server's, whatever the clock of this machine shows.

use std::time::Duration;

use lkr_state::{StateStore, StoreClock};
use lkr_state_redis::{RedisConfig, RedisStore};
use lkr_test_support::RedisServer;
use time::OffsetDateTime;

use crate::clock::{Clock, FARTHEST};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_is_that_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let Some(clock) = Clock::new(folder.path(), "server") else { return };
    clock.set(FARTHEST);
    let Some(server) = RedisServer::start_in(clock.environment()) else { return };
    let opened = RedisStore::open(RedisConfig::new(server.url()), None).await.unwrap();
    let state = std::sync::Arc::new(opened.store.state());
    let ahead = state.now() - OffsetDateTime::now_utc();
    let expected = Duration::from_secs(FARTHEST.unsigned_abs());
    assert!((ahead - expected).abs() < Duration::from_secs(5), "{ahead}");
    let id = lkr_domain::Clock::new_uuid(&StoreClock::new(state));
    let (seconds, _) = id.get_timestamp().unwrap().to_unix();
    assert!(seconds > (OffsetDateTime::now_utc() + expected / 2).unix_timestamp().unsigned_abs());
}
