use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use lkr_blobs_s3::{Error, ErrorKind, S3Config, check, open};
use lkr_test_support::S3Server;
use object_store::ObjectMeta;

use crate::{
    proxy::{Faults, Proxy},
    support::{config, server, store},
};

async fn checked(config: &S3Config) -> Result<(), Error> {
    check(&open(config).unwrap(), &config.location).await
}

#[tokio::test]
async fn store_that_does_what_lkr_needs_passes_and_keeps_nothing_of_the_check() {
    let Some(server) = server() else { return };
    server.create_bucket("checked");
    for location in ["s3://checked", "s3://checked/a/prefix"] {
        checked(&config(&server.url(), location)).await.unwrap();
    }
    let left: Vec<ObjectMeta> = store(&server.url(), "s3://checked").list(None).try_collect().await.unwrap();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(server.open_uploads("checked"), 0);
}

#[tokio::test]
async fn missing_bucket_is_refused_by_name() {
    let Some(server) = server() else { return };
    let error = checked(&config(&server.url(), "s3://not-created/a")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("the bucket not-created does not exist"), "{error}");
}

#[tokio::test]
async fn unknown_access_key_is_refused_without_its_secret() {
    let Some(server) = S3Server::start() else { return };
    server.create_bucket("guarded");
    server.refuse_access_keys();
    let error = checked(&config(&server.url(), "s3://guarded")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    let message = format!("{error} {error:?}");
    assert!(message.contains("InvalidAccessKeyId") && message.contains("s3:PutObject"), "{message}");
    assert!(!message.contains("a-secret"), "{message}");
}

#[tokio::test]
async fn store_that_ignores_conditions_or_ranges_is_refused() {
    let Some(server) = server() else { return };
    server.create_bucket("too-simple");
    for (ignored, reason) in [
        (("if-none-match: *", "if-n0ne-match: *"), "does not honour If-None-Match"),
        (("range: bytes", "rang3: bytes"), "reading a range failed"),
    ] {
        let proxy = Proxy::start(server.port(), Faults { replace: Some(ignored), ..Faults::default() });
        let error = checked(&config(&proxy.url(), "s3://too-simple")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    }
    let left: Vec<ObjectMeta> =
        store(&server.url(), "s3://too-simple").list(None).try_collect().await.unwrap();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn store_that_is_away_is_told_within_the_budget() {
    // A port that was just free refuses connections.
    let url = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let config = S3Config { retry_budget: Duration::from_secs(1), ..config(&url, "s3://away") };
    let start = Instant::now();
    let error = checked(&config).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Unavailable && error.is_retryable());
    assert!(error.to_string().contains("refused"), "{error}");
    assert!(
        (Duration::from_secs(1)..Duration::from_secs(6)).contains(&start.elapsed()),
        "{:?}",
        start.elapsed()
    );
}
