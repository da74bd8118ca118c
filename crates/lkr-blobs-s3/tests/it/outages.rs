use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::TryStreamExt;
use lkr_blobs_s3::{S3Config, open};
use lkr_test_support::S3Server;
use object_store::{Error, ObjectStore, ObjectStoreExt, path::Path};

use crate::{
    proxy::{Faults, Proxy},
    support::{bytes, config, server, store},
};

const PATH: &str = "texts/0k/0197f3a2-1";

/// Each operation fails, none as if the object were missing, within the time.
async fn assert_away(store: &Arc<dyn ObjectStore>, within: Duration) {
    let path = Path::from(PATH);
    for operation in ["get", "put", "delete", "list"] {
        let start = Instant::now();
        let result = match operation {
            "get" => store.get(&path).await.map(drop),
            "put" => store.put(&path, "text".into()).await.map(drop),
            "delete" => store.delete(&path).await,
            _ => store.list(None).try_for_each(|_| async { Ok(()) }).await,
        };
        let error = result.unwrap_err();
        assert!(matches!(error, Error::Generic { .. }), "{operation}: {error:?}");
        assert!(start.elapsed() < within, "{operation}: {:?}", start.elapsed());
    }
}

#[tokio::test]
async fn server_that_was_killed_is_an_error_in_time_and_used_again_after_its_restart() {
    let Some(mut server) = S3Server::start() else { return };
    server.create_bucket("killed");
    let budget = Duration::from_secs(2);
    let store = open(&S3Config { retry_budget: budget, ..config(&server.url(), "s3://killed") }).unwrap();
    store.put(&Path::from(PATH), "text".into()).await.unwrap();
    server.kill();
    assert_away(&store, budget + Duration::from_secs(5)).await;
    server.restart();
    server.create_bucket("killed");
    store.put(&Path::from(PATH), "text".into()).await.unwrap();
    assert_eq!(store.get(&Path::from(PATH)).await.unwrap().bytes().await.unwrap(), "text");
}

#[tokio::test]
async fn server_that_hangs_is_an_error_in_time_and_used_again_when_it_goes_on() {
    let Some(server) = S3Server::start() else { return };
    server.create_bucket("paused");
    let config = S3Config {
        request_timeout: Duration::from_secs(2),
        retry_budget: Duration::from_secs(1),
        ..config(&server.url(), "s3://paused")
    };
    let store = open(&config).unwrap();
    server.pause();
    assert_away(&store, Duration::from_secs(8)).await;
    // More than sockets hold.
    let large = store.put(&Path::from("large"), bytes(20_000_000).into()).await;
    assert!(matches!(large, Err(Error::Generic { .. })), "{large:?}");
    server.resume();
    let config = S3Config { request_timeout: Duration::from_secs(30), ..config };
    open(&config).unwrap().put(&Path::from(PATH), "text".into()).await.unwrap();
}

#[tokio::test]
async fn server_that_comes_back_within_the_budget_is_waited_for() {
    let Some(mut server) = S3Server::start() else { return };
    server.kill();
    let budget = Duration::from_secs(120);
    let store = open(&S3Config { retry_budget: budget, ..config(&server.url(), "s3://comes-back") }).unwrap();
    let put = tokio::spawn(async move {
        let missing = store.head(&Path::from(PATH)).await;
        assert!(matches!(missing, Err(Error::NotFound { .. })), "{missing:?}");
    });
    tokio::task::spawn_blocking(move || {
        server.restart();
        server
    })
    .await
    .unwrap();
    put.await.unwrap();
}

#[tokio::test]
async fn download_that_is_cut_goes_on_or_fails_and_is_never_short() {
    let Some(server) = server() else { return };
    server.create_bucket("cut");
    let (path, content) = (Path::from(PATH), bytes(3_000_000));
    store(&server.url(), "s3://cut").put(&path, content.clone().into()).await.unwrap();
    for (cuts, whole) in [(1, true), (2, true), (1_000, false)] {
        let faults = Faults { cut_after: 1_000_000, cuts: cuts.into(), ..Faults::default() };
        let proxy = Proxy::start(server.port(), faults);
        let budget = Duration::from_secs(if whole { 60 } else { 0 });
        let config = S3Config { retry_budget: budget, ..config(&proxy.url(), "s3://cut") };
        let got = open(&config).unwrap().get(&path).await.unwrap();
        assert_eq!(got.meta.size, content.len() as u64);
        let read = got.bytes().await;
        assert!(proxy.faults.cuts.load(std::sync::atomic::Ordering::SeqCst) < cuts, "nothing was cut");
        match read {
            Ok(read) => assert!(whole && read == content, "{cuts} cuts, {} bytes", read.len()),
            Err(error) => assert!(!whole, "{cuts} cuts: {error}"),
        }
    }
}

#[tokio::test]
async fn slow_upload_that_goes_on_is_not_cut_off() {
    let Some(server) = server() else { return };
    server.create_bucket("slow");
    let (pause, content) = (Duration::from_millis(50), bytes(24 * 1024 * 1024));
    let proxy = Proxy::start(server.port(), Faults { slow: Some(pause), ..Faults::default() });
    let limit = Duration::from_millis(2_500);
    let times = S3Config {
        request_timeout: limit,
        retry_budget: Duration::ZERO,
        ..config(&proxy.url(), "s3://slow")
    };
    let start = Instant::now();
    open(&times).unwrap().put(&Path::from(PATH), content.into()).await.unwrap();
    assert!(start.elapsed() > limit, "the upload was not slow: {:?}", start.elapsed());
}
