//! What happens while the server is away, and after it.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use lkr_test_qdrant::{Data, Loopback};
use lkr_vectors::{ErrorKind, Filter, Include, VectorStore};
use lkr_vectors_qdrant::{QdrantOptions, QdrantVectors};
use tonic::{Code, Status};

use crate::{
    proxy::Proxy,
    support::{create, id, on_loopback, options, point, points, real_options},
};

/// Waits until a condition holds.
async fn eventually<F: Future<Output = bool>>(what: &str, condition: impl Fn() -> F) {
    for _ in 0..500 {
        if condition().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("never: {what}");
}

async fn count(store: &QdrantVectors) -> u64 {
    store.count(&crate::support::collection("chunks"), &Filter::all()).await.unwrap()
}

/// The answer to a write is lost with its connection. The write is sent again, and its points are stored once.
async fn write_is_sent_again_after_a_cut(options: QdrantOptions) {
    let direct = QdrantVectors::open(options.clone()).await.unwrap();
    let name = create(&direct).await;
    let proxy = Proxy::start(&options.url).await;
    let mut proxied = options.clone();
    proxied.url = proxy.url();
    let store = QdrantVectors::open(proxied).await.unwrap();
    // The specification is read before.
    assert_eq!(count(&store).await, 0);

    proxy.hold_answers();
    let writing = tokio::spawn({
        let (store, name) = (store.clone(), name.clone());
        async move { store.upsert(&name, points(0..40)).await }
    });
    eventually("the server has the points", || async { count(&direct).await == 40 }).await;
    assert!(!writing.is_finished(), "the answer must be lost");
    proxy.cut().await;
    writing.await.unwrap().unwrap();
    assert_eq!(count(&direct).await, 40);

    proxy.hold_answers();
    let deleting = tokio::spawn({
        let (store, name) = (store.clone(), name.clone());
        async move { store.delete(&name, &Filter::all()).await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    proxy.cut().await;
    assert_eq!(deleting.await.unwrap().unwrap(), 40, "the number is counted before the first attempt");
    assert_eq!(count(&direct).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn write_is_sent_again_after_a_cut_on_loopback() {
    let server = Loopback::start().await;
    write_is_sent_again_after_a_cut(options(&server.url())).await;
    let upserts = server.data.state().writes.iter().filter(|write| write.call == "upsert").count();
    assert_eq!(upserts, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn write_is_sent_again_after_a_cut_on_a_real_server() {
    if let Some((options, _guard)) = real_options() {
        write_is_sent_again_after_a_cut(options).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_in_flight_at_a_cut_are_answered() {
    const READS: usize = 20;
    let server = Loopback::start().await;
    let proxy = Proxy::start(&server.url()).await;
    let store = QdrantVectors::open(options(&proxy.url())).await.unwrap();
    let name = create(&store).await;
    store.upsert(&name, points(0..10)).await.unwrap();
    for _ in 0..3 {
        proxy.hold_answers();
        let reading: Vec<_> = (0..READS)
            .map(|_| {
                let store = store.clone();
                tokio::spawn(async move { count(&store).await })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(100)).await;
        proxy.cut().await;
        for read in reading {
            assert_eq!(read.await.unwrap(), 10);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn write_whose_outcome_stays_unknown_is_unavailable_after_the_time_for_it() {
    let server = Loopback::start().await;
    let proxy = Proxy::start(&server.url()).await;
    let mut options = options(&proxy.url());
    options.write_timeout = Duration::from_millis(100);
    options.write_retry_for = Duration::from_millis(700);
    let store = QdrantVectors::open(options).await.unwrap();
    let name = create(&store).await;
    assert_eq!(count(&store).await, 0);
    proxy.hold_answers();
    let start = Instant::now();
    let error = store.upsert(&name, vec![point(1)]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!((100..5_000).contains(&start.elapsed().as_millis()), "{:?}", start.elapsed());
    assert!(server.data.state().writes.iter().filter(|write| write.call == "upsert").count() > 1);
}

/// A node answers so while another one that it needs is away.
fn refusals(times: usize) -> VecDeque<Status> {
    let mut codes = [Code::Internal, Code::FailedPrecondition, Code::Unavailable].into_iter().cycle();
    (0..times).filter_map(|_| Some(Status::new(codes.next()?, "no leader could be selected"))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn write_that_a_cluster_cannot_apply_yet_is_sent_again() {
    let (store, server) = on_loopback().await;
    let name = create(&store).await;
    assert_eq!(count(&store).await, 0);
    server.data.state().refusals = refusals(3);
    store.upsert(&name, points(0..20)).await.unwrap();
    assert!(server.data.state().refusals.is_empty());
    assert_eq!(count(&store).await, 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_a_cluster_cannot_answer_now_are_unavailable() {
    let server = Loopback::start().await;
    let mut options = options(&server.url());
    options.write_retry_for = Duration::from_millis(200);
    let store = QdrantVectors::open(options).await.unwrap();
    let name = create(&store).await;
    assert_eq!(count(&store).await, 0);
    for _ in 0..3 {
        server.data.state().refusals = refusals(50);
        let read = store.get(&name, &[id(1)], Include::Payload).await.unwrap_err();
        let write = store.upsert(&name, vec![point(1)]).await.unwrap_err();
        for error in [read, write] {
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
            assert!(error.reason().contains("no leader"), "{error}");
        }
    }
    // The server answered, so it is not away.
    server.data.state().refusals.clear();
    assert_eq!(count(&store).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_fail_within_a_second_while_the_server_is_away_and_work_after_its_restart() {
    let (store, server) = on_loopback().await;
    let name = create(&store).await;
    store.upsert(&name, points(0..20)).await.unwrap();
    let (data, address) = server.stop().await;
    for round in 0..8 {
        let start = Instant::now();
        let health = store.health().await.unwrap_err();
        let read = store.get(&name, &[id(1)], Include::Payload).await.unwrap_err();
        let write = store.upsert(&name, vec![point(1)]).await.unwrap_err();
        for error in [&health, &read, &write] {
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
            assert!(error.is_retryable() && error.reason().contains("refused"), "round {round}: {error}");
        }
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    }
    let error = store.health().await.unwrap_err();
    assert!(error.reason().contains("consecutive failures"), "{error}");

    let _server = Loopback::start_with(data, address).await;
    eventually("the store works again", || async { store.health().await.is_ok() }).await;
    assert_eq!(count(&store).await, 20);
    store.upsert(&name, points(20..30)).await.unwrap();
    assert_eq!(count(&store).await, 30);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restart_between_two_calls_is_not_noticed() {
    let (store, server) = on_loopback().await;
    let name = create(&store).await;
    store.upsert(&name, points(0..20)).await.unwrap();
    let (data, address) = server.stop().await;
    let _server = Loopback::start_with(data, address).await;
    assert_eq!(count(&store).await, 20);
    store.upsert(&name, points(20..21)).await.unwrap();
    assert_eq!(count(&store).await, 21);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_that_stops_answering_is_unavailable_and_is_noticed_when_it_answers_again() {
    let server = Loopback::start().await;
    let proxy = Proxy::start(&server.url()).await;
    let mut options = options(&proxy.url());
    options.read_timeout = Duration::from_millis(300);
    let store = QdrantVectors::open(options).await.unwrap();
    let name = create(&store).await;
    assert_eq!(count(&store).await, 0);
    proxy.hold_answers();
    let start = Instant::now();
    let error = store.health().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(start.elapsed() < Duration::from_millis(1_500), "{:?}", start.elapsed());
    for _ in 0..3 {
        let error = store.get(&name, &[id(1)], Include::Payload).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
    let error = store.get(&name, &[id(1)], Include::Payload).await.unwrap_err();
    assert!(error.reason().contains("consecutive failures"), "{error}");
    proxy.cut().await;
    eventually("the store works again", || async { store.health().await.is_ok() }).await;
    assert_eq!(store.get(&name, &[id(1)], Include::Payload).await.unwrap(), [None]);
}

/// Calls to a server that hangs fail within a second, with the default time limits, those in flight too. One that answers slowly is
/// waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_that_hangs_is_noticed_and_one_that_is_slow_is_waited_for() {
    let server = Loopback::start().await;
    let proxy = Proxy::start(&server.url()).await;
    let mut options = QdrantOptions::new(proxy.url());
    options.prefix = "hang_".to_owned();
    let store = QdrantVectors::open(options).await.unwrap();
    let name = create(&store).await;
    assert_eq!(count(&store).await, 0);
    proxy.hold_answers();
    for round in 0..4 {
        let start = Instant::now();
        let reading: Vec<_> = (0..8)
            .map(|_| {
                let (store, name) = (store.clone(), name.clone());
                tokio::spawn(async move { store.get(&name, &[id(1)], Include::Payload).await })
            })
            .collect();
        for read in reading {
            assert_eq!(read.await.unwrap().unwrap_err().kind(), ErrorKind::Unavailable);
        }
        // A second, and what a busy machine adds.
        assert!(start.elapsed() < Duration::from_secs(3), "round {round}: {:?}", start.elapsed());
    }
    let writing = tokio::spawn({
        let (store, name) = (store.clone(), name.clone());
        async move { store.upsert(&name, points(0..10)).await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    proxy.cut().await;
    eventually("the store works again", || async { store.health().await.is_ok() }).await;
    if writing.await.unwrap().is_err() {
        store.upsert(&name, points(0..10)).await.unwrap();
    }
    assert_eq!(count(&store).await, 10);

    let slow = Duration::from_millis(2_500);
    server.data.state().points_delay = slow;
    let start = Instant::now();
    assert_eq!(count(&store).await, 10);
    assert!(start.elapsed() >= slow);
}

#[tokio::test]
async fn open_without_a_server_is_unavailable_and_names_the_reason() {
    let (data, address) = Loopback::start().await.stop().await;
    drop(data);
    let error = QdrantVectors::open(options(&format!("http://{address}"))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.reason().contains("refused"), "{error}");
}

#[tokio::test]
async fn server_of_an_older_release_is_refused() {
    for (version, is_accepted) in
        [("1.18.9", false), ("0.1.0", false), ("next", false), ("1.19.0", true), ("1.20.1", true)]
    {
        let data = Data::default();
        data.state().version = version.to_owned();
        let server = Loopback::start_with(data, ([127, 0, 0, 1], 0).into()).await;
        match QdrantVectors::open(options(&server.url())).await {
            Ok(_) => assert!(is_accepted, "{version}"),
            Err(error) => {
                assert!(!is_accepted, "{version}: {error}");
                assert!(error.reason().contains(version) && error.reason().contains("1.19"), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn invalid_addresses_are_refused() {
    for url in ["", "127.0.0.1:6334", "ftp://127.0.0.1", "http://", "http://a b"] {
        let error = QdrantVectors::open(options(url)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{url}: {error}");
    }
}

#[tokio::test]
async fn encrypted_connection_to_a_server_without_encryption_is_unavailable() {
    let server = Loopback::start().await;
    let error = QdrantVectors::open(options(&server.url().replace("http:", "https:"))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}
