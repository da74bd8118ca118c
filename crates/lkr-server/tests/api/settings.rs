//! Runtime settings.

use actix_web::{http::Method, test::TestRequest};
use serde_json::{Value, json};

use crate::support::{Api, App, TestResponse, api};

const SECRET: &str = "sk-planted-4711";

async fn get<S: App>(api: &Api<S>, token: &str) -> TestResponse {
    api.call(Method::GET, "/api/v1/settings", token, None).await
}

async fn put<S: App>(api: &Api<S>, token: &str, body: Value) -> TestResponse {
    api.call(Method::PUT, "/api/v1/settings", token, Some(body)).await
}

async fn put_if<S: App>(api: &Api<S>, token: &str, tag: &str, body: Value) -> TestResponse {
    let request = TestRequest::with_uri("/api/v1/settings")
        .method(Method::PUT)
        .insert_header(("authorization", format!("Bearer {token}")))
        .insert_header(("if-match", tag))
        .set_json(body);
    api.send(request).await
}

#[actix_web::test]
async fn settings_have_the_documented_defaults() {
    let api = api().await;
    let eva = api.user("eva").await;
    let model = json!({ "provider": null, "model": "", "base_url": "", "api_key": null, "timeout_s": 60,
        "context_tokens": 8192 });
    let parsers = json!({
        "pdf": { "plugin": "pdf_oxide" },
        "docx": { "plugin": "zip_xml" },
        "html": { "plugin": "article" },
        "ocr": { "plugin": "none", "languages": ["en"] },
    });
    let expected = json!({
        "models": { "embed": model, "summarize": model, "classify": model, "rerank": model },
        "parsers": parsers,
        "dedup": { "strategy": "sha256", "simhash_threshold": 3 },
    });
    assert_eq!(get(&api, &eva).await.data(), expected);
}

#[actix_web::test]
async fn settings_change_keeps_absent_and_null_keys() {
    let api = api().await;
    let admin = api.admin().await;
    let before = get(&api, &admin).await.data();
    let summarize = json!({ "provider": "remote_compatible", "model": "m", "base_url": "https://models.example/v1",
        "api_key": SECRET, "timeout_s": null });
    let after =
        put(&api, &admin, json!({ "models": { "summarize": summarize }, "dedup": null })).await.data();
    let entry = json!({ "provider": "remote_compatible", "model": "m", "base_url": "https://models.example/v1",
        "api_key": "********", "timeout_s": 60,
        "context_tokens": 8192 });
    let mut expected = before.clone();
    expected["models"]["summarize"] = entry;
    assert_eq!(after, expected);
    assert_eq!(get(&api, &admin).await.data(), after);
    // A response can be sent back as a change.
    assert_eq!(put(&api, &admin, after.clone()).await.data(), after);
    let dedup = json!({ "dedup": { "strategy": "simhash" } });
    assert_eq!(
        put(&api, &admin, dedup).await.data()["dedup"],
        json!({ "strategy": "simhash", "simhash_threshold": 3 })
    );
    let moved = json!({ "models": { "summarize": { "base_url": "https://elsewhere.example", "api_key": "********" } } });
    assert_eq!(
        put(&api, &admin, moved).await.data()["models"]["summarize"]["api_key"],
        Value::Null,
        "the mask was stored as a key"
    );
    let key = |key: Value| json!({ "models": { "summarize": { "api_key": key } } });
    assert_eq!(
        put(&api, &admin, key(SECRET.into())).await.data()["models"]["summarize"]["api_key"],
        "********"
    );
    assert_eq!(
        put(&api, &admin, key(Value::Null)).await.data()["models"]["summarize"]["api_key"],
        Value::Null
    );
    let off = json!({ "models": { "summarize": { "provider": "none" } } });
    assert_eq!(put(&api, &admin, off).await.data()["models"]["summarize"]["provider"], Value::Null);
    let reset = api.post("/api/v1/settings/reset", &admin, json!({})).await;
    assert!(reset.header("etag").is_some());
    assert_eq!(reset.data(), before);
}

