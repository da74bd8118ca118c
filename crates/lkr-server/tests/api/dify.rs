//! The External Knowledge API of Dify.

use actix_web::{http::Method, test::TestRequest};
use serde_json::{Value, json};

use crate::support::{Api, App, TEXT, TestResponse, api};

const RETRIEVAL: &str = "/api/v1/dify/retrieval";

/// A request as Dify sends it.
fn request(knowledge_id: &str, query: &str) -> Value {
    json!({
        "retrieval_setting": { "top_k": 4, "score_threshold": 0.0 },
        "query": query,
        "knowledge_id": knowledge_id,
    })
}

fn with_conditions(logical_operator: &str, conditions: Value) -> Value {
    let mut body = request("default", "ocean");
    body["metadata_condition"] = json!({ "logical_operator": logical_operator });
    body["metadata_condition"]["conditions"] = conditions;
    body
}

async fn records<S: App>(api: &Api<S>, key: &str, body: Value) -> Vec<Value> {
    let response = api.post(RETRIEVAL, key, body).await;
    assert_eq!(response.status.as_u16(), 200, "{}", response.json());
    let json = response.json();
    let keys: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["records"]);
    assert!(response.header("x-request-id").is_some());
    json["records"].as_array().unwrap().clone()
}

async fn read_key<S: App>(api: &Api<S>, token: &str, space: &str) -> String {
    api.key_with(token, json!({ "name": "dify", "scope": "read", "spaces": [space] })).await
}

#[actix_web::test]
async fn retrieval_returns_records_with_metadata_that_is_never_null() {
    let api = api().await;
    let admin = api.admin().await;
    let doc_id = api.add(&admin, json!({ "text": TEXT, "source": "s" })).await;
    let key = read_key(&api, &admin, "default").await;
    let found = records(&api, &key, request("default", "volcanoes of Io or an ocean")).await;
    let keys: Vec<_> = found[0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["content", "metadata", "score", "title"]);
    assert!(found[0]["content"].as_str().unwrap().contains("volcanoes"));
    assert_eq!(found[0]["title"], "Moons");
    assert_eq!(found[0]["metadata"]["lkr.doc_id"], json!(doc_id));
    assert_eq!(found[0]["metadata"]["lkr.source"], "s");
    let scores: Vec<f64> = found.iter().map(|record| record["score"].as_f64().unwrap()).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b) && scores.iter().all(|score| (0.0..=1.0).contains(score)));
    let mut body = request("default", "volcanoes of Io or an ocean");
    body["retrieval_setting"]["score_threshold"] = json!(scores[0]);
    assert_eq!(records(&api, &key, body).await.len(), 1);
    let mut body = request("default", "volcanoes of Io or an ocean");
    body["retrieval_setting"]["top_k"] = json!(1);
    assert_eq!(records(&api, &key, body).await.len(), 1);
    let defaults = json!({ "knowledge_id": "default", "query": "moons", "metadata_condition": null });
    assert!(!records(&api, &key, defaults).await.is_empty());
}

#[actix_web::test]
async fn conditions_select_documents_by_their_metadata() {
    let api = api().await;
    let admin = api.admin().await;
    for (n, year) in ["2024", "2025", "2026"].into_iter().enumerate() {
        let metadata = json!({ "year": year, "kind": if n == 0 { "draft" } else { "final" } });
        let metadata = if n == 2 { json!({ "year": year }) } else { metadata };
        let text = format!("# Report {year}\n\nThe ocean of the year {year} is deep.\n");
        api.add(&admin, json!({ "text": text, "title": year, "metadata": metadata })).await;
    }
    let one = |name: &str, operator: &str, value: Value| json!([{ "name": name, "comparison_operator": operator, "value": value }]);
    for (operator, conditions, expected) in [
        ("and", one("kind", "is", json!("draft")), "2024"),
        ("and", one("kind", "is not", json!("draft")), "2025 2026"),
        ("and", one("year", "start with", json!("202")), "2024 2025 2026"),
        ("and", one("year", "in", json!(["2024", "2026"])), "2024 2026"),
        ("and", one("year", "not in", json!("2024,2026")), "2025"),
        ("and", one("kind", "empty", json!(null)), "2026"),
        ("and", one("kind", "not empty", json!(null)), "2024 2025"),
        ("and", one("year", "=", json!(2025)), "2025"),
        ("and", one("year", "≠", json!("2025")), "2024 2026"),
        ("and", one("year", "≥", json!(2025)), "2025 2026"),
        ("and", one("year", ">", json!(2025)), "2026"),
        ("and", one("year", "≤", json!(2025)), "2024 2025"),
        ("and", one("year", "<", json!(2025)), "2024"),
        ("and", one("lkr.created_at", "after", json!("2020-01-01")), "2024 2025 2026"),
        ("and", one("lkr.created_at", "before", json!(1_577_836_800)), ""),
        (
            "or",
            json!([
                { "name": "kind", "comparison_operator": "is", "value": "draft" },
                { "name": "year", "comparison_operator": ">", "value": 2025 },
            ]),
            "2024 2026",
        ),
        (
            "and",
            json!([
                { "name": "kind", "comparison_operator": "is", "value": "draft" },
                { "name": "year", "comparison_operator": ">", "value": 2025 },
            ]),
            "",
        ),
    ] {
        let found = records(&api, &admin, with_conditions(operator, conditions.clone())).await;
        let mut titles: Vec<_> = found.iter().map(|record| record["title"].as_str().unwrap()).collect();
        titles.sort_unstable();
        assert_eq!(titles.join(" "), expected, "{operator} {conditions}");
    }
    for operator in ["contains", "not contains", "end with", "resembles"] {
        let response =
            api.post(RETRIEVAL, &admin, with_conditions("and", one("kind", operator, json!("x")))).await;
        let message = response.expect_dify_error(400, 400);
        assert!(message.contains(&format!("{operator:?}")), "{message}");
    }
}

