//! Requests for JSON answers, with one correction round.

use serde_json::Value;

use crate::{
    ChatAnswer, ChatMessage, ChatModel, ChatRequest, Error, ErrorKind, FinishReason, Result, TokenUsage,
    truncated_json::close_truncated,
};

/// The result of [`complete_structured`] and the cost of getting it, also if it failed.
#[derive(Debug)]
pub struct StructuredAnswer<T> {
    /// The parsed answer; `Internal` if the second answer was unusable too.
    pub answer: Result<T>,
    /// The number of requests.
    pub calls: u64,
    /// The tokens of all requests.
    pub usage: TokenUsage,
}

/// Sends `request` to `model` and parses the JSON object of its answer with `parse`. Of a truncated answer, the longest
/// valid beginning is parsed. If the answer has no JSON object or `parse` rejects it, the model is asked once more and
/// told the reason.
pub async fn complete_structured<T>(
    model: &dyn ChatModel,
    mut request: ChatRequest,
    parse: impl Fn(&Value) -> Result<T, String>,
) -> StructuredAnswer<T> {
    let (mut calls, mut usage) = (0, TokenUsage::default());
    loop {
        calls += 1;
        let answer = match model.complete(&request).await {
            Ok(answer) => answer,
            Err(error) => return StructuredAnswer { answer: Err(error), calls, usage },
        };
        usage += answer.usage;
        let is_truncated = answer.finish_reason == FinishReason::Length;
        let json =
            json_object_in(&answer.text).or_else(|| close_truncated(&answer.text).filter(|_| is_truncated));
        let no_json = || if is_truncated { "it was cut off" } else { "it is not a JSON object" }.to_owned();
        let problem = match json.ok_or_else(no_json).and_then(|json| parse(&json)) {
            Ok(parsed) => return StructuredAnswer { answer: Ok(parsed), calls, usage },
            Err(problem) => problem,
        };
        if calls > 1 {
            let reason = format!("the model's second answer is unusable too: {problem}");
            let error = Error::new(ErrorKind::Internal, "parse answer", reason);
            return StructuredAnswer { answer: Err(error), calls, usage };
        }
        request_correction(&mut request, answer, &problem);
    }
}

/// Extends `request` for the second attempt. A truncated answer is not quoted, because a model that repeats itself would
/// continue it.
fn request_correction(request: &mut ChatRequest, answer: ChatAnswer, problem: &str) {
    match request.messages.last_mut() {
        Some(message) if answer.finish_reason == FinishReason::Length => {
            message.text.push_str("\n\nBe brief: an answer that was longer than it may be was cut off.");
        }
        _ => {
            request.messages.push(ChatMessage::assistant(answer.text));
            request.messages.push(ChatMessage::user(format!(
                "That cannot be used: {problem}. Answer again, with the JSON object alone, as it was asked for."
            )));
        }
    }
}

/// The JSON object in an answer. Models may put code fences or other text around it.
fn json_object_in(text: &str) -> Option<Value> {
    let entire = serde_json::from_str(text.trim()).ok();
    let enclosed = || {
        let (start, end) = (text.find('{')?, text.rfind('}')?);
        serde_json::from_str(text.get(start..=end)?).ok()
    };
    entire.filter(Value::is_object).or_else(enclosed)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::ScriptedChat;

    fn request() -> ChatRequest {
        ChatRequest {
            messages: vec![ChatMessage::user("number?")],
            max_tokens: 100,
            temperature: 0.0,
            schema: None,
        }
    }

    fn number(json: &Value) -> Result<u64, String> {
        json["number"].as_u64().ok_or_else(|| "number is missing".to_owned())
    }

    fn model_answering(answers: &'static [&'static str]) -> ScriptedChat {
        let at = AtomicUsize::new(0);
        ScriptedChat::new(move |_| Ok(answers[at.fetch_add(1, Ordering::Relaxed)].to_owned()))
    }

    #[tokio::test]
    async fn json_object_inside_other_text_is_parsed() {
        for text in
            ["{\"number\": 7}", "Sure!\n```json\n{\"number\": 7}\n```\nAnything else?", " {\"number\":7} "]
        {
            let model = ScriptedChat::new(move |_| Ok(text.to_owned()));
            let response = complete_structured(&model, request(), number).await;
            assert_eq!((response.answer.unwrap(), response.calls), (7, 1), "{text}");
            assert!(response.usage.total() > 0);
        }
    }

    #[tokio::test]
    async fn unusable_answer_is_corrected_once_then_fails() {
        let model = model_answering(&["{\"numb\": 7}", "{\"number\": 7}"]);
        let response = complete_structured(&model, request(), number).await;
        assert_eq!((response.answer.unwrap(), response.calls), (7, 2));
        let messages = &model.requests()[1].messages;
        assert_eq!(messages.len(), 3);
        assert!(messages[1].text == "{\"numb\": 7}" && messages[2].text.contains("number is missing"));

        let response =
            complete_structured(&model_answering(&["seven", "[7]", "{\"number\": 7}"]), request(), number)
                .await;
        let error = response.answer.unwrap_err();
        assert_eq!((error.kind(), response.calls), (ErrorKind::Internal, 2));
        assert!(error.to_string().contains("it is not a JSON object"), "{error}");
    }

    #[tokio::test]
    async fn model_failure_is_returned_without_a_second_call() {
        let failure = || Error::new(ErrorKind::Unavailable, "complete", "scripted failure");
        let model = ScriptedChat::new(move |_| Err(failure()));
        let response = complete_structured(&model, request(), number).await;
        assert_eq!((response.answer.unwrap_err().kind(), response.calls), (ErrorKind::Unavailable, 1));
    }
}
