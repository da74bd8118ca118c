//! Chats as they are sent.

use std::borrow::Cow;

use lkr_models::{AnswerSchema, ChatRequest, FinishReason, Role, TokenUsage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    capabilities::{ProviderCapabilities, ResponseFormat},
    ordered::Ordered,
};

#[derive(Serialize)]
pub(crate) struct Ask<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    model: &'a str,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Format<'a>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Cow<'a, str>,
}

#[derive(Serialize)]
#[serde(tag = "type", content = "json_schema", rename_all = "snake_case")]
enum Format<'a> {
    JsonSchema { name: &'a str, strict: bool, schema: Ordered<'a> },
    JsonObject,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

impl<'a> Ask<'a> {
    pub(crate) fn new(
        model: &'a str,
        request: &'a ChatRequest,
        manner: ProviderCapabilities,
        stream: bool,
    ) -> Self {
        let limit = request.max_tokens;
        let schema = request.schema.as_ref();
        let format = schema.and_then(|schema| match manner.held {
            ResponseFormat::Schema => {
                Some(Format::JsonSchema { name: &schema.name, strict: true, schema: Ordered(&schema.schema) })
            }
            ResponseFormat::Json => Some(Format::JsonObject),
            ResponseFormat::Nothing => None,
        });
        Self {
            model,
            messages: messages(request, schema.filter(|_| manner.held < ResponseFormat::Schema)),
            max_tokens: (!manner.completion_tokens).then_some(limit),
            max_completion_tokens: manner.completion_tokens.then_some(limit),
            temperature: manner.temperature.then_some(request.temperature),
            response_format: format,
            stream,
            stream_options: (stream && manner.stream_usage).then_some(StreamOptions { include_usage: true }),
        }
    }
}

/// What was said, and the schema in words where the provider does not hold answers to it.
fn messages<'a>(request: &'a ChatRequest, in_words: Option<&AnswerSchema>) -> Vec<Message<'a>> {
    let message = |said: &'a lkr_models::ChatMessage| Message {
        role: role(said.role),
        content: said.text.as_str().into(),
    };
    let mut messages: Vec<_> = request.messages.iter().map(message).collect();
    let Some(schema) = in_words else { return messages };
    // What was read as JSON can be written.
    let schema = serde_json::to_string(&Ordered(&schema.schema)).unwrap_or_default();
    let words = format!("Answer with JSON of this schema, and with nothing else: {schema}");
    // Some models take one system message, at the beginning.
    match messages.first_mut().filter(|first| first.role == role(Role::System)) {
        Some(first) => first.content = format!("{}\n\n{words}", first.content).into(),
        None => messages.insert(0, Message { role: role(Role::System), content: words.into() }),
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

/// An answer, or a part of one.
#[derive(Deserialize)]
pub(crate) struct Answer {
    #[serde(default)]
    pub(crate) choices: Vec<Choice>,
    #[serde(default)]
    pub(crate) usage: Option<Usage>,
    /// What some say where they fail after they began.
    #[serde(default)]
    pub(crate) error: Option<Value>,
}

#[derive(Deserialize)]
pub(crate) struct Choice {
    #[serde(default, alias = "delta")]
    message: Option<Content>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    #[serde(default)]
    content: Option<String>,
    /// That and why it does not answer.
    #[serde(default)]
    refusal: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct Usage {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
}

impl Choice {
    pub(crate) fn text(&mut self) -> String {
        self.message.as_mut().and_then(|message| message.content.take()).unwrap_or_default()
    }

    /// Why it ends; `None` while it does not.
    pub(crate) fn end(&self) -> Option<FinishReason> {
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

impl From<&Usage> for TokenUsage {
    fn from(usage: &Usage) -> Self {
        Self { prompt: usage.prompt_tokens, answer: usage.completion_tokens }
    }
}
