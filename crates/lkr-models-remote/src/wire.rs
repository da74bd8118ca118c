//! Requests and responses of the chat API of OpenAI.

use std::borrow::Cow;

use lkr_models::{AnswerSchema, ChatRequest, FinishReason, Role, TokenUsage};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::{
    capabilities::{ProviderCapabilities, ResponseFormat},
    ordered_schema::OrderedSchema,
};

#[derive(Serialize)]
pub(crate) struct CompletionRequest<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    model: &'a str,
    messages: Vec<WireMessage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<WireFormat<'a>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    content: Cow<'a, str>,
}

#[derive(Serialize)]
#[serde(tag = "type", content = "json_schema", rename_all = "snake_case")]
enum WireFormat<'a> {
    JsonSchema { name: &'a str, strict: bool, schema: OrderedSchema<'a> },
    JsonObject,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

impl<'a> CompletionRequest<'a> {
    pub(crate) fn new(
        model: &'a str,
        request: &'a ChatRequest,
        capabilities: ProviderCapabilities,
        stream: bool,
    ) -> Self {
        let limit = request.max_tokens;
        let schema = request.schema.as_ref();
        let format = schema.and_then(|schema| match capabilities.response_format {
            ResponseFormat::JsonSchema => {
                let AnswerSchema { name, schema } = schema;
                Some(WireFormat::JsonSchema { name, strict: true, schema: OrderedSchema(schema) })
            }
            ResponseFormat::JsonObject => Some(WireFormat::JsonObject),
            ResponseFormat::Text => None,
        });
        let in_prompt = schema.filter(|_| capabilities.response_format < ResponseFormat::JsonSchema);
        let usage = stream && capabilities.stream_usage;
        Self {
            model,
            messages: messages(request, in_prompt),
            max_tokens: (!capabilities.max_completion_tokens).then_some(limit),
            max_completion_tokens: capabilities.max_completion_tokens.then_some(limit),
            temperature: capabilities.temperature.then_some(request.temperature),
            response_format: format,
            stream,
            stream_options: usage.then_some(StreamOptions { include_usage: true }),
        }
    }
}

/// The messages of a request. If the provider does not support schemas, the system message contains the schema.
fn messages<'a>(request: &'a ChatRequest, schema_in_prompt: Option<&AnswerSchema>) -> Vec<WireMessage<'a>> {
    let message = |message: &'a lkr_models::ChatMessage| WireMessage {
        role: role(message.role),
        content: message.text.as_str().into(),
    };
    let mut messages: Vec<_> = request.messages.iter().map(message).collect();
    let Some(schema) = schema_in_prompt else { return messages };
    // Serializing a JSON value cannot fail.
    let schema = serde_json::to_string(&OrderedSchema(&schema.schema)).unwrap_or_default();
    let instruction = format!("Answer with JSON of this schema, and with nothing else: {schema}");
    // Some models accept only one system message, at the beginning.
    match messages.first_mut().filter(|first| first.role == role(Role::System)) {
        Some(first) => first.content = format!("{}\n\n{instruction}", first.content).into(),
        None => messages.insert(0, WireMessage { role: role(Role::System), content: instruction.into() }),
    }
    messages
}

const fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
    }
}

/// A response, or a chunk of a streamed one.
#[derive(Deserialize)]
pub(crate) struct CompletionResponse {
    /// Some providers send null in place of an empty list: beside an error, and in the chunk with the token usage.
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) choices: Vec<Choice>,
    #[serde(default)]
    pub(crate) usage: Option<WireUsage>,
    /// Some providers report a failure here after they have sent a successful status.
    #[serde(default)]
    pub(crate) error: Option<Value>,
}

#[derive(Deserialize)]
pub(crate) struct Choice {
    #[serde(default, alias = "delta")]
    message: Option<ChoiceMessage>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct ChoiceMessage {
    #[serde(default)]
    content: Option<MessageContent>,
    /// The explanation of a model that refuses to answer.
    #[serde(default)]
    refusal: Option<String>,
}

/// The text of a message.
#[derive(Deserialize)]
#[serde(untagged)]
enum MessageContent {
    Whole(String),
    /// Mistral's models that reason before they answer send the reasoning and the answer as parts.
    Parts(Vec<ContentPart>),
}

/// A part of a text. Only those of the type `text` belong to the answer.
#[derive(Deserialize)]
struct ContentPart {
    #[serde(default)]
    r#type: Option<String>,
    #[serde(default)]
    text: Option<String>,
}

/// The token usage. A count that is missing or no number is 0: an answer is not refused for it.
#[derive(Deserialize)]
pub(crate) struct WireUsage {
    #[serde(default, deserialize_with = "count")]
    prompt_tokens: u64,
    #[serde(default, deserialize_with = "count")]
    completion_tokens: u64,
}

fn null_as_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    Ok(Value::deserialize(deserializer)?.as_u64().unwrap_or_default())
}

impl Choice {
    pub(crate) fn take_text(&mut self) -> String {
        match self.message.as_mut().and_then(|message| message.content.take()) {
            Some(MessageContent::Whole(text)) => text,
            Some(MessageContent::Parts(parts)) => {
                let texts = parts.into_iter().filter(|part| part.r#type.as_deref() == Some("text"));
                texts.filter_map(|part| part.text).collect()
            }
            None => String::new(),
        }
    }

    /// Why the answer ended; `None` before its end.
    pub(crate) fn finish_reason(&self) -> Option<FinishReason> {
        let refused = self.message.as_ref().is_some_and(|message| message.refusal.is_some());
        match self.finish_reason.as_deref() {
            Some("content_filter") => Some(FinishReason::ContentFilter),
            Some(_) if refused => Some(FinishReason::ContentFilter),
            Some("length") => Some(FinishReason::Length),
            Some("") | None => None,
            Some(_) => Some(FinishReason::Stop),
        }
    }
}

impl From<&WireUsage> for TokenUsage {
    fn from(usage: &WireUsage) -> Self {
        Self { prompt: usage.prompt_tokens, answer: usage.completion_tokens }
    }
}