#[actix_web::test]
async fn every_error_has_the_form_of_dify() {
    let api = api().await;
    let admin = api.admin().await;
    let body = || request("default", "moons");
    let with_header = |value: &str| {
        TestRequest::with_uri(RETRIEVAL)
            .method(Method::POST)
            .insert_header(("authorization", value))
            .set_json(body())
    };
    api.post(RETRIEVAL, "", body()).await.expect_dify_error(401, 1001);
    for malformed in ["", "Bearer", &admin, &format!("Basic {admin}")] {
        api.send(with_header(malformed)).await.expect_dify_error(401, 1001);
    }
    api.send(with_header("Bearer wrong")).await.expect_dify_error(401, 1002);
    api.account("new", lkr_auth::Role::User, true).await;
    let pending = api.login("new").await;
    api.post(RETRIEVAL, &pending, body()).await.expect_dify_error(403, 1002);
    api.post(RETRIEVAL, &admin, request("nowhere", "moons")).await.expect_dify_error(404, 2001);
    api.post(RETRIEVAL, &admin, request("No Name", "moons")).await.expect_dify_error(404, 2001);
    for (key, value) in [
        ("query", json!("")),
        ("query", json!(7)),
        ("query", json!("x".repeat(2_001))),
        ("retrieval_setting", json!({ "top_k": 0 })),
        ("retrieval_setting", json!({ "top_k": 101 })),
        ("retrieval_setting", json!({ "score_threshold": -0.5 })),
        ("retrieval_setting", json!([])),
        (
            "metadata_condition",
            json!({ "logical_operator": "xor", "conditions": [
            { "name": "a", "comparison_operator": "empty" },
        ] }),
        ),
        ("metadata_condition", json!({ "conditions": [{ "name": ["a"], "comparison_operator": "empty" }] })),
        ("unknown", json!(1)),
    ] {
        let mut body = body();
        body[key] = value.clone();
        let message = api.post(RETRIEVAL, &admin, body).await.expect_dify_error(400, 400);
        assert!(message.contains(key) || key == "retrieval_setting", "{key} {value}: {message}");
    }
    for (path, method, status) in [
        ("/api/v1/dify", Method::POST, 404),
        ("/api/v1/dify/retrieval/", Method::POST, 404),
        ("/api/v1/dify/health", Method::GET, 404),
        (RETRIEVAL, Method::GET, 405),
    ] {
        api.call(method, path, &admin, None).await.expect_dify_error(status, status.into());
    }
    let bearer = format!("Bearer {admin}");
    let text = with_header(&bearer).insert_header(("content-type", "text/plain"));
    api.send(text).await.expect_dify_error(415, 415);
}

#[actix_web::test]
async fn unreadable_knowledge_is_answered_as_an_unknown_one() {
    let api = api().await;
    let admin = api.admin().await;
    api.post("/api/v1/spaces", &admin, json!({ "space": "legal" })).await.data();
    api.add(&admin, json!({ "text": TEXT, "space": "legal" })).await;
    let comparable = |response: &TestResponse, name: &str| {
        (response.status.as_u16(), String::from_utf8_lossy(&response.body).replace(name, "NAME"))
    };
    let outsider = api.user("eva").await;
    let other_key = read_key(&api, &admin, "default").await;
    for token in [&outsider, &other_key] {
        let hidden = api.post(RETRIEVAL, token, request("legal", "moons")).await;
        hidden.expect_dify_error(404, 2001);
        let unknown = api.post(RETRIEVAL, token, request("nowhere", "moons")).await;
        assert_eq!(comparable(&hidden, "legal"), comparable(&unknown, "nowhere"));
    }
    let key = read_key(&api, &admin, "legal").await;
    assert!(!records(&api, &key, request("legal", "volcanoes")).await.is_empty());
}
