//! Trying out a model's entry of the settings.

use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use lkr::ports::{
    EmbedKind, Embedder, Reranker,
    models::{AnswerSchema, ChatMessage, ChatModel, ChatPart, ChatRequest},
};
use lkr_models_remote::{HttpChat, ResponseFormat};
use lkr_settings::{MASK, ModelEntry, Secret};
use serde_json::{Value, json};

use crate::{chat_models, embedders, rerankers, state::Services};

/// What came of trying a model out.
#[derive(Debug)]
pub(crate) struct Tried {
    pub(crate) ok: bool,
    pub(crate) took: Duration,
    pub(crate) detail: String,
}

/// What the embedding model is asked.
const PROBE: &str = "a short text to embed";
/// What the reranker is asked, and about what.
const QUESTION: &str = "how many moons has Jupiter";
const PASSAGES: [&str; 2] = ["Jupiter has many moons.", "Knead the dough for ten minutes."];
/// What the language model is asked.
const GREETING: &str = "Say hello in one word.";
const AS_JSON: &str = "Which is the largest planet? Answer as JSON: {\"planet\": \"…\"}";
/// How long its answers may be: some think before they answer.
const ANSWER_TOKENS: u32 = 1024;
/// How much of an answer is shown, in characters.
const SHOWN_CHARS: usize = 80;

/// Tries an entry out, as the model of that name.
pub(crate) async fn try_out(services: &Services, name: &str, entry: &ModelEntry) -> Tried {
    let begun = Instant::now();
    let patience = Duration::from_secs(entry.timeout_s.into());
    let tried = match (entry.provider, name) {
        (None, "embed") => try_embedder(services, patience).await,
        (_, "rerank") => try_reranker(services, entry, patience).await,
        (Some(_), "embed") => try_remote_embedder(services, entry).await,
        (Some(_), _) => try_chat(services, entry).await,
        (None, _) => Err(format!("no {name} model is configured: provider is null")),
    };
    let (ok, detail) = match tried {
        Ok(detail) => (true, detail),
        Err(detail) => (false, detail),
    };
    Tried { ok, took: begun.elapsed(), detail: without_key(detail, entry) }
}

async fn try_embedder(services: &Services, patience: Duration) -> Result<String, String> {
    let Some(embedder) = services.kb.embedder() else {
        return Err("there is no embedding model: searches go by words alone".to_owned());
    };
    let texts = [PROBE.to_owned()];
    let answered = tokio::time::timeout(patience, embedder.embed(EmbedKind::Query, &texts)).await;
    let vectors = answered.map_err(|_| "the model did not answer in time".to_owned())?;
    let vectors = vectors.map_err(|error| error.to_string())?;
    let dims = vectors.first().map_or(0, Vec::len);
    Ok(format!("{}, {dims} dimensions, in this process", embedder.profile().name))
}

async fn try_remote_embedder(services: &Services, entry: &ModelEntry) -> Result<String, String> {
    let reached = embedders::reach(entry, services.outgoing.clone()).await;
    let embedder = reached.map_err(|error| error.to_string())?;
    Ok(format!("{}, {} dimensions", embedder.profile().name, embedder.profile().dims))
}

async fn try_reranker(services: &Services, entry: &ModelEntry, patience: Duration) -> Result<String, String> {
    if let Some(remote) = rerankers::remote(entry, &services.outgoing) {
        let reranker = remote.map_err(|error| error.to_string())?;
        return ask(&*reranker, patience).await;
    }
    let Some(reranker) = services.kb.reranker() else {
        return Err(
            "no rerank model is configured: provider is null, and there is none in this process".to_owned()
        );
    };
    Ok(format!("{}, in this process", ask(&**reranker, patience).await?))
}

/// Has it score a passage that answers a question and one that does not, and tells what came of it.
async fn ask(reranker: &dyn Reranker, patience: Duration) -> Result<String, String> {
    let passages = PASSAGES.map(str::to_owned);
    let answered = tokio::time::timeout(patience, reranker.rerank(QUESTION, &passages)).await;
    let scores = answered.map_err(|_| "the model did not answer in time".to_owned())?;
    let scores = scores.map_err(|error| error.to_string())?;
    Ok(format!("{}, scores {scores:?} for {PASSAGES:?}", reranker.profile().name))
}

/// Has it say something, say something as JSON, and say something in parts.
async fn try_chat(services: &Services, entry: &ModelEntry) -> Result<String, String> {
    let model = chat_models::remote(entry, &services.outgoing).map_err(|error| error.to_string())?;
    let begun = Instant::now();
    let answer = model.complete(&asking(GREETING)).await.map_err(|error| error.to_string())?;
    if answer.text.trim().is_empty() {
        return Err(format!("{} said nothing within {ANSWER_TOKENS} tokens", model.profile().name));
    }
    let (took, usage) = (begun.elapsed().as_millis(), answer.usage);
    let as_json = say_json(&model).await.map_err(|error| format!("it answers, but not as JSON: {error}"))?;
    let in_parts = stream(&model).await.map_err(|error| format!("it answers, but not in parts: {error}"))?;
    Ok(format!(
        "{} said {:?} in {took} ms ({} tokens for {}); as JSON: {as_json}; in parts: {in_parts}",
        model.profile().name,
        short(&answer.text),
        usage.answer,
        usage.prompt,
    ))
}

async fn say_json(model: &HttpChat) -> Result<String, lkr::ports::models::Error> {
    let schema = json!({
        "type": "object",
        "properties": { "planet": { "type": "string" } },
        "required": ["planet"],
        "additionalProperties": false,
    });
    let schema = Some(AnswerSchema { name: "planet".to_owned(), schema });
    let answer = model.complete(&ChatRequest { schema, ..asking(AS_JSON) }).await?;
    let held = match model.manner().held {
        ResponseFormat::Schema => "it takes a schema",
        ResponseFormat::Json => "it takes no schema, but holds to JSON",
        ResponseFormat::Nothing => "it is asked for in words",
    };
    let fits = serde_json::from_str::<Value>(&answer.text)
        .is_ok_and(|value| value.get("planet").is_some_and(Value::is_string));
    Ok(if fits { held.to_owned() } else { format!("{held}, and said {:?}", short(&answer.text)) })
}

async fn stream(model: &HttpChat) -> Result<String, lkr::ports::models::Error> {
    let parts: Vec<ChatPart> = model.stream(&asking(GREETING)).await?.try_collect().await?;
    let texts = parts.iter().filter(|part| matches!(part, ChatPart::Text(_))).count();
    Ok(format!("{texts} came"))
}

fn asking(text: &str) -> ChatRequest {
    let messages = vec![ChatMessage::user(text)];
    ChatRequest { messages, max_tokens: ANSWER_TOKENS, temperature: 0.0, schema: None }
}

/// The beginning of an answer, in one line.
fn short(text: &str) -> String {
    let mut chars = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
    let start: String = chars.by_ref().take(SHOWN_CHARS).collect();
    if chars.next().is_some() { format!("{start}…") } else { start }
}

/// Whatever a model says of the key that it was shown is not shown on.
fn without_key(detail: String, entry: &ModelEntry) -> String {
    match entry.api_key.secret().ok().flatten().map(Secret::expose) {
        Some(key) if !key.is_empty() && detail.contains(key) => detail.replace(key, MASK),
        _ => detail,
    }
}
