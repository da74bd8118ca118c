//! The time of the store is the server's, whatever the clock of this machine shows.

use std::time::Duration;

use lkr_state::{StateStore, StoreClock};
use lkr_state_redis::{RedisConfig, RedisStore};
use lkr_test_history::Clock;
use lkr_test_support::{RedisServer, skip};
use time::OffsetDateTime;

/// How far the server's clock is ahead, in seconds.
const AHEAD: i64 = 3_600;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_is_that_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let clock = match Clock::new(folder.path(), "server") {
        Ok(clock) => clock,
        Err(error) => return skip(&error.to_string()),
    };
    clock.set(AHEAD).unwrap();
    let Some(server) = RedisServer::start_in(clock.environment()) else { return };
    let opened = RedisStore::open(RedisConfig::new(server.url()), None).await.unwrap();
    let state = std::sync::Arc::new(opened.store.state());
    let ahead = state.now() - OffsetDateTime::now_utc();
    let expected = Duration::from_secs(AHEAD.unsigned_abs());
    assert!((ahead - expected).abs() < Duration::from_secs(5), "{ahead}");
    let id = lkr_domain::Clock::new_uuid(&StoreClock::new(state));
    let (seconds, _) = id.get_timestamp().unwrap().to_unix();
    assert!(seconds > (OffsetDateTime::now_utc() + expected / 2).unix_timestamp().unsigned_abs());
}
