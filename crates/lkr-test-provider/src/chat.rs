//! Responses of the language model.

use serde_json::{Value, json};

use crate::{
    fault::Fault,
    http::{Answer, Body, End},
    provider::ProviderBehavior,
};

/// The error of a valid request that this provider does not support: its message and code.
pub(crate) fn refusal(behavior: &ProviderBehavior, body: &Value) -> Option<(String, &'static str)> {
    let format = body["response_format"]["type"].as_str().unwrap_or_default();
    let unsupported =
        |name: &str| Some((format!("Unsupported parameter: '{name}'"), "unsupported_parameter"));
    let tokens: usize = body["messages"].as_array().map_or(0, |all| {
        all.iter().map(|message| words(message["content"].as_str().unwrap_or_default())).sum()
    });
    match () {
        () if tokens > behavior.context_tokens => {
            let context = behavior.context_tokens;
            let message =
                format!("This model's maximum context length is {context} tokens, you sent {tokens}.");
            Some((message, "context_length_exceeded"))
        }
        () if behavior.no_json_schema && format == "json_schema" => unsupported("response_format"),
        () if behavior.no_json_object && format == "json_object" => unsupported("response_format"),
        () if behavior.no_stream_options && !body["stream_options"].is_null() => {
            unsupported("stream_options")
        }
        () if behavior.no_max_tokens && !body["max_tokens"].is_null() => unsupported("max_tokens"),
        () if behavior.no_temperature && !body["temperature"].is_null() => unsupported("temperature"),
        () => None,
    }
}

/// The response to a request, with `output` as the output of the model.
pub(crate) fn answer(
    body: &Value,
    output: &str,
    fault: Option<&Fault>,
    behavior: &ProviderBehavior,
) -> Answer {
    let max_tokens = ["max_tokens", "max_completion_tokens"].iter().find_map(|name| body[*name].as_u64());
    let max_tokens = max_tokens.and_then(|max| usize::try_from(max).ok()).unwrap_or(usize::MAX);
    let tokens: Vec<&str> = output.split_inclusive(char::is_whitespace).take(max_tokens).collect();
    let text = tokens.concat();
    let finish = if text.len() < output.len() { "length" } else { "stop" };
    let usage = usage(body, &text);
    if body["stream"] == true && !behavior.no_streams {
        return stream(body, &tokens, finish, &usage, fault);
    }
    let choice =
        json!({ "index": 0, "message": { "role": "assistant", "content": text }, "finish_reason": finish });
    let mut answer = json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": body["model"],
        "choices": [choice], "usage": usage,
    });
    if let Some(Fault::ErrorWithin(message)) = fault {
        answer = json!({ "error": { "message": message, "code": 502 } });
    }
    crate::provider::with_fault(Answer::json(200, &answer), fault)
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
