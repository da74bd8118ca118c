//! Whole answers, and in which manner providers want to be asked.

use std::sync::Arc;

use lkr_models::{AnswerSchema, ChatAnswer, ChatModel, ChatRequest, ErrorKind, FinishReason, TokenUsage};
use lkr_models_remote::{ChatOptions, HttpChat, ProviderCapabilities, RemoteOptions, ResponseFormat};
use lkr_test_provider::{Fault, ProviderBehavior, TestProvider};
use serde_json::{Value, json};

use crate::support::{KEY, chat, outgoing, remote, request};

async fn parrot() -> (Arc<dyn ChatModel>, TestProvider) {
    let provider = TestProvider::start();
    (Arc::new(chat(&provider)), provider)
}

mod conformance {
    lkr_models::chat_suite!(super::parrot());
}

/// One that knows as little as one can.
async fn simple_parrot() -> (Arc<dyn ChatModel>, TestProvider) {
    let quirks = ProviderBehavior {
        no_json_schema: true,
        no_json_object: true,
        no_stream_options: true,
        no_streams: true,
        no_max_tokens: true,
        no_temperature: true,
        ..ProviderBehavior::default()
    };
    let provider = TestProvider::with(quirks);
    (Arc::new(chat(&provider)), provider)
}

mod conformance_of_a_simple_one {
    lkr_models::chat_suite!(super::simple_parrot());
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
    provider.seen().into_iter().map(|seen| seen.body).collect()
}

#[tokio::test]
async fn what_is_sent_and_what_comes_back() {
    let provider = TestProvider::start();
    let model = chat(&provider);
    let answer = model.complete(&with_schema("{\"word\": \"x\"}")).await.unwrap();
    let usage = TokenUsage { prompt: 4, answer: 2 };
    assert_eq!(
        answer,
        ChatAnswer { text: "{\"word\": \"x\"}".to_owned(), finish_reason: FinishReason::Stop, usage }
    );
    assert_eq!(model.profile().name, "thinker");
    let seen = provider.seen().remove(0);
    assert_eq!(seen.line, "POST /v1/chat/completions");
    assert_eq!(seen.authorization, Some(format!("Bearer {KEY}")));
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
    assert_eq!(seen.body, expected);
    provider.assert_well_asked();
}

#[tokio::test]
async fn a_schema_that_is_not_known_is_asked_for_in_words_and_that_is_remembered() {
    for (no_json_object, held, formats) in [
        (false, ResponseFormat::Json, [json!("json_schema"), json!("json_object"), json!("json_object")]),
        (true, ResponseFormat::Nothing, [json!("json_schema"), json!("json_object"), Value::Null]),
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
        assert_eq!(model.manner().held, held);
        let bodies = bodies(&provider);
        let found: Vec<_> =
            bodies.iter().take(3).map(|body| body["response_format"]["type"].clone()).collect();
        assert_eq!(found, formats);
        assert_eq!(bodies.len(), if no_json_object { 4 } else { 3 }, "it was remembered");
        let last = bodies.last().unwrap();
        let words = last["messages"][0]["content"].as_str().unwrap();
        assert!(words.starts_with("Repeat it.\n\n") && words.contains("\"word\""), "{words}");
        provider.assert_well_asked();
    }
}

#[tokio::test]
async fn what_is_refused_is_left_out_and_nothing_else() {
    let quirks =
        ProviderBehavior { no_max_tokens: true, no_temperature: true, ..ProviderBehavior::default() };
    let provider = TestProvider::with(quirks);
    let model = chat(&provider);
    model.complete(&with_schema("{}")).await.unwrap();
    let expected = ProviderCapabilities {
        completion_tokens: true,
        temperature: false,
        ..ProviderCapabilities::default()
    };
    assert_eq!(model.manner(), expected);
    let body = bodies(&provider).pop().unwrap();
    assert_eq!(body["max_completion_tokens"], 100);
    assert!(body.get("max_tokens").is_none() && body.get("temperature").is_none());
    assert_eq!(body["response_format"]["type"], "json_schema");
    model.complete(&with_schema("{}")).await.unwrap();
    assert_eq!(provider.seen().len(), 4);
    provider.assert_well_asked();
}

#[tokio::test]
async fn a_request_that_is_at_fault_itself_is_told_so_and_teaches_nothing() {
    let provider = TestProvider::start();
    provider.always(Some(Fault::error(422, "the moon is in the wrong place", "")));
    let model = chat(&provider);
    let error = model.complete(&with_schema("{}")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    assert!(error.to_string().contains("the moon is in the wrong place"), "{error}");
    assert_eq!(provider.seen().len(), 3, "as JSON of a schema, as JSON, as text");
    assert_eq!(model.manner(), ProviderCapabilities::default());
    model.complete(&request("x")).await.unwrap_err();
    assert_eq!(provider.seen().len(), 4, "nothing could be left out");
}

#[tokio::test]
async fn answers_that_are_none() {
    let answer = |body: &str| Fault::Answer { status: 200, headers: Vec::new(), body: body.to_owned() };
    let choice = |message: &str, reason: &str| {
        answer(&format!("{{\"choices\": [{{\"message\": {message}, \"finish_reason\": {reason}}}]}}"))
    };
    let provider = TestProvider::start();
    let model = chat(&provider);
    for body in ["", "<html>", "[]", "{}", "null", "{\"choices\": []}", "{\"choices\": \"x\"}"] {
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
    for (message, reason, text, end) in [
        ("{\"content\": \"x\"}", "null", "x", FinishReason::Stop),
        ("{\"content\": \"x\"}", "\"content_filter\"", "x", FinishReason::ContentFilter),
        ("{\"content\": null, \"refusal\": \"no\"}", "\"stop\"", "", FinishReason::ContentFilter),
        ("{\"content\": \"x\"}", "\"length\"", "x", FinishReason::Length),
        ("{\"content\": \"x\"}", "\"eos\"", "x", FinishReason::Stop),
    ] {
        provider.next([choice(message, reason)]);
        let answer = model.complete(&request("x")).await.unwrap();
        assert_eq!((answer.text.as_str(), answer.finish_reason), (text, end), "{message} {reason}");
    }
    provider.assert_well_asked();
}

#[tokio::test]
async fn answers_may_be_far_larger_than_what_was_asked() {
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
async fn without_a_key_none_is_sent() {
    let provider = TestProvider::start();
    let keyless =
        RemoteOptions { api_key: None, base_url: format!("{}/ ", provider.base_url()), ..remote(&provider) };
    let model = HttpChat::new(outgoing(), keyless, &ChatOptions::default()).unwrap();
    model.complete(&request("x")).await.unwrap();
    assert_eq!(provider.seen()[0].authorization, None);
    provider.assert_well_asked();
}
