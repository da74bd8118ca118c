//! Language models of the settings, and tests of model entries.

use std::{sync::Arc, time::Duration};

use lkr::ports::models::{
    ChatMessage, ChatModel, ChatModelSource, ChatPurpose, ChatRequest, ErrorKind, Result,
};
use lkr_server::ChatModels;
use lkr_test_provider::{Fault, ProviderBehavior, TestProvider};
use serde_json::{Value, json};

use crate::support::{Api, App, api};

const KEY: &str = "sk-planted-4711";

fn entry(provider: &TestProvider, model: &str, key: &str) -> Value {
    json!({ "provider": "remote_compatible", "model": model, "base_url": provider.base_url(), "api_key": key })
}

async fn set<S: App>(api: &Api<S>, token: &str, models: Value) -> Value {
    let body = json!({ "models": models });
    api.call("PUT".parse().unwrap(), "/api/v1/settings", token, Some(body)).await.data()
}

async fn summarize_model(source: &ChatModels) -> Option<Arc<dyn ChatModel>> {
    source.chat_model(ChatPurpose::Summarize).await.unwrap()
}

async fn complete(model: &dyn ChatModel, text: &str) -> Result<String> {
    let messages = vec![ChatMessage::user(text)];
    let request = ChatRequest { messages, max_tokens: 50, temperature: 0.0, schema: None };
    Ok(model.complete(&request).await?.text)
}

#[actix_web::test]
async fn chat_model_of_each_purpose_follows_the_settings() {
    let (api, provider) = (api().await, TestProvider::start());
    let admin = api.admin().await;
    assert!(summarize_model(&api.chat_models).await.is_none());
    let local = json!({ "provider": "local_llm", "model": "small", "base_url": provider.base_url() });
    let shown =
        set(&api, &admin, json!({ "summarize": entry(&provider, "large", KEY), "classify": local })).await;
    assert_eq!(shown["models"]["summarize"]["api_key"], "********");
    let earlier = summarize_model(&api.chat_models).await.unwrap();
    assert_eq!(complete(&*earlier, "hello").await.unwrap(), "hello");
    let classify = api.chat_models.chat_model(ChatPurpose::Classify).await.unwrap().unwrap();
    assert_eq!(complete(&*classify, "which").await.unwrap(), "which");
    let seen = provider.seen();
    assert_eq!(
        (&seen[0].body["model"], seen[0].authorization.as_deref()),
        (&json!("large"), Some("Bearer sk-planted-4711"))
    );
    assert_eq!((&seen[1].body["model"], seen[1].authorization.as_deref()), (&json!("small"), None));
    set(&api, &admin, json!({ "summarize": { "model": "larger" } })).await;
    assert_eq!(summarize_model(&api.chat_models).await.unwrap().profile().name, "larger");
    assert_eq!(earlier.profile().name, "large", "a caller keeps the model that it holds");
    set(&api, &admin, json!({ "summarize": { "provider": "none" } })).await;
    assert!(summarize_model(&api.chat_models).await.is_none());
    set(&api, &admin, json!({ "summarize": { "provider": "local_llm", "base_url": "" } })).await;
    let error = api.chat_models.chat_model(ChatPurpose::Summarize).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Config && error.to_string().contains("base_url is empty"), "{error}");
    provider.assert_well_asked();
}

