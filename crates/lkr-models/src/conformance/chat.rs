use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Waker},
};

use futures_util::StreamExt;
use serde_json::json;

use super::TEXTS;
use crate::{AnswerEnd, AnswerSchema, ChatAnswer, ChatMessage, ChatModel, ChatPart, ChatRequest, ErrorKind};

/// Makes a `#[tokio::test]` of every case of the conformance suite.
///
/// The argument is an expression whose future answers a pair: the model as `Arc<dyn ChatModel>`, and whatever must live
/// as long as the test. It is evaluated once for each case. The model repeats what the user said last, of which each
/// word with the white space behind it is a token.
///
/// The crate that calls it needs tokio with the features `macros` and `rt-multi-thread`.
///
/// ```text
/// async fn parrot() -> (Arc<dyn ChatModel>, ()) { … }
///
/// lkr_models::chat_suite!(parrot());
/// ```
#[macro_export]
macro_rules! chat_suite {
    ($make:expr) => {
        $crate::chat_suite!(@each $make;
            what_is_known_of_it_is_sensible
            texts_arrive_as_they_are
            an_answer_ends_after_so_many_tokens
            parts_make_up_the_whole
            all_that_was_said_may_be_told
            a_schema_is_taken
            what_it_cost_is_told_alike
            answering_may_run_at_once
            a_dropped_answer_does_no_harm
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

fn asking(text: &str) -> ChatRequest {
    let messages = vec![ChatMessage::system("Repeat it."), ChatMessage::user(text)];
    ChatRequest { messages, max_tokens: 500, temperature: 0.2, schema: None }
}

async fn whole(model: &Subject, request: &ChatRequest) -> ChatAnswer {
    model.complete(request).await.unwrap()
}

/// The answer that came in parts, whose texts make it up.
async fn in_parts(model: &Subject, request: &ChatRequest) -> ChatAnswer {
    let mut parts = model.stream(request).await.unwrap();
    let (mut text, mut end) = (String::new(), None);
    while let Some(part) = parts.next().await {
        assert!(end.is_none(), "something follows the end: {part:?}");
        match part.unwrap() {
            ChatPart::Text(more) => {
                assert!(!more.is_empty(), "an empty part");
                text.push_str(&more);
            }
            ChatPart::End(answer) => end = Some(answer),
        }
    }
    let end = end.unwrap();
    assert_eq!(end.text, text, "the parts are the text");
    end
}

/// It has a name and room for something.
pub async fn what_is_known_of_it_is_sensible(model: Subject) {
    let profile = model.profile();
    assert!(!profile.name.is_empty() && profile.context_tokens > 0, "{profile:?}");
    assert!(!format!("{model:?}").is_empty());
}

/// Whatever their script and their signs.
pub async fn texts_arrive_as_they_are(model: Subject) {
    for text in
        TEXTS.into_iter().chain(["\"{}\\n\" \u{1} \u{7f}", "data: [DONE]\n\n: x", "\u{2028}\u{feff}x"])
    {
        let answer = whole(&model, &asking(text)).await;
        assert_eq!((answer.text.as_str(), answer.end), (text, AnswerEnd::Whole));
        let answer = in_parts(&model, &asking(text)).await;
        assert_eq!((answer.text.as_str(), answer.end), (text, AnswerEnd::Whole));
    }
}

/// Of all tokens that it has to say, so many are said.
pub async fn an_answer_ends_after_so_many_tokens(model: Subject) {
    for (max_tokens, text, end) in
        [(1, "one ", AnswerEnd::Cut), (3, "one two three ", AnswerEnd::Cut), (10, LONG, AnswerEnd::Whole)]
    {
        let request = ChatRequest { max_tokens, ..asking(LONG) };
        for answer in [whole(&model, &request).await, in_parts(&model, &request).await] {
            assert_eq!((answer.text.as_str(), answer.end), (text, end));
        }
    }
}

/// In parts comes what comes as a whole.
pub async fn parts_make_up_the_whole(model: Subject) {
    for text in TEXTS.into_iter().chain([LONG]) {
        let (whole, parts) = (whole(&model, &asking(text)).await, in_parts(&model, &asking(text)).await);
        assert_eq!((whole.text, whole.end), (parts.text, parts.end));
    }
}

/// What the model said itself too, and with no system message.
pub async fn all_that_was_said_may_be_told(model: Subject) {
    let messages = vec![ChatMessage::user("say a"), ChatMessage::assistant("a"), ChatMessage::user("say b")];
    let request = ChatRequest { messages, temperature: 2.0, ..asking("") };
    assert_eq!(whole(&model, &request).await.text, "say b");
    assert_eq!(in_parts(&model, &request).await.text, "say b");
}

/// It changes nothing where what is said fits it.
pub async fn a_schema_is_taken(model: Subject) {
    let schema = json!({
        "type": "object",
        "properties": { "words": { "type": "array", "items": { "type": "string" } } },
        "required": ["words"],
        "additionalProperties": false,
    });
    let schema = Some(AnswerSchema { name: "some_words-1".to_owned(), schema });
    let said = json!({ "words": ["one", "two"] }).to_string();
    let request = ChatRequest { schema, ..asking(&said) };
    assert_eq!(whole(&model, &request).await.text, said);
    assert_eq!(in_parts(&model, &request).await.text, said);
}

/// For a whole answer as for one in parts.
pub async fn what_it_cost_is_told_alike(model: Subject) {
    let (whole, parts) = (whole(&model, &asking(LONG)).await, in_parts(&model, &asking(LONG)).await);
    assert_eq!(whole.usage, parts.usage);
    assert!(whole.usage.answer == 10 || whole.usage.total() == 0, "{:?}", whole.usage);
}

/// Calls at once answer what they answer alone.
pub async fn answering_may_run_at_once(model: Subject) {
    let mut calls = tokio::task::JoinSet::new();
    for text in TEXTS {
        let model = Arc::clone(&model);
        calls.spawn(async move {
            assert_eq!(whole(&model, &asking(text)).await.text, text);
            assert_eq!(in_parts(&model, &asking(text)).await.text, text);
        });
    }
    while let Some(done) = calls.join_next().await {
        done.unwrap();
    }
}

/// Futures and streams that are dropped, before their first await and at it, leave the model as good as before.
pub async fn a_dropped_answer_does_no_harm(model: Subject) {
    let request = asking(LONG);
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
    assert_eq!(whole(&model, &request).await.text, LONG);
    assert_eq!(in_parts(&model, &request).await.text, LONG);
}
