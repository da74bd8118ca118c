//! Tests a model's settings entry by calling the model.

use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use lkr::ports::{
    EmbedKind, Embedder, Reranker,
    models::{AnswerSchema, ChatMessage, ChatModel, ChatPart, ChatRequest},
};
use lkr_models_remote::{HttpChat, ResponseFormat};
use lkr_settings::{MASK, ModelEntry, Secret};
use serde_json::{Value, json};

use crate::{chat_models, embedder_reconciler, rerankers, state::Services};

/// The result of testing a model.
#[derive(Debug)]
pub(crate) struct ModelTestResult {
    pub(crate) ok: bool,
    pub(crate) took: Duration,
    pub(crate) detail: String,
}

/// The text that the embedding model embeds.
const EMBED_TEXT: &str = "a short text to embed";
/// The query that the reranker scores passages for, and the passages.
const RERANK_QUERY: &str = "how many moons has Jupiter";
const RERANK_PASSAGES: [&str; 2] = ["Jupiter has many moons.", "Knead the dough for ten minutes."];
/// The prompts for the language model.
const CHAT_PROMPT: &str = "Say hello in one word.";
const JSON_PROMPT: &str = "Which is the largest planet? Answer as JSON: {\"planet\": \"…\"}";
/// The token limit of its answers. Some models reason before they answer.
const ANSWER_TOKENS: u32 = 1024;
/// How much of an answer is shown, in characters.
const SHOWN_CHARS: usize = 80;

/// Tests an entry in the role `name`: embed, summarize, classify or rerank.
pub(crate) async fn test_model(services: &Services, name: &str, entry: &ModelEntry) -> ModelTestResult {
    let started = Instant::now();
    let timeout = Duration::from_secs(entry.timeout_s.into());
    let result = match (entry.provider, name) {
        (None, "embed") => test_local_embedder(services, timeout).await,
        (_, "rerank") => test_reranker(services, entry, timeout).await,
        (Some(_), "embed") => test_remote_embedder(services, entry).await,
        (Some(_), _) => test_chat_model(services, entry).await,
        (None, _) => Err(format!("no {name} model is configured: provider is null")),
    };
    let (ok, detail) = match result {
        Ok(detail) => (true, detail),
        Err(detail) => (false, detail),
    };
    ModelTestResult { ok, took: started.elapsed(), detail: without_key(detail, entry) }
}

async fn test_local_embedder(services: &Services, timeout: Duration) -> Result<String, String> {
    let Some(embedder) = services.kb.embedder() else {
        return Err("there is no embedding model: searches use keywords alone".to_owned());
    };
    let texts = [EMBED_TEXT.to_owned()];
    let embedded = tokio::time::timeout(timeout, embedder.embed(EmbedKind::Query, &texts)).await;
    let vectors = embedded.map_err(|_| "the model did not answer in time".to_owned())?;
    let vectors = vectors.map_err(|error| error.to_string())?;
    let dims = vectors.first().map_or(0, Vec::len);
    Ok(format!("{}, {dims} dimensions, in this process", embedder.profile().name))
}

async fn test_remote_embedder(services: &Services, entry: &ModelEntry) -> Result<String, String> {
    let connected = embedder_reconciler::connect_plain(entry, services.outgoing.clone()).await;
    let embedder = connected.map_err(|error| error.to_string())?;
    Ok(format!("{}, {} dimensions", embedder.profile().name, embedder.profile().dims))
}

async fn test_reranker(services: &Services, entry: &ModelEntry, timeout: Duration) -> Result<String, String> {
    if let Some(remote) = rerankers::remote(entry, &services.outgoing) {
        let reranker = remote.map_err(|error| error.to_string())?;
        return rerank_scores(&*reranker, timeout).await;
    }
    let Some(reranker) = services.kb.reranker() else {
        return Err(
            "no rerank model is configured: provider is null, and there is none in this process".to_owned()
        );
    };
    Ok(format!("{}, in this process", rerank_scores(&**reranker, timeout).await?))
}

