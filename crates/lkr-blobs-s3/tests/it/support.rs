use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use lkr_blobs_s3::{S3Config, open};
use lkr_test_support::S3Server;
use object_store::ObjectStore;

/// The server of the tests that leave it running. Each of them has buckets of its own.
pub(crate) fn server() -> Option<&'static S3Server> {
    static SERVER: OnceLock<Option<S3Server>> = OnceLock::new();
    SERVER.get_or_init(S3Server::start).as_ref()
}

/// A store at `location` on the server at `url`, with times that suit tests on a busy machine.
pub(crate) fn config(url: &str, location: &str) -> S3Config {
    S3Config {
        endpoint: Some(url.parse().unwrap()),
        request_timeout: Duration::from_secs(20),
        retry_budget: Duration::from_secs(20),
        ..S3Config::new(location.parse().unwrap(), "us-east-1", "an-id", "a-secret")
    }
}

pub(crate) fn store(url: &str, location: &str) -> Arc<dyn ObjectStore> {
    open(&config(url, location)).unwrap()
}

/// A store in a new bucket of the shared server; `None` if there is no server.
pub(crate) fn store_in_bucket(bucket: &str) -> Option<Arc<dyn ObjectStore>> {
    let server = server()?;
    server.create_bucket(bucket);
    Some(store(&server.url(), &format!("s3://{bucket}/some/prefix")))
}

/// Bytes without a period that parts of uploads and of responses could hide.
pub(crate) fn bytes(length: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}
