//! Asking a language model for JSON.

use serde_json::Value;

use crate::{
    AnswerEnd, ChatAnswer, ChatMessage, ChatModel, ChatRequest, Error, ErrorKind, Result, TokenUsage,
    cut_off::closed,
};

/// What came of asking for JSON, and what it cost, be it well or badly.
#[derive(Debug)]
pub struct StructuredAnswer<T> {
    /// What was read of the answer. `Internal` where it could not be, also the second time.
    pub answer: Result<T>,
    /// How many requests were made.
    pub calls: u64,
    /// What they cost.
    pub usage: TokenUsage,
}

/// Asks `model` for what `request` wants, and has `read` make something of the JSON that it answers; of an answer that
/// was cut off, of what was whole by then. An answer that is none, or of which `read` says what is wrong, is sent back
/// once, with that.
pub async fn ask_structured<T>(
    model: &dyn ChatModel,
    mut request: ChatRequest,
    read: impl Fn(&Value) -> Result<T, String>,
) -> StructuredAnswer<T> {
    let (mut calls, mut usage) = (0, TokenUsage::default());
    loop {
        calls += 1;
        let answer = match model.complete(&request).await {
            Ok(answer) => answer,
            Err(error) => return StructuredAnswer { answer: Err(error), calls, usage },
        };
        usage += answer.usage;
        let is_cut = answer.end == AnswerEnd::Cut;
        let json = json_in(&answer.text).or_else(|| closed(&answer.text).filter(|_| is_cut));
        let none = || if is_cut { "it was cut off" } else { "it is no JSON object" }.to_owned();
        let wrong = match json.ok_or_else(none).and_then(|json| read(&json)) {
            Ok(read) => return StructuredAnswer { answer: Ok(read), calls, usage },
            Err(wrong) => wrong,
        };
        if calls > 1 {
            let error = Error::new(
                ErrorKind::Internal,
                "read answer",
                format!("the model's answer is wrong: {wrong}"),
            );
            return StructuredAnswer { answer: Err(error), calls, usage };
        }
        send_back(&mut request, answer, &wrong);
    }
}

/// Asks again. What was too long is not shown: a model that repeats itself would go on with it.
fn send_back(request: &mut ChatRequest, answer: ChatAnswer, wrong: &str) {
    match request.messages.last_mut() {
        Some(asked) if answer.end == AnswerEnd::Cut => {
            asked.text.push_str("\n\nBe brief: an answer that was longer than it may be was cut off.");
        }
        _ => {
            request.messages.push(ChatMessage::assistant(answer.text));
            request.messages.push(ChatMessage::user(format!(
                "That cannot be used: {wrong}. Answer again, with the JSON object alone, as it was asked for."
            )));
        }
    }
}

/// The JSON object of an answer, whatever is said around it: models put it between fences, or greet first.
fn json_in(text: &str) -> Option<Value> {
    let whole = serde_json::from_str(text.trim()).ok();
    let inner = || {
        let (from, to) = (text.find('{')?, text.rfind('}')?);
        serde_json::from_str(text.get(from..=to)?).ok()
    };
    whole.filter(Value::is_object).or_else(inner)
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

    fn answering(answers: &'static [&'static str]) -> ScriptedChat {
        let at = AtomicUsize::new(0);
        ScriptedChat::new(move |_| Ok(answers[at.fetch_add(1, Ordering::Relaxed)].to_owned()))
    }

    #[tokio::test]
    async fn json_is_found_whatever_stands_around_it() {
        for text in
            ["{\"number\": 7}", "Sure!\n```json\n{\"number\": 7}\n```\nAnything else?", " {\"number\":7} "]
        {
            let model = ScriptedChat::new(move |_| Ok(text.to_owned()));
            let asked = ask_structured(&model, request(), number).await;
            assert_eq!((asked.answer.unwrap(), asked.calls), (7, 1), "{text}");
            assert!(asked.usage.total() > 0);
        }
    }

    #[tokio::test]
    async fn what_is_wrong_is_sent_back_once() {
        let model = answering(&["{\"numb\": 7}", "{\"number\": 7}"]);
        let asked = ask_structured(&model, request(), number).await;
        assert_eq!((asked.answer.unwrap(), asked.calls), (7, 2));
        let again = &model.asked()[1].messages;
        assert_eq!(again.len(), 3);
        assert!(again[1].text == "{\"numb\": 7}" && again[2].text.contains("number is missing"));

        let asked = ask_structured(&answering(&["seven", "[7]", "{\"number\": 7}"]), request(), number).await;
        let error = asked.answer.unwrap_err();
        assert_eq!((error.kind(), asked.calls), (ErrorKind::Internal, 2));
        assert!(error.to_string().contains("it is no JSON object"), "{error}");
    }

    #[tokio::test]
    async fn a_model_that_fails_is_not_asked_again() {
        let model = ScriptedChat::new(|_| Err(Error::new(ErrorKind::Unavailable, "ask", "it is away")));
        let asked = ask_structured(&model, request(), number).await;
        assert_eq!((asked.answer.unwrap_err().kind(), asked.calls), (ErrorKind::Unavailable, 1));
    }
}
