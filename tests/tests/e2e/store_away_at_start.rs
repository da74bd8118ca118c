//! Stores that go away while a server starts.

use std::{thread, time::Duration};

use lkr_test_qdrant::{Code, Status};
use lkr_tests::{Role, Server, SharedStores};
use serde_json::json;

use crate::several_processes::{eventually, rock};

const WAITS: &str = "a store is away; the start waits for it";

/// The codes that a node of Qdrant answers while a shard has no copy that can be read.
const CODES: [Code; 3] = [Code::Internal, Code::Unavailable, Code::FailedPrecondition];

/// Starts the server while Qdrant cannot read its shards, until the server waits for it. `false` if Qdrant is a server of others.
fn starts_amid_outage(stores: &SharedStores, server: &Server, code: Code) -> bool {
    if !stores.set_qdrant_outage(Some(Status::new(code, "1 of 1 read operations failed"))) {
        eprintln!("skipped: the Qdrant server is not one of this test");
        return false;
    }
    let waits = || server.log().matches(WAITS).count();
    let before = waits();
    server.launch();
    eventually("the server waits for Qdrant", || waits() > before || server.has_ended());
    assert_waits(server);
    true
}

/// Checks that the server goes on waiting, which it says to those who ask.
fn assert_waits(server: &Server) {
    thread::sleep(Duration::from_secs(3));
    assert!(!server.has_ended(), "{}", server.log());
    let status = |path| server.try_call("GET", path, None, None).unwrap().status;
    assert_eq!((status("/healthz"), status("/readyz")), (200, 503));
}

fn assert_finds(server: &Server) {
    let found = server.search(&json!({"query": "rock number1"}));
    assert_eq!(found["results"][0]["source"], "quarry:1", "{found}");
}

#[test]
fn start_waits_until_qdrant_can_read_its_shards() {
    let Some(stores) = SharedStores::start() else { return };
    let server = stores.server(Role::All);
    let _doc_id = server.add(&rock(1));
    for code in CODES {
        server.stop();
        if !starts_amid_outage(&stores, &server, code) {
            return;
        }
        assert!(server.log().contains("1 of 1 read operations failed"), "{}", server.log());
        stores.set_qdrant_outage(None);
        assert!(server.becomes_ready(), "{}", server.log());
        assert_finds(&server);
    }
    // A server that waits stops in order.
    server.stop();
    starts_amid_outage(&stores, &server, Code::Internal);
    server.stop();
}

#[test]
fn start_waits_for_the_object_store_and_redis_that_go_away_in_its_middle() {
    let Some(mut stores) = SharedStores::start() else { return };
    let server = stores.stopped_server(Role::All);
    // The first start looks for texts of lost records.
    if !starts_amid_outage(&stores, &server, Code::Internal) {
        return;
    }
    stores.s3.pause();
    stores.set_qdrant_outage(None);
    assert_waits(&server);
    stores.s3.resume();
    assert!(server.becomes_ready(), "{}", server.log());
    let _doc_id = server.add(&rock(1));

    server.stop();
    starts_amid_outage(&stores, &server, Code::Internal);
    stores.redis.kill();
    stores.set_qdrant_outage(None);
    assert_waits(&server);
    stores.redis.restart();
    assert!(server.becomes_ready(), "{}", server.log());
    assert_finds(&server);
}

/// Waiting does not bring back what Redis lost.
#[test]
fn start_is_refused_if_redis_loses_its_records_in_the_middle() {
    let Some(mut stores) = SharedStores::start() else { return };
    let server = stores.server(Role::All);
    let _doc_id = server.add(&rock(1));
    server.stop();
    if !starts_amid_outage(&stores, &server, Code::Internal) {
        return;
    }
    stores.redis.restart_empty();
    stores.set_qdrant_outage(None);
    let status = server.wait();
    assert!(
        !status.success() && server.log().contains("its records have to be restored"),
        "{}",
        server.log()
    );
}
