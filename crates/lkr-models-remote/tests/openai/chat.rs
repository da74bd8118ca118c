//! Complete answers, and the negotiation of provider capabilities.

use std::sync::Arc;

use lkr_models::{AnswerSchema, ChatAnswer, ChatModel, ChatRequest, ErrorKind, FinishReason, TokenUsage};
use lkr_models_remote::{ChatOptions, HttpChat, ProviderCapabilities, RemoteOptions, ResponseFormat};
use lkr_test_provider::{Fault, ProviderBehavior, TestProvider};
use serde_json::{Value, json};

use crate::support::{KEY, chat, outgoing, remote, request};

async fn echo_model() -> (Arc<dyn ChatModel>, TestProvider) {
    let provider = TestProvider::start();
    (Arc::new(chat(&provider)), provider)
}

mod conformance {
    lkr_models::chat_suite!(super::echo_model());
}

/// A provider that supports none of the optional features.
async fn minimal_echo_model() -> (Arc<dyn ChatModel>, TestProvider) {
    let behavior = ProviderBehavior {
        no_json_schema: true,
        no_json_object: true,
        no_stream_options: true,
        no_streams: true,
        no_max_tokens: true,
        no_temperature: true,
        ..ProviderBehavior::default()
    };
    let provider = TestProvider::with(behavior);
    (Arc::new(chat(&provider)), provider)
}

mod conformance_without_optional_features {
    lkr_models::chat_suite!(super::minimal_echo_model());
}

fn with_schema(text: &str) -> ChatRequest {
    let schema = json!({
        "type": "object",
        "properties": { "word": { "type": "string" } },
        "required": ["word"],
        "additionalProperties": false,
    });
    ChatRequest { schema: Some(AnswerSchema { name: "a_word".to_owned(), schema }), ..request(text) }
}

fn bodies(provider: &TestProvider) -> Vec<Value> {
    provider.seen().into_iter().map(|request| request.body).collect()
}

#[tokio::test]
async fn chat_request_and_answer_have_the_openai_format() {
    let provider = TestProvider::start();
    let model = chat(&provider);
    let answer = model.complete(&with_schema("{\"word\": \"x\"}")).await.unwrap();
    let usage = TokenUsage { prompt: 4, answer: 2 };
    assert_eq!(
        answer,
        ChatAnswer { text: "{\"word\": \"x\"}".to_owned(), finish_reason: FinishReason::Stop, usage }
    );
    assert_eq!(model.profile().name, "thinker");
    let sent = provider.seen().remove(0);
    assert_eq!(sent.line, "POST /v1/chat/completions");
    assert_eq!(sent.authorization, Some(format!("Bearer {KEY}")));
    let expected = json!({
        "model": "thinker",
        "messages": [
            { "role": "system", "content": "Repeat it." },
            { "role": "user", "content": "{\"word\": \"x\"}" },
        ],
        "max_tokens": 100,
        "temperature": 0.2,
        "response_format": {
            "type": "json_schema",
            "json_schema": { "name": "a_word", "strict": true, "schema": with_schema("").schema.unwrap().schema },
        },
    });
    assert_eq!(sent.body, expected);
    provider.assert_well_asked();
}

#[tokio::test]
async fn unsupported_schema_moves_to_the_prompt_and_stays_there() {
    for (no_json_object, format, sent_formats) in [
        (false, ResponseFormat::JsonObject, ["json_schema", "json_object", "json_object"].map(Value::from)),
        (true, ResponseFormat::Text, [json!("json_schema"), json!("json_object"), Value::Null]),
    ] {
        let provider = TestProvider::with(ProviderBehavior {
            no_json_schema: true,
            no_json_object,
            ..ProviderBehavior::default()
        });
        let model = chat(&provider);
        for _ in 0..2 {
            assert_eq!(model.complete(&with_schema("{}")).await.unwrap().text, "{}");
        }
        assert_eq!(model.capabilities().response_format, format);
        let bodies = bodies(&provider);
        let found: Vec<_> =
            bodies.iter().take(3).map(|body| body["response_format"]["type"].clone()).collect();
        assert_eq!(found, sent_formats);
        assert_eq!(bodies.len(), if no_json_object { 4 } else { 3 }, "the format was not remembered");
        let last = bodies.last().unwrap();
        let prompt = last["messages"][0]["content"].as_str().unwrap();
        assert!(prompt.starts_with("Repeat it.\n\n") && prompt.contains("\"word\""), "{prompt}");
        provider.assert_well_asked();
    }
}

#[tokio::test]
async fn only_refused_parameters_are_omitted() {
    let behavior =
        ProviderBehavior { no_max_tokens: true, no_temperature: true, ..ProviderBehavior::default() };
    let provider = TestProvider::with(behavior);
    let model = chat(&provider);
    model.complete(&with_schema("{}")).await.unwrap();
    let expected = ProviderCapabilities {
        max_completion_tokens: true,
        temperature: false,
        ..ProviderCapabilities::default()
    };
    assert_eq!(model.capabilities(), expected);
    let body = bodies(&provider).pop().unwrap();
    assert_eq!(body["max_completion_tokens"], 100);
    assert!(body.get("max_tokens").is_none() && body.get("temperature").is_none());
    assert_eq!(body["response_format"]["type"], "json_schema");
    model.complete(&with_schema("{}")).await.unwrap();
    assert_eq!(provider.seen().len(), 4);
    provider.assert_well_asked();
}

