//! Every invalid request gets its error code, and the server keeps working.

mod bodies;
mod requests;

use lkr_tests::Server;
use serde_json::json;

const UNKNOWN: &str = "00000000000000000000000000000000";

/// Runs `requests`, then checks that the server still works and has not panicked.
fn assert_server_survives(requests: impl FnOnce(&Server)) {
    let server = Server::start();
    requests(&server);
    let doc_id = server.add(&json!({"text": "The lighthouse still stands."}));
    assert_eq!(server.search(&json!({"query": "lighthouse"}))["results"][0]["doc_id"], doc_id);
    assert!(!server.log().contains("panicked"), "{}", server.log());
}
