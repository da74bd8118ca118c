//! Language models on another machine, as the settings name them.

use lkr_test_provider::{Fault, Quirks, TestProvider};
use lkr_tests::Server;
use serde_json::{Value, json};

const KEY: &str = "sk-planted-4711";

fn try_out(server: &Server, name: &str, entry: &Value) -> (bool, String) {
    let body = json!({ "models": { name: entry } });
    let tried = server.call("POST", "/settings/test", Some(&body), Some(server.admin()));
    assert_eq!(tried.status, 200, "{}", tried.message());
    let data = tried.data();
    let detail = data["detail"].as_str().unwrap().to_owned();
    assert!(!detail.contains(KEY), "{detail}");
    (data["ok"] == true, detail)
}

#[test]
fn an_entry_is_tried_out_with_the_stored_key_also_after_a_restart() {
    let provider = TestProvider::with(Quirks { key: Some(KEY.to_owned()), ..Quirks::default() });
    let server = Server::start();
    let named = json!({
        "provider": "remote_compatible", "model": "thinker", "base_url": provider.base_url(), "api_key": KEY,
    });
    let saved = json!({ "models": { "summarize": named } });
    assert_eq!(server.call("PUT", "/settings", Some(&saved), Some(server.admin())).status, 200);
    server.stop();
    server.restart();
    let (ok, detail) = try_out(&server, "summarize", &json!({ "api_key": "********" }));
    assert!(ok && detail.contains("thinker said") && detail.contains("it takes a schema"), "{detail}");
    // Another address is never shown the key.
    let elsewhere = TestProvider::start();
    let (ok, _) =
        try_out(&server, "summarize", &json!({ "base_url": elsewhere.base_url(), "api_key": "********" }));
    assert!(ok && elsewhere.seen().iter().all(|seen| seen.authorization.is_none()));
    provider.next([Fault::redirect(&elsewhere.base_url())]);
    let before = elsewhere.seen().len();
    let (ok, detail) = try_out(&server, "summarize", &json!({}));
    assert!(!ok && detail.contains("leads elsewhere") && elsewhere.seen().len() == before, "{detail}");
    let (ok, detail) = try_out(&server, "embed", &named);
    assert!(ok && detail.contains("64 dimensions"), "{detail}");
    for provider in [provider, elsewhere] {
        provider.assert_well_asked();
    }
}