/// Scores a passage that answers the query and one that does not.
async fn rerank_scores(reranker: &dyn Reranker, timeout: Duration) -> Result<String, String> {
    let passages = RERANK_PASSAGES.map(str::to_owned);
    let scored = tokio::time::timeout(timeout, reranker.rerank(RERANK_QUERY, &passages)).await;
    let scores = scored.map_err(|_| "the model did not answer in time".to_owned())?;
    let scores = scores.map_err(|error| error.to_string())?;
    Ok(format!("{}, scores {scores:?} for {RERANK_PASSAGES:?}", reranker.profile().name))
}

/// Asks for a plain answer, for one in JSON, and for a streamed one.
async fn test_chat_model(services: &Services, entry: &ModelEntry) -> Result<String, String> {
    let model = chat_models::remote(entry, &services.outgoing).map_err(|error| error.to_string())?;
    let started = Instant::now();
    let answer = model.complete(&chat_request(CHAT_PROMPT)).await.map_err(|error| error.to_string())?;
    if answer.text.trim().is_empty() {
        return Err(format!("{} answered with no text within {ANSWER_TOKENS} tokens", model.profile().name));
    }
    let (took, usage) = (started.elapsed().as_millis(), answer.usage);
    let json = test_json(&model).await.map_err(|error| format!("it answers, but not in JSON: {error}"))?;
    let streamed =
        test_stream(&model).await.map_err(|error| format!("it answers, but not streamed: {error}"))?;
    Ok(format!(
        "{} answered {:?} in {took} ms ({} answer tokens, {} prompt tokens); JSON: {json}; streamed: {streamed}",
        model.profile().name,
        excerpt(&answer.text),
        usage.answer,
        usage.prompt,
    ))
}

async fn test_json(model: &HttpChat) -> Result<String, lkr::ports::models::Error> {
    let schema = json!({
        "type": "object",
        "properties": { "planet": { "type": "string" } },
        "required": ["planet"],
        "additionalProperties": false,
    });
    let schema = Some(AnswerSchema { name: "planet".to_owned(), schema });
    let answer = model.complete(&ChatRequest { schema, ..chat_request(JSON_PROMPT) }).await?;
    let format = match model.capabilities().response_format {
        ResponseFormat::JsonSchema => "accepts a schema",
        ResponseFormat::JsonObject => "accepts no schema, but a JSON mode",
        ResponseFormat::Text => "accepts neither a schema nor a JSON mode, so the prompt asks for JSON",
    };
    let is_valid = serde_json::from_str::<Value>(&answer.text)
        .is_ok_and(|value| value.get("planet").is_some_and(Value::is_string));
    Ok(if is_valid {
        format.to_owned()
    } else {
        format!("{format}, but answered {:?}", excerpt(&answer.text))
    })
}

async fn test_stream(model: &HttpChat) -> Result<String, lkr::ports::models::Error> {
    let parts: Vec<ChatPart> = model.stream(&chat_request(CHAT_PROMPT)).await?.try_collect().await?;
    let texts = parts.iter().filter(|part| matches!(part, ChatPart::Text(_))).count();
    Ok(format!("{texts} parts"))
}

fn chat_request(prompt: &str) -> ChatRequest {
    let messages = vec![ChatMessage::user(prompt)];
    ChatRequest { messages, max_tokens: ANSWER_TOKENS, temperature: 0.0, schema: None }
}

/// The beginning of an answer, on one line.
fn excerpt(text: &str) -> String {
    let mut chars = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
    let start: String = chars.by_ref().take(SHOWN_CHARS).collect();
    if chars.next().is_some() { format!("{start}…") } else { start }
}

/// Masks the API key: a provider may repeat it in its answer.
fn without_key(detail: String, entry: &ModelEntry) -> String {
    match entry.api_key.secret().ok().flatten().map(Secret::expose) {
        Some(key) if !key.is_empty() && detail.contains(key) => detail.replace(key, MASK),
        _ => detail,
    }
}