#[actix_web::test]
async fn invalid_settings_change_is_named_and_changes_nothing() {
    let api = api().await;
    let admin = api.admin().await;
    let before = get(&api, &admin).await;
    let long = "x".repeat(201);
    for (body, named) in [
        (json!({}), "models"),
        (json!({ "models": null, "parsers": null, "dedup": null }), "models"),
        (json!({ "model": {} }), "model"),
        (json!({ "models": [] }), "models"),
        (json!({ "models": { "chat": {} } }), "chat"),
        (json!({ "models": { "embed": { "provider": "openai" } } }), "openai"),
        (json!({ "models": { "embed": { "url": "x" } } }), "url"),
        (json!({ "models": { "embed": { "model": long } } }), "models.embed.model"),
        (json!({ "models": { "embed": { "base_url": "ftp://x" } } }), "models.embed.base_url"),
        (
            json!({ "models": { "embed": { "base_url": "http://u:sk-planted-4711@h" } } }),
            "models.embed.base_url",
        ),
        (json!({ "models": { "embed": { "api_key": 4711 } } }), "api_key"),
        (json!({ "models": { "embed": { "api_key": "" } } }), "models.embed.api_key"),
        (json!({ "models": { "embed": { "timeout_s": 0 } } }), "models.embed.timeout_s"),
        (json!({ "models": { "classify": { "context_tokens": 999 } } }), "models.classify.context_tokens"),
        (json!({ "parsers": { "pdf": { "plugin": "nonsense" } } }), "parsers.pdf.plugin"),
        (json!({ "parsers": { "ocr": { "plugin": "tesseract" } } }), "parsers.ocr.plugin"),
        (json!({ "parsers": { "ocr": { "languages": ["eng"] } } }), "parsers.ocr.languages"),
        (json!({ "parsers": { "ocr": { "languages": [] } } }), "parsers.ocr.languages"),
        (json!({ "dedup": { "strategy": "md5" } }), "md5"),
        (json!({ "dedup": { "simhash_threshold": 65 } }), "dedup.simhash_threshold"),
        (json!({ "dedup": { "simhash_threshold": -1 } }), "dedup.simhash_threshold"),
        (json!({ "dedup": { "strategy": "none", "simhash_threshold": 65 } }), "dedup.simhash_threshold"),
    ] {
        let message = put(&api, &admin, body.clone()).await.expect_error(1001, 400);
        assert!(message.contains(named), "{body}: {message}");
        assert!(!message.contains("4711"), "{message}");
    }
    let after = get(&api, &admin).await;
    assert_eq!((after.data(), after.header("etag")), (before.data(), before.header("etag")));
}

#[actix_web::test]
async fn empty_settings_change_keeps_the_etag_and_is_not_logged() {
    let api = api().await;
    let admin = api.admin().await;
    let before = get(&api, &admin).await;
    for body in [
        json!({ "models": {} }),
        json!({ "dedup": { "strategy": null } }),
        json!({ "models": { "embed": {} } }),
    ] {
        let after = put(&api, &admin, body.clone()).await;
        assert_eq!((after.data(), after.header("etag")), (before.data(), before.header("etag")), "{body}");
        put_if(&api, &admin, "\"x\"", body).await.expect_error(1003, 409);
    }
    let log = api.call(Method::GET, "/api/v1/audit?action=settings.change", &admin, None).await.data();
    assert_eq!(log["items"], json!([]));
}

#[actix_web::test]
async fn non_text_if_match_is_a_conflict() {
    let api = api().await;
    let admin = api.admin().await;
    let request = TestRequest::with_uri("/api/v1/settings")
        .method(Method::PUT)
        .insert_header(("authorization", format!("Bearer {admin}")))
        .insert_header(("if-match", actix_web::http::header::HeaderValue::from_bytes(b"\"\xe9\"").unwrap()))
        .set_json(json!({ "dedup": { "simhash_threshold": 5 } }));
    api.send(request).await.expect_error(1003, 409);
}

#[actix_web::test]
async fn stale_if_match_is_a_conflict() {
    let api = api().await;
    let admin = api.admin().await;
    let tag = get(&api, &admin).await.header("etag").unwrap().to_owned();
    let body = |n: u32| json!({ "dedup": { "simhash_threshold": n } });
    let changed = put_if(&api, &admin, &tag, body(4)).await;
    assert!(changed.status.is_success());
    let new = changed.header("etag").unwrap().to_owned();
    assert_ne!(new, tag);
    assert_eq!(get(&api, &admin).await.header("etag"), Some(&*new));
    for stale in [&*tag, "\"x\"", "nonsense", &format!("W/{new}")] {
        put_if(&api, &admin, stale, body(5)).await.expect_error(1003, 409);
    }
    let list = format!("\"x\", {new}");
    let changed = put_if(&api, &admin, &list, body(6)).await;
    assert!(changed.status.is_success(), "one tag of a list matches");
    assert!(put_if(&api, &admin, "*", body(4)).await.status.is_success());
    assert_eq!(get(&api, &admin).await.data()["dedup"]["simhash_threshold"], 4);
}