/// Two providers, each with its own model and key. A call with the other's model or key means a change was half applied.
#[actix_web::test]
async fn settings_change_under_load_is_never_applied_in_part() {
    let api = api().await;
    let admin = api.admin().await;
    let providers = ["one", "two"].map(|name| {
        let quirks = ProviderBehavior {
            key: Some(format!("key-{name}")),
            model: Some(name.to_owned()),
            ..ProviderBehavior::default()
        };
        TestProvider::with(quirks)
    });
    let entries = [entry(&providers[0], "one", "key-one"), entry(&providers[1], "two", "key-two")];
    set(&api, &admin, json!({ "summarize": entries[0] })).await;
    // The calls run on other threads, so that a change can come at any moment.
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let callers: Vec<_> = (0..4)
        .map(|_| {
            let source = api.chat_models.clone();
            threads.spawn(async move {
                for n in 0..50 {
                    let text = format!("hello {n}");
                    let model = summarize_model(&source).await.unwrap();
                    assert_eq!(complete(&*model, &text).await.unwrap(), text);
                }
            })
        })
        .collect();
    let request_count = || providers.iter().map(|provider| provider.seen().len()).sum::<usize>();
    let ended = || callers.iter().all(tokio::task::JoinHandle::is_finished);
    let mut changes = 0;
    while !ended() {
        changes += 1;
        set(&api, &admin, json!({ "summarize": entries[changes % 2] })).await;
        let before = request_count();
        while request_count() < before + 3 && !ended() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    for task in callers {
        task.await.unwrap();
    }
    threads.shutdown_background();
    let mut total = 0;
    for (provider, name) in providers.iter().zip(["one", "two"]) {
        let seen = provider.seen();
        assert!(!seen.is_empty(), "one provider got no call in {changes} changes");
        total += seen.len();
        for seen in seen {
            assert_eq!(
                (&seen.body["model"], seen.authorization),
                (&json!(name), Some(format!("Bearer key-{name}")))
            );
        }
        provider.assert_well_asked();
    }
    assert_eq!(total, 200, "each call succeeds without a retry");
}

#[actix_web::test]
async fn failed_provider_call_is_retried_and_each_attempt_is_counted() {
    let (api, provider) = (api().await, TestProvider::start());
    let admin = api.admin().await;
    set(&api, &admin, json!({ "summarize": entry(&provider, "large", KEY) })).await;
    let model = summarize_model(&api.chat_models).await.unwrap();
    provider.next([Fault::status(500)]);
    assert_eq!(complete(&*model, "hello there").await.unwrap(), "hello there");
    provider.next([Fault::status(401)]);
    assert_eq!(complete(&*model, "hello").await.unwrap_err().kind(), ErrorKind::Config);
    assert_eq!(provider.seen().len(), 3, "a wrong key is not retried");
    let text = String::from_utf8(api.get("/metrics").await.body).unwrap();
    for line in [
        r#"lkr_model_calls_total{operation="complete",outcome="answered",purpose="summarize"} 1"#,
        r#"lkr_model_calls_total{operation="complete",outcome="config",purpose="summarize"} 1"#,
        r#"lkr_model_calls_total{operation="complete",outcome="unavailable",purpose="summarize"} 1"#,
        r#"lkr_model_tokens_total{purpose="summarize",side="answer"} 2"#,
        r#"lkr_model_tokens_total{purpose="summarize",side="prompt"} 2"#,
        r#"lkr_model_call_duration_seconds_count{operation="complete",purpose="summarize"} 3"#,
    ] {
        assert!(text.contains(line), "{line} is missing in {text}");
    }
    assert!(!text.contains(KEY) && !text.contains("large"));
}

#[actix_web::test]
async fn settings_test_of_a_remote_model_reports_its_answer_or_error_without_the_key() {
    let api = api().await;
    let admin = api.admin().await;
    let quirks = ProviderBehavior {
        key: Some(KEY.to_owned()),
        model: Some("large".to_owned()),
        no_json_schema: true,
        dims: 48,
        ..ProviderBehavior::default()
    };
    let provider = TestProvider::with(quirks);
    // The provider repeats the key.
    provider.script(|body| match body["response_format"]["type"].as_str() {
        Some(_) => json!({ "planet": "Jupiter" }).to_string(),
        None => format!("Hello\n{KEY} !"),
    });
    let test = async |name: &str, entry: &Value| {
        let body = json!({ "models": { name: entry } });
        let tested = api.post("/api/v1/settings/test", &admin, body).await.data();
        assert!(!tested.to_string().contains(KEY) && tested["latency_ms"].is_u64(), "{tested}");
        (tested["ok"] == true, tested["detail"].as_str().unwrap().to_owned())
    };
    for name in ["summarize", "classify"] {
        let (ok, detail) = test(name, &entry(&provider, "large", KEY)).await;
        assert!(ok, "{detail}");
        for part in [
            "large answered \"Hello ******** !\"",
            "(3 answer tokens, 5 prompt tokens)",
            "accepts no schema, but a JSON mode",
            "3 parts",
        ] {
            assert!(detail.contains(part), "{part} is not in {detail}");
        }
    }
    provider.next([Fault::Answer {
        status: 200,
        headers: Vec::new(),
        body: r#"{"choices": [{"message": {"content": ""}, "finish_reason": "length"}]}"#.to_owned(),
    }]);
    let (ok, detail) = test("summarize", &entry(&provider, "large", KEY)).await;
    assert!(!ok && detail.contains("answered with no text"), "{detail}");
    let (ok, detail) = test("embed", &entry(&provider, "large", KEY)).await;
    assert_eq!((ok, detail.as_str()), (true, "large, 48 dimensions"));
    for name in ["summarize", "embed"] {
        for (entry, expected) in [
            (entry(&provider, "large", "sk-other"), "rejected the key"),
            (entry(&provider, "huge", KEY), "no model \"huge\""),
            (
                json!({ "provider": "local_llm", "model": "large", "base_url": provider.base_url() }),
                "requires a key",
            ),
            (
                json!({ "provider": "local_llm", "model": "x", "base_url": "http://127.0.0.1:1/v1" }),
                "connect",
            ),
            (json!({ "provider": "local_llm", "model": "x" }), "base_url is empty"),
        ] {
            let (ok, detail) = test(name, &entry).await;
            assert!(!ok && detail.contains(expected), "{expected} is not in {detail}");
        }
        for (fault, expected) in [
            (Fault::redirect("http://169.254.169.254/latest"), "redirects are not followed"),
            (Fault::InvalidJson, "not the expected JSON"),
            (Fault::status(429), "limits the rate"),
            (Fault::error(429, "You exceeded your current quota", "insufficient_quota"), "quota is used up"),
            (
                Fault::error(500, &format!("no memory for {KEY}"), ""),
                "provider message: no memory for ********",
            ),
        ] {
            provider.next([fault]);
            let (ok, detail) = test(name, &entry(&provider, "large", KEY)).await;
            assert!(!ok && detail.contains(expected), "{expected} is not in {detail}");
        }
    }
    provider.assert_well_asked();
}

/// Only the error message of a provider is repeated, and not what an internal server answers.
#[actix_web::test]
async fn lesson_26_settings_test_repeats_no_body_of_an_internal_server() {
    let (api, provider) = (api().await, TestProvider::start());
    let admin = api.admin().await;
    let bodies = [
        "hunter2",
        "\"hunter2\"",
        "<p>hunter2</p>",
        r#"{"password": "hunter2"}"#,
        r#"{"message": "hunter2"}"#,
        r#"{"error": {"trace": "hunter2"}}"#,
        r#"["hunter2"]"#,
    ];
    for (body, status) in
        bodies.into_iter().flat_map(|body| [200, 400, 404, 500].map(|status| (body, status)))
    {
        for name in ["summarize", "embed"] {
            let fault = Fault::Answer { status, headers: Vec::new(), body: body.to_owned() };
            provider.next([fault.clone(), fault.clone(), fault]);
            let body = json!({ "models": { name: entry(&provider, "large", KEY) } });
            let tested = api.post("/api/v1/settings/test", &admin, body).await.data();
            assert!(!tested.to_string().contains("hunter2"), "{status}: {tested}");
        }
    }
}

#[actix_web::test]
async fn lesson_26_model_url_of_the_metadata_service_is_refused() {
    let api = api().await;
    let admin = api.admin().await;
    for name in ["embed", "summarize", "classify", "rerank"] {
        for address in
            ["http://169.254.169.254/v1", "http://metadata.google.internal/v1", "http://[fd00:ec2::254]/v1"]
        {
            let entry = json!({ "provider": "local_llm", "base_url": address });
            let body = json!({ "models": { name: entry } });
            api.post("/api/v1/settings/test", &admin, body.clone()).await.expect_error(1001, 400);
            api.call("PUT".parse().unwrap(), "/api/v1/settings", &admin, Some(body))
                .await
                .expect_error(1001, 400);
        }
    }
}
