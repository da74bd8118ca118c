use std::{
    sync::{Arc, atomic::Ordering::SeqCst},
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
    let restarted = tokio::task::spawn_blocking(move || {
        server.restart();
        server
    });
    let _server = restarted.await.unwrap();
    put.await.unwrap();
}

/// A record names its texts, so a missing text is damage; a missing bucket is an outage.
#[tokio::test]
async fn missing_bucket_is_not_a_missing_object() {
    let Some(server) = server() else { return };
    assert_away(&store(&server.url(), "s3://never-created/a"), Duration::from_secs(15)).await;
}

/// Reads an object of three megabytes while its responses are cut off after one.
async fn read_through_cuts(
    bucket: &str,
    cuts: usize,
    hang: bool,
    budget: Duration,
) -> Option<(bool, Duration)> {
    let server = server()?;
    let (path, content) = (Path::from(PATH), bytes(3_000_000));
    store(&server.url(), &format!("s3://{bucket}")).put(&path, content.clone().into()).await.unwrap();
    let faults = Faults { cut_after: 1_000_000, cuts: cuts.into(), hang, ..Faults::default() };
    let proxy = Proxy::start(server.port(), faults);
    let config = S3Config {
        request_timeout: if hang { Duration::from_secs(2) } else { Duration::from_secs(20) },
        retry_budget: budget,
        ..config(&proxy.url(), &format!("s3://{bucket}"))
    };
    let got = open(&config).unwrap().get(&path).await.unwrap();
    assert_eq!(got.meta.size, content.len() as u64);
    let start = Instant::now();
    let read = got.bytes().await;
    assert!(proxy.faults.cuts.load(SeqCst) < cuts, "nothing was cut");
    let is_whole = read.map(|read| assert!(read == content, "{} bytes were read", read.len())).is_ok();
    Some((is_whole, start.elapsed()))
}

#[tokio::test]
async fn download_that_is_cut_goes_on_or_fails_and_is_never_short() {
    let Some(server) = server() else { return };
    server.create_bucket("cut");
    for (cuts, budget, whole) in [(1, 60, true), (usize::MAX, 60, true), (usize::MAX, 0, false)] {
        let read = read_through_cuts("cut", cuts, false, Duration::from_secs(budget)).await;
        assert_eq!(read.map(|(is_whole, _)| is_whole), Some(whole), "{cuts} cuts, {budget} s");
    }
}

#[tokio::test]
async fn download_that_hangs_goes_on_or_fails_in_time() {
    let Some(server) = server() else { return };
    server.create_bucket("hanging");
    for (cuts, budget, whole) in [(1, 60, true), (1_000, 0, false)] {
        let read = read_through_cuts("hanging", cuts, true, Duration::from_secs(budget)).await;
        let Some((is_whole, elapsed)) = read else { return };
        assert_eq!(is_whole, whole, "{cuts} hung");
        assert!((Duration::from_secs(2)..Duration::from_secs(15)).contains(&elapsed), "{elapsed:?}");
    }
}

#[tokio::test]
async fn slow_upload_that_goes_on_is_not_cut_off() {
    let Some(server) = server() else { return };
    server.create_bucket("slow");
    let (pause, content) = (Duration::from_millis(30), bytes(16 * 1024 * 1024));
    let proxy = Proxy::start(server.port(), Faults { slow: Some(pause), ..Faults::default() });
    let limit = Duration::from_secs(3);
    let times = S3Config {
        request_timeout: limit,
        retry_budget: Duration::ZERO,
        ..config(&proxy.url(), "s3://slow")
    };
    let start = Instant::now();
    open(&times).unwrap().put(&Path::from(PATH), content.into()).await.unwrap();
    assert!(start.elapsed() > limit, "the upload was not slow: {:?}", start.elapsed());
}