#[tokio::test]
async fn invalid_request_fails_and_leaves_capabilities_unchanged() {
    let provider = TestProvider::start();
    provider.always(Some(Fault::error(422, "the moon is in the wrong place", "")));
    let model = chat(&provider);
    let error = model.complete(&with_schema("{}")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    assert!(error.to_string().contains("the moon is in the wrong place"), "{error}");
    assert_eq!(provider.seen().len(), 3, "one request for each of schema, JSON object and text");
    assert_eq!(model.capabilities(), ProviderCapabilities::default());
    model.complete(&request("x")).await.unwrap_err();
    assert_eq!(provider.seen().len(), 4, "a request without optional features was repeated");
}

#[tokio::test]
async fn malformed_answers_are_errors_and_finish_reasons_are_mapped() {
    let answer = |body: &str| Fault::Answer { status: 200, headers: Vec::new(), body: body.to_owned() };
    let choice = |message: &str, reason: &str| {
        answer(&format!("{{\"choices\": [{{\"message\": {message}, \"finish_reason\": {reason}}}]}}"))
    };
    let provider = TestProvider::start();
    let model = chat(&provider);
    let bodies = [
        "",
        "<html>",
        "[]",
        "{}",
        "null",
        "{\"choices\": []}",
        "{\"choices\": null}",
        "{\"choices\": \"x\"}",
    ];
    for body in bodies {
        provider.next([answer(body)]);
        let error = model.complete(&request("x")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal, "{body}: {error}");
    }
    provider.next([choice("{\"content\": [1]}", "\"stop\"")]);
    assert_eq!(model.complete(&request("x")).await.unwrap_err().kind(), ErrorKind::Internal);
    for (fault, kind) in [
        (Fault::InvalidJson, ErrorKind::Internal),
        (Fault::CutAfter(40), ErrorKind::Unavailable),
        (Fault::HangUp, ErrorKind::Unavailable),
        (Fault::ErrorWithin("upstream is gone".to_owned()), ErrorKind::Unavailable),
    ] {
        provider.next([fault.clone()]);
        assert_eq!(model.complete(&request("x")).await.unwrap_err().kind(), kind, "{fault:?}");
    }
    for (message, reason, text, finish_reason) in [
        ("{\"content\": \"x\"}", "null", "x", FinishReason::Stop),
        ("{\"content\": \"x\"}", "\"content_filter\"", "x", FinishReason::ContentFilter),
        ("{\"content\": null, \"refusal\": \"no\"}", "\"stop\"", "", FinishReason::ContentFilter),
        ("{\"content\": \"x\"}", "\"length\"", "x", FinishReason::Length),
        ("{\"content\": \"x\"}", "\"eos\"", "x", FinishReason::Stop),
    ] {
        provider.next([choice(message, reason)]);
        let answer = model.complete(&request("x")).await.unwrap();
        assert_eq!((answer.text.as_str(), answer.finish_reason), (text, finish_reason), "{message} {reason}");
    }
    provider.assert_well_asked();
}

#[tokio::test]
async fn answers_of_compatible_servers_are_read() {
    let answer = |body: Value| Fault::Answer { status: 200, headers: Vec::new(), body: body.to_string() };
    let provider = TestProvider::start();
    let model = chat(&provider);
    let thinking = json!({ "type": "thinking", "thinking": [{ "type": "text", "text": "Or y?" }] });
    let parts = [thinking, json!({ "type": "text", "text": "x " }), json!({ "type": "text", "text": "y" })];
    for (content, usage, text, tokens) in [
        (json!(parts), json!({ "prompt_tokens": 4, "completion_tokens": 2 }), "x y", (4, 2)),
        (json!("x"), json!({ "prompt_tokens": null, "completion_tokens": -1 }), "x", (0, 0)),
        (json!("x"), Value::Null, "x", (0, 0)),
    ] {
        let choice = json!({ "message": { "content": content }, "finish_reason": "stop" });
        provider.next([answer(json!({ "choices": [choice], "usage": usage }))]);
        let answer = model.complete(&request("x")).await.unwrap();
        assert_eq!((answer.text.as_str(), (answer.usage.prompt, answer.usage.answer)), (text, tokens));
    }
    provider.next([answer(json!({ "choices": null, "error": { "message": "no memory", "code": 502 } }))]);
    let error = model.complete(&request("x")).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Unavailable && error.to_string().contains("no memory"), "{error}");
}

#[tokio::test]
async fn response_limit_grows_with_max_tokens() {
    let provider = TestProvider::start();
    provider.script(|_| "\u{1}".repeat(400_000));
    let model = chat(&provider);
    let request = ChatRequest { max_tokens: 100_000, ..request("x") };
    assert_eq!(model.complete(&request).await.unwrap().text.len(), 400_000);
    assert_eq!(
        model.complete(&ChatRequest { max_tokens: 10, ..request }).await.unwrap_err().kind(),
        ErrorKind::Internal
    );
}

#[tokio::test]
async fn request_without_key_has_no_authorization_header() {
    let provider = TestProvider::start();
    let keyless =
        RemoteOptions { api_key: None, base_url: format!("{}/ ", provider.base_url()), ..remote(&provider) };
    let model = HttpChat::new(outgoing(), keyless, &ChatOptions::default()).unwrap();
    model.complete(&request("x")).await.unwrap();
    assert_eq!(provider.seen()[0].authorization, None);
    provider.assert_well_asked();
}
