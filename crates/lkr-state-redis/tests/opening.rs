//! What opening checks, and kinds of servers.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

#[path = "support/common.rs"]
mod common;

use std::{net::TcpListener, path::Path, process::Command};

use common::{config, ms, open, opened, start};
use lkr_domain::TaskId;
use lkr_state::{ErrorKind, Expect, ScanOrder, StateStore as _, StateStoreExt as _, TaskQueue as _, Write};
use lkr_state_redis::{RedisConfig, RedisStore};
use lkr_test_support::{RedisServer, skip};

#[tokio::test]
async fn server_that_may_lose_writes_is_refused_unless_allowed() {
    let weak = [
        (["--appendonly", "no"], "appendonly is no"),
        (["--appendfsync", "everysec"], "appendfsync is everysec"),
        (["--no-appendfsync-on-rewrite", "yes"], "no-appendfsync-on-rewrite is yes"),
        (["--maxmemory-policy", "allkeys-lru"], "maxmemory-policy is allkeys-lru"),
    ];
    for (settings, reason) in weak {
        let Some(server) = RedisServer::start_with(&settings) else { return };
        let error = RedisStore::open(config(server.url()), None).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let text = error.to_string();
        assert!(text.contains(reason) && text.contains("allow_weak_durability"), "{text}");
        let allowed = RedisConfig { allow_weak_durability: true, ..config(server.url()) };
        let warnings = opened(allowed).await.warnings;
        assert!(warnings.len() == 1 && warnings[0].contains(reason), "{warnings:?}");
    }
}

