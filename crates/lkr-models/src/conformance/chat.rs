use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Waker},
};

use futures_util::StreamExt;
use serde_json::json;

use super::TEXTS;
use crate::{
    AnswerSchema, ChatAnswer, ChatMessage, ChatModel, ChatPart, ChatRequest, ErrorKind, FinishReason,
};

/// Generates a `#[tokio::test]` for every case of the conformance suite of chat models.
///
/// The argument is an expression whose future returns a pair: the model as `Arc<dyn ChatModel>`, and a guard that lives
/// as long as the test. It is evaluated once for each case. The model must repeat the last message of the user. A token
/// is a word with the white space that follows it.
///
/// The calling crate needs tokio with the features `macros` and `rt-multi-thread`.
///
/// ```text
/// async fn echo_model() -> (Arc<dyn ChatModel>, ()) { … }
///
/// lkr_models::chat_suite!(echo_model());
/// ```
#[macro_export]
macro_rules! chat_suite {
    ($make:expr) => {
        $crate::chat_suite!(@each $make;
            chat_profile_is_plausible
            any_text_is_transmitted_unchanged
            answer_ends_at_max_tokens
            streamed_and_complete_answers_are_equal
            conversations_without_system_message_are_accepted
            schema_leaves_a_valid_answer_unchanged
            streamed_and_complete_answers_report_equal_usage
            concurrent_chat_calls_are_independent
            model_answers_after_dropped_calls
        );
    };
    (@each $make:expr; $($case:ident)*) => { $(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $case() {
            let (model, _guard) = $make.await;
            $crate::conformance::$case(model).await;
        }
    )* };
}

type Subject = Arc<dyn ChatModel>;

const LONG: &str = "one two three four five six seven eight nine ten";

fn request(text: &str) -> ChatRequest {
    let messages = vec![ChatMessage::system("Repeat it."), ChatMessage::user(text)];
    ChatRequest { messages, max_tokens: 500, temperature: 0.2, schema: None }
}

async fn complete(model: &Subject, request: &ChatRequest) -> ChatAnswer {
    model.complete(request).await.unwrap()
}

/// The answer at the end of a stream. Asserts that its text consists of the streamed parts.
async fn collect_stream(model: &Subject, request: &ChatRequest) -> ChatAnswer {
    let mut parts = model.stream(request).await.unwrap();
    let (mut text, mut end) = (String::new(), None);
    while let Some(part) = parts.next().await {
        assert!(end.is_none(), "a part follows the end: {part:?}");
        match part.unwrap() {
            ChatPart::Text(more) => {
                assert!(!more.is_empty(), "a part is empty");
                text.push_str(&more);
            }
            ChatPart::End(answer) => end = Some(answer),
        }
    }
    let end = end.unwrap();
    assert_eq!(end.text, text, "the parts differ from the answer");
    end
}

/// The model has a name and a context window.
pub async fn chat_profile_is_plausible(model: Subject) {
    let profile = model.profile();
    assert!(!profile.name.is_empty() && profile.context_tokens > 0, "{profile:?}");
    assert!(!format!("{model:?}").is_empty());
}

/// Scripts, control characters and characters that are special in JSON or SSE are transmitted unchanged.
pub async fn any_text_is_transmitted_unchanged(model: Subject) {
    for text in
        TEXTS.into_iter().chain(["\"{}\\n\" \u{1} \u{7f}", "data: [DONE]\n\n: x", "\u{2028}\u{feff}x"])
    {
        let answer = complete(&model, &request(text)).await;
        assert_eq!((answer.text.as_str(), answer.finish_reason), (text, FinishReason::Stop));
        let answer = collect_stream(&model, &request(text)).await;
        assert_eq!((answer.text.as_str(), answer.finish_reason), (text, FinishReason::Stop));
    }
}

