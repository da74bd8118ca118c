//! Streamed answers and broken streams.

use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use lkr_models::{ChatAnswer, ChatModel, ChatPart, Error, ErrorKind, FinishReason, TokenUsage};
use lkr_models_remote::{ChatOptions, HttpChat};
use lkr_test_provider::{Fault, ProviderBehavior, TestProvider};

use crate::support::{chat, outgoing, remote, request};

const TEXT: &str = "one two three";

/// The parts of a stream, and the error that ended it.
async fn collect_parts(model: &HttpChat) -> (Vec<ChatPart>, Option<Error>) {
    let mut parts = Vec::new();
    let mut stream = match model.stream(&request(TEXT)).await {
        Ok(stream) => stream,
        Err(error) => return (parts, Some(error)),
    };
    while let Some(part) = stream.next().await {
        match part {
            Ok(part) => parts.push(part),
            Err(error) => {
                assert!(stream.next().await.is_none(), "a part follows an error");
                return (parts, Some(error));
            }
        }
    }
    (parts, None)
}

fn texts<const N: usize>(texts: [&str; N]) -> Vec<ChatPart> {
    texts.map(|text| ChatPart::Text(text.to_owned())).to_vec()
}

#[tokio::test]
async fn stream_yields_each_part_and_the_usage() {
    let provider = TestProvider::start();
    let (mut found, error) = collect_parts(&chat(&provider)).await;
    assert!(error.is_none(), "{error:?}");
    let usage = TokenUsage { prompt: 5, answer: 3 };
    let end = ChatAnswer { text: TEXT.to_owned(), finish_reason: FinishReason::Stop, usage };
    assert_eq!(found.pop(), Some(ChatPart::End(end)));
    assert_eq!(found, texts(["one ", "two ", "three"]));
    let body = &provider.seen()[0].body;
    assert_eq!((&body["stream"], &body["stream_options"]["include_usage"]), (&true.into(), &true.into()));
    provider.assert_well_asked();
}

#[tokio::test]
async fn chunks_of_compatible_servers_are_read() {
    let chunks = [
        r#"{"choices": null}"#,
        r#"{"choices": [{"delta": {"content": [{"type": "thinking", "thinking": []}]}}]}"#,
        r#"{"choices": [{"delta": {"content": [{"type": "text", "text": "one "}]}}]}"#,
        "null",
        r#"{"choices": [{"delta": {"content": "two"}, "finish_reason": "stop"}]}"#,
        r#"{"choices": null, "usage": {"prompt_tokens": 5, "completion_tokens": null}}"#,
        "[DONE]",
    ];
    let body = chunks.map(|chunk| format!("data: {chunk}\n\n")).concat();
    let provider = TestProvider::start();
    let headers = vec!["Content-Type: text/event-stream".to_owned()];
    provider.next([Fault::Answer { status: 200, headers, body }]);
    let (mut found, error) = collect_parts(&chat(&provider)).await;
    assert!(error.is_none(), "{error:?}");
    let usage = TokenUsage { prompt: 5, answer: 0 };
    let end = ChatAnswer { text: "one two".to_owned(), finish_reason: FinishReason::Stop, usage };
    assert_eq!(found.pop(), Some(ChatPart::End(end)));
    assert_eq!(found, texts(["one ", "two"]));
}

#[tokio::test]
async fn refused_stream_usage_is_not_requested_again() {
    let provider =
        TestProvider::with(ProviderBehavior { no_stream_options: true, ..ProviderBehavior::default() });
    let model = chat(&provider);
    for _ in 0..2 {
        let all: Vec<_> = model.stream(&request(TEXT)).await.unwrap().try_collect().await.unwrap();
        let Some(ChatPart::End(answer)) = all.last() else { panic!("{all:?}") };
        assert_eq!((answer.text.as_str(), answer.usage), (TEXT, TokenUsage::default()));
    }
    assert!(!model.capabilities().stream_usage);
    assert_eq!(provider.seen().len(), 3, "the refusal was not remembered");
    provider.assert_well_asked();
}

#[tokio::test]
async fn broken_streams_are_errors_unless_the_answer_is_complete() {
    let provider = TestProvider::start();
    let options = ChatOptions { idle: Duration::from_secs(1), ..ChatOptions::default() };
    let model = HttpChat::new(outgoing(), remote(&provider), &options).unwrap();
    // The first event has the role, the next three have text, and the fifth has the finish reason.
    for (fault, kind) in [
        (Fault::CutAfter(3), ErrorKind::Unavailable),
        (Fault::HangAfter(3), ErrorKind::Unavailable),
        (Fault::EndAfter(3), ErrorKind::Internal),
    ] {
        provider.next([fault.clone()]);
        let (found, error) = collect_parts(&model).await;
        assert_eq!(found, texts(["one ", "two "]), "{fault:?}");
        assert_eq!(error.map(|error| error.kind()), Some(kind), "{fault:?}");
    }
    provider.next([Fault::InvalidJson, Fault::ErrorWithin("out of memory".to_owned()), Fault::CutAfter(0)]);
    let (found, error) = collect_parts(&model).await;
    assert_eq!((found, error.unwrap().kind()), (Vec::new(), ErrorKind::Internal));
    let (found, error) = collect_parts(&model).await;
    let error = error.unwrap();
    assert_eq!((found, error.kind()), (texts(["one "]), ErrorKind::Unavailable));
    assert!(error.to_string().contains("out of memory"), "{error}");
    assert_eq!(collect_parts(&model).await.1.unwrap().kind(), ErrorKind::Unavailable);
    // After the finish reason only the token usage is missing.
    for fault in [Fault::CutAfter(5), Fault::HangAfter(5), Fault::EndAfter(5)] {
        provider.next([fault]);
        let (found, error) = collect_parts(&model).await;
        assert_eq!(found.len(), 4, "{error:?}");
    }
    assert_eq!(collect_parts(&model).await.0.len(), 4, "a complete stream after the faults");
    provider.assert_well_asked();
}

#[tokio::test]
async fn reasoning_is_removed_from_streamed_and_complete_answers() {
    let provider = TestProvider::start();
    provider.script(|_| "<think>\nOne or two? </think>\n\none two".to_owned());
    let model = chat(&provider);
    let (mut found, error) = collect_parts(&model).await;
    assert!(error.is_none(), "{error:?}");
    let Some(ChatPart::End(answer)) = found.pop() else { panic!("{found:?}") };
    assert_eq!((answer.text.as_str(), found), ("one two", texts(["one ", "two"])));
    assert_eq!(model.complete(&request(TEXT)).await.unwrap().text, "one two");
}
