//! A server without an embedding model, and adding one later.

use lkr_tests::{Server, model_dir};
use serde_json::{Value, json};

fn dependencies(server: &Server) -> Value {
    let response = server.try_call("GET", "/readyz", None, None).unwrap();
    assert_eq!(response.status, 200);
    response.data()["dependencies"].clone()
}

#[test]
fn keyword_search_works_and_missing_model_is_reported() {
    let server = Server::start();
    assert_eq!(dependencies(&server)["embedder"], "degraded", "{}", dependencies(&server));
    assert!(server.log().contains("model"), "the log reports the missing model:\n{}", server.log());
    let doc_id = server.add(&json!({"text": "The physician prescribed rest."}));
    for request in [
        json!({"query": "physician"}),
        json!({"query": "physician", "mode": "flat"}),
        json!({"query": "physician", "fusion": "rrf"}),
    ] {
        let found = server.search(&request);
        assert_eq!(found["results"][0]["doc_id"], doc_id);
        assert!(
            found["results"][0]["scores"]["dense"].is_null()
                && found["results"][0]["scores"]["sparse"].is_number()
        );
        let warnings = found["warnings"].to_string();
        assert!(warnings.contains("model"), "{warnings}");
    }
    assert_eq!(
        server.search(&json!({"query": "doctor"}))["results"],
        json!([]),
        "keyword search finds no synonyms"
    );
}

#[test]
fn documents_added_without_a_model_are_embedded_later() {
    let Some(model) = model_dir() else { return };
    let mut server = Server::start();
    let texts = [
        "The physician prescribed rest.",
        "A locomotive pulled the carriages uphill.",
        "Bread rises because yeast makes gas.",
    ];
    let ids: Vec<String> = texts.iter().map(|text| server.add(&json!({"text": text}))).collect();
    server.stop();
    server.set("LKR_MODEL_DIR", &model.display().to_string());
    server.restart();
    let best = |query: &str| server.search(&json!({"query": query}))["results"][0].clone();
    // The text contains no word of the query.
    let found =
        server.wait_until(|| Some(best("doctor's treatment")).filter(|result| result["doc_id"] == ids[0]));
    assert!(found["scores"]["dense"].is_number() && found["scores"]["sparse"].is_null(), "{found}");
    server.wait_until(|| Some(best("train engine")).filter(|result| result["doc_id"] == ids[1]));
    assert_eq!(dependencies(&server)["embedder"], "ok", "{}", dependencies(&server));
    let later = server.add(&json!({"text": "Whales are mammals of the sea."}));
    assert_eq!(best("marine animals")["doc_id"], later);
    assert_eq!(server.search(&json!({"query": "doctor"}))["warnings"], json!([]));
}