#[actix_web::test]
async fn settings_schema_lists_the_allowed_values() {
    let api = api().await;
    let eva = api.user("eva").await;
    let data = api.call(Method::GET, "/api/v1/settings/schema", &eva, None).await.data();
    assert_eq!(data["llm_providers"], json!(["local_llm", "remote_compatible"]));
    assert_eq!(data["dedup_strategies"], json!(["none", "sha256", "simhash"]));
    for kind in ["pdf", "docx", "html", "ocr"] {
        assert!(!data[format!("{kind}_plugins")].as_array().unwrap().is_empty(), "{kind}");
    }
    let threshold = data.pointer("/schema/properties/dedup/properties/simhash_threshold").unwrap();
    assert_eq!((&threshold["default"], &threshold["maximum"]), (&json!(3), &json!(64)));
}

#[actix_web::test]
async fn settings_test_of_an_unusable_model_reports_why() {
    let api = api().await;
    let admin = api.admin().await;
    let test = async |body: Value| api.post("/api/v1/settings/test", &admin, body).await;
    let before = get(&api, &admin).await;
    for (models, expected) in [
        (json!({ "embed": {} }), "no embedding model"),
        (json!({ "summarize": {} }), "provider is null"),
        (
            json!({ "summarize": { "provider": "remote_compatible", "base_url": "http://127.0.0.1:1", "api_key": SECRET } }),
            "connect",
        ),
        (json!({ "rerank": {} }), "no rerank model"),
        (json!({ "rerank": { "provider": "local_llm" } }), "base_url is empty"),
        (
            json!({ "rerank": { "provider": "remote_compatible", "base_url": "http://127.0.0.1:1", "api_key": SECRET } }),
            "connect",
        ),
    ] {
        let tested = test(json!({ "models": models })).await.data();
        assert_eq!(tested["ok"], false);
        assert!(tested["latency_ms"].is_u64());
        let detail = tested["detail"].as_str().unwrap();
        assert!(detail.contains(expected) && !detail.contains(SECRET), "{detail}");
    }
    for models in [json!({}), json!({ "embed": {}, "rerank": {} }), json!({ "chat": {} }), json!(null)] {
        test(json!({ "models": models })).await.expect_error(1001, 400);
    }
    test(json!({ "models": { "embed": { "base_url": "nonsense" } } })).await.expect_error(1001, 400);
    test(json!({})).await.expect_error(1001, 400);
    assert_eq!(get(&api, &admin).await.header("etag"), before.header("etag"), "nothing was saved");
}

/// A value derived from the settings is built once and dropped after a change, once its users drop it.
#[actix_web::test]
async fn settings_change_applies_to_later_requests_only() {
    let api = api().await;
    let admin = api.admin().await;
    let client = api.settings.derive(|settings| settings.models.summarize.model.clone());
    let earlier = client.get().await.unwrap();
    let weak = std::sync::Arc::downgrade(&client.get().await.unwrap());
    let body = json!({ "models": { "summarize": { "model": "second" } } });
    put(&api, &admin, body).await.data();
    assert_eq!((earlier.as_str(), client.get().await.unwrap().as_str()), ("", "second"));
    drop(earlier);
    assert!(weak.upgrade().is_none(), "an unused derived value is kept");
    api.post("/api/v1/settings/reset", &admin, json!({})).await.data();
    assert_eq!(client.get().await.unwrap().as_str(), "");
}

#[actix_web::test]
async fn lesson_31_settings_change_invalidates_cached_searches() {
    let api = api().await;
    let admin = api.admin().await;
    api.add(&admin, json!({ "text": crate::support::TEXT })).await;
    let search = async || {
        let response = api.post("/api/v1/search", "", json!({ "query": "volcanoes" })).await;
        response.header("x-cache").unwrap().to_owned()
    };
    assert_eq!((search().await, search().await), ("miss".to_owned(), "hit".to_owned()));
    put(&api, &admin, json!({ "dedup": { "simhash_threshold": 5 } })).await.data();
    assert_eq!((search().await, search().await), ("miss".to_owned(), "hit".to_owned()));
    api.post("/api/v1/settings/reset", &admin, json!({})).await.data();
    assert_eq!(search().await, "miss");
}