#[tokio::test]
async fn server_that_hides_its_settings_needs_permission() {
    let Some(server) = RedisServer::start() else { return };
    let user = ["ACL", "SETUSER", "me", "on", ">p@ss", "~{lkr}:*", "+@all", "-@dangerous"];
    assert_eq!(server.command(&user).unwrap(), "+OK\r\n");
    let url = |password: &str| format!("redis://me:{password}@127.0.0.1:{}", server.port());
    let error = RedisStore::open(config(url("p%40ss")), None).await.unwrap_err();
    assert!(error.to_string().contains("CONFIG GET is refused"), "{error}");
    let allowed = RedisConfig { allow_weak_durability: true, ..config(url("p%40ss")) };
    let opened = opened(allowed).await;
    assert!(opened.warnings.iter().any(|warning| warning.contains("CONFIG GET")), "{:?}", opened.warnings);
    opened.store.state().apply(vec![Write::increment("count")]).await.unwrap();
    opened.store.queue().push(TaskId::new(), ms(0)).await.unwrap();
    assert!(opened.store.queue().claim(ms(1_000), ms(0)).await.unwrap().is_some());
    let error = RedisStore::open(config(url("hush")), None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert!(!format!("{error} {error:?}").contains("hush"), "{error:?}");
}

#[tokio::test]
async fn absent_server_is_unavailable_soon() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let begin = std::time::Instant::now();
    let url = format!("redis://127.0.0.1:{port}");
    let short = RedisConfig { write_timeout: ms(500), ..RedisConfig::new(url) };
    let error = RedisStore::open(short, None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(begin.elapsed() < ms(3_000));
}

#[tokio::test]
async fn emptied_server_is_noticed() {
    let Some(mut server) = RedisServer::start() else { return };
    let first = opened(config(server.url())).await;
    assert!(!first.found_empty);
    assert_eq!(first.store.installation().await.unwrap(), Some(first.installation));
    server.kill();
    server.restart();
    let again = RedisStore::open(config(server.url()), Some(first.installation)).await.unwrap();
    assert_eq!((again.installation, again.found_empty), (first.installation, false));
    server.restart_empty();
    assert_eq!(first.store.installation().await.unwrap(), None);
    // A store without records would look like one whose records were deleted.
    refuses_to_work(&first.store).await;
    let empty = RedisStore::open(config(server.url()), Some(first.installation)).await.unwrap();
    assert!(empty.found_empty && empty.installation != first.installation);
    refuses_to_work(&first.store).await;
    empty.store.state().health().await.unwrap();
    let unaware = RedisStore::open(config(server.url()), None).await.unwrap();
    assert_eq!((unaware.installation, unaware.found_empty), (empty.installation, false));
}

async fn refuses_to_work(store: &RedisStore) {
    let (state, queue) = (store.state(), store.queue());
    let results = [
        state.get("a").await.map(drop),
        state.scan("", None, ScanOrder::Ascending, 10).await.map(drop),
        state.apply(vec![Write::put("a", Expect::Any, "v")]).await,
        state.health().await,
        queue.push(TaskId::new(), ms(0)).await,
        queue.claim(ms(1_000), ms(0)).await.map(drop),
    ];
    for result in results {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("was emptied"), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    assert!(state.snapshot(&folder.path().join("copy")).await.is_err());
}

#[tokio::test]
async fn stores_with_different_prefixes_do_not_see_each_other() {
    let Some(server) = RedisServer::start() else { return };
    let first = open(config(server.url())).await;
    let second = open(RedisConfig { prefix: "other".to_owned(), ..config(server.url()) }).await;
    first.state().apply(vec![Write::put("a", Expect::Absent, "first")]).await.unwrap();
    second.state().apply(vec![Write::put("a", Expect::Absent, "second")]).await.unwrap();
    first.queue().push(TaskId::new(), ms(0)).await.unwrap();
    assert_eq!(second.queue().claim(ms(1_000), ms(0)).await.unwrap(), None);
    assert_eq!(first.state().get("a").await.unwrap().unwrap().value, "first");
    for prefix in ["", "a{b", "}"] {
        let invalid = RedisConfig { prefix: prefix.to_owned(), ..config(server.url()) };
        assert_eq!(RedisStore::open(invalid, None).await.unwrap_err().kind(), ErrorKind::Invalid);
    }
}

/// So a check can read the records of a master that has no replica at the moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_with_a_name_is_opened_while_writes_are_refused() {
    let Some((server, store)) = start().await else { return };
    store.state().apply(vec![Write::put("a", Expect::Any, "v")]).await.unwrap();
    assert_eq!(server.command(&["CONFIG", "SET", "min-replicas-to-write", "1"]).unwrap(), "+OK\r\n");
    let store = open(RedisConfig { write_timeout: ms(500), ..config(server.url()) }).await;
    assert_eq!(store.state().get("a").await.unwrap().unwrap().value, "v");
    let error = store.state().apply(vec![Write::put("a", Expect::Any, "w")]).await.unwrap_err();
    assert!(error.to_string().contains("NOREPLICAS"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_holds_all_keys_in_one_slot() {
    let Some(server) = RedisServer::start_with(&["--cluster-enabled", "yes"]) else { return };
    assert_eq!(server.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]).unwrap(), "+OK\r\n");
    while !server.command(&["CLUSTER", "INFO"]).unwrap().contains("cluster_state:ok") {
        tokio::time::sleep(ms(20)).await;
    }
    let url = server.url().replace("redis://", "redis+cluster://");
    let error = RedisStore::open(config(url.clone()), None).await.unwrap_err();
    assert!(error.to_string().contains("min-replicas-to-write"), "{error}");
    let store = open(RedisConfig { allow_weak_durability: true, ..config(url) }).await;
    let (state, queue) = (store.state(), store.queue());
    let step = (0..20).map(|n| Write::put(format!("{n:02}"), Expect::Absent, "v")).collect();
    state.apply(step).await.unwrap();
    assert_eq!(state.scan("", None, ScanOrder::Descending, 3).await.unwrap()[0].0, "19");
    let waiting = {
        let queue = queue.clone();
        tokio::spawn(async move { queue.claim(ms(60_000), ms(30_000)).await.unwrap().unwrap() })
    };
    tokio::time::sleep(ms(100)).await;
    queue.push(TaskId::new(), ms(0)).await.unwrap();
    queue.finish(&waiting.await.unwrap()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    state.snapshot(&folder.path().join("copy")).await.unwrap();
}

#[tokio::test]
async fn server_with_tls_is_trusted_by_its_authority_alone() {
    let folder = tempfile::tempdir().unwrap();
    if !make_certificates(folder.path()) {
        return skip("openssl is not installed");
    }
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let settings = ["--tls-port", &port, "--tls-auth-clients", "no", "--tls-ca-cert-file", &path("ca.pem")];
    let files = ["--tls-cert-file", &path("server.pem"), "--tls-key-file", &path("server.key")];
    let Some(_server) = RedisServer::start_with(&[&settings[..], &files].concat()) else { return };
    let url = format!("rediss://127.0.0.1:{port}");
    let authorities = std::fs::read(folder.path().join("ca.pem")).unwrap();
    let trusting = RedisConfig { tls_authorities: Some(authorities), ..config(url.clone()) };
    open(trusting).await.state().apply(vec![Write::increment("count")]).await.unwrap();
    let error = RedisStore::open(RedisConfig { write_timeout: ms(500), ..RedisConfig::new(url) }, None).await;
    assert!(error.unwrap_err().to_string().contains("certificate"));
}

/// An authority and a certificate of 127.0.0.1; `false` without openssl.
fn make_certificates(folder: &Path) -> bool {
    let openssl = |arguments: &str| {
        let ran = Command::new("openssl").args(arguments.split(' ')).current_dir(folder).output();
        ran.is_ok_and(|output| output.status.success())
    };
    std::fs::write(folder.join("names"), "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n").unwrap();
    openssl("req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -subj /CN=authority -days 2")
        && openssl("req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=server")
        && openssl(
            "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.pem -days 2 -extfile names",
        )
}
