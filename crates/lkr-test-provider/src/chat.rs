//! Answers of the language model.

use serde_json::{Value, json};

use crate::{
    fault::Fault,
    http::{Answer, Body, End},
    provider::ProviderBehavior,
};

/// What the provider refuses, though it is published.
pub(crate) fn refusal(quirks: &ProviderBehavior, body: &Value) -> Option<(String, &'static str)> {
    let format = body["response_format"]["type"].as_str().unwrap_or_default();
    let unsupported =
        |name: &str| Some((format!("Unsupported parameter: '{name}'"), "unsupported_parameter"));
    let tokens: usize = body["messages"].as_array().map_or(0, |all| {
        all.iter().map(|message| words(message["content"].as_str().unwrap_or_default())).sum()
    });
    match () {
        () if tokens > quirks.context_tokens => {
            let context = quirks.context_tokens;
            let said = format!("This model's maximum context length is {context} tokens, you sent {tokens}.");
            Some((said, "context_length_exceeded"))
        }
        () if quirks.no_json_schema && format == "json_schema" => unsupported("response_format"),
        () if quirks.no_json_object && format == "json_object" => unsupported("response_format"),
        () if quirks.no_stream_options && !body["stream_options"].is_null() => unsupported("stream_options"),
        () if quirks.no_max_tokens && !body["max_tokens"].is_null() => unsupported("max_tokens"),
        () if quirks.no_temperature && !body["temperature"].is_null() => unsupported("temperature"),
        () => None,
    }
}

/// What it answers, where `said` is what it says.
pub(crate) fn answer(body: &Value, said: &str, fault: Option<&Fault>, quirks: &ProviderBehavior) -> Answer {
    let most = ["max_tokens", "max_completion_tokens"].iter().find_map(|name| body[*name].as_u64());
    let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
    let tokens: Vec<&str> = said.split_inclusive(char::is_whitespace).take(most).collect();
    let whole = tokens.concat();
    let finish = if whole.len() < said.len() { "length" } else { "stop" };
    let usage = usage(body, &whole);
    if body["stream"] == true && !quirks.no_streams {
        return stream(body, &tokens, finish, &usage, fault);
    }
    let choice =
        json!({ "index": 0, "message": { "role": "assistant", "content": whole }, "finish_reason": finish });
    let mut answer = json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": body["model"],
        "choices": [choice], "usage": usage,
    });
    if let Some(Fault::ErrorWithin(message)) = fault {
        answer = json!({ "error": { "message": message, "code": 502 } });
    }
    crate::provider::spoilt(Answer::json(200, &answer), fault)
}

fn usage(body: &Value, answer: &str) -> Value {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let prompt: usize =
        messages.iter().map(|message| words(message["content"].as_str().unwrap_or_default())).sum();
    let answer = words(answer);
    json!({ "prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer })
}

fn stream(body: &Value, tokens: &[&str], finish: &str, usage: &Value, fault: Option<&Fault>) -> Answer {
    let wants_usage = body["stream_options"]["include_usage"] == true;
    let chunk = |choices: Value, usage: Option<&Value>| {
        let mut chunk = json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": body["model"], "choices": choices });
        if wants_usage {
            chunk["usage"] = usage.cloned().unwrap_or_default();
        }
        format!("data: {chunk}\n\n")
    };
    let part = |delta: Value, finish: Value| {
        chunk(json!([{ "index": 0, "delta": delta, "finish_reason": finish }]), None)
    };
    let mut parts = vec![part(json!({ "role": "assistant", "content": "" }), Value::Null)];
    parts.extend(tokens.iter().map(|token| part(json!({ "content": token }), Value::Null)));
    parts.push(part(json!({}), json!(finish)));
    if wants_usage {
        parts.push(chunk(json!([]), Some(usage)));
    }
    parts.push("data: [DONE]\n\n".to_owned());
    let mut end = End::Good;
    match fault {
        Some(Fault::HangAfter(count)) => (end, _) = (End::Hang, parts.truncate(*count)),
        Some(Fault::CutAfter(count)) => (end, _) = (End::Cut, parts.truncate(*count)),
        Some(Fault::EndAfter(count)) => parts.truncate(*count),
        Some(Fault::InvalidJson) => parts.insert(1, "data: {\"choices\": [\n\n".to_owned()),
        Some(Fault::ErrorWithin(message)) => {
            parts.insert(2, format!("data: {}\n\n", json!({ "error": { "message": message, "code": 502 } })));
        }
        _ => {}
    }
    let headers = vec!["Content-Type: text/event-stream".to_owned()];
    Answer { status: 200, headers, body: Body::Parts(parts), end }
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}