/// An answer that needs more than `max_tokens` tokens has exactly that many.
pub async fn answer_ends_at_max_tokens(model: Subject) {
    for (max_tokens, text, end) in [
        (1, "one ", FinishReason::Length),
        (3, "one two three ", FinishReason::Length),
        (10, LONG, FinishReason::Stop),
    ] {
        let request = ChatRequest { max_tokens, ..request(LONG) };
        for answer in [complete(&model, &request).await, collect_stream(&model, &request).await] {
            assert_eq!((answer.text.as_str(), answer.finish_reason), (text, end));
        }
    }
}

/// A streamed answer equals the answer in one piece.
pub async fn streamed_and_complete_answers_are_equal(model: Subject) {
    for text in TEXTS.into_iter().chain([LONG]) {
        let complete = complete(&model, &request(text)).await;
        let streamed = collect_stream(&model, &request(text)).await;
        assert_eq!((complete.text, complete.finish_reason), (streamed.text, streamed.finish_reason));
    }
}

/// A request may contain earlier answers of the model and have no system message.
pub async fn conversations_without_system_message_are_accepted(model: Subject) {
    let messages = vec![ChatMessage::user("say a"), ChatMessage::assistant("a"), ChatMessage::user("say b")];
    let request = ChatRequest { messages, temperature: 2.0, ..request("") };
    assert_eq!(complete(&model, &request).await.text, "say b");
    assert_eq!(collect_stream(&model, &request).await.text, "say b");
}

/// A schema does not change an answer that is valid under it.
pub async fn schema_leaves_a_valid_answer_unchanged(model: Subject) {
    let schema = json!({
        "type": "object",
        "properties": { "words": { "type": "array", "items": { "type": "string" } } },
        "required": ["words"],
        "additionalProperties": false,
    });
    let schema = Some(AnswerSchema { name: "some_words-1".to_owned(), schema });
    let answer = json!({ "words": ["one", "two"] }).to_string();
    let request = ChatRequest { schema, ..request(&answer) };
    assert_eq!(complete(&model, &request).await.text, answer);
    assert_eq!(collect_stream(&model, &request).await.text, answer);
}

/// The reported token usage does not depend on streaming.
pub async fn streamed_and_complete_answers_report_equal_usage(model: Subject) {
    let complete = complete(&model, &request(LONG)).await;
    let streamed = collect_stream(&model, &request(LONG)).await;
    assert_eq!(complete.usage, streamed.usage);
    assert!(complete.usage.answer == 10 || complete.usage.total() == 0, "{:?}", complete.usage);
}

/// Concurrent calls return the same answers as single calls.
pub async fn concurrent_chat_calls_are_independent(model: Subject) {
    let mut calls = tokio::task::JoinSet::new();
    for text in TEXTS {
        let model = Arc::clone(&model);
        calls.spawn(async move {
            assert_eq!(complete(&model, &request(text)).await.text, text);
            assert_eq!(collect_stream(&model, &request(text)).await.text, text);
        });
    }
    while let Some(done) = calls.join_next().await {
        done.unwrap();
    }
}

/// The model still answers after futures and streams were dropped before their first await point and at it.
pub async fn model_answers_after_dropped_calls(model: Subject) {
    let request = request(LONG);
    for n in 0..10 {
        drop(model.complete(&request));
        let _ready = pin!(model.complete(&request)).poll(&mut Context::from_waker(Waker::noop()));
        let pause = std::time::Duration::from_micros(n * 200);
        let _done = tokio::time::timeout(pause, model.complete(&request)).await;
        match tokio::time::timeout(pause, model.stream(&request)).await {
            Ok(Ok(mut parts)) => drop(parts.next().await),
            Ok(Err(error)) => assert_ne!(error.kind(), ErrorKind::Config, "{error}"),
            Err(_) => {}
        }
    }
    assert_eq!(complete(&model, &request).await.text, LONG);
    assert_eq!(collect_stream(&model, &request).await.text, LONG);
}
