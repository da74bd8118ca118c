//! Trying out a model's entry of the settings.

use std::time::{Duration, Instant};

use lkr::ports::{EmbedKind, Reranker};
use lkr_settings::{ModelEntry, Provider};

use crate::{rerankers, state::Services};

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

/// Tries an entry out, as the model of that name.
pub(crate) async fn try_out(services: &Services, name: &str, entry: &ModelEntry) -> Tried {
    let begun = Instant::now();
    let patience = Duration::from_secs(entry.timeout_s.into());
    let tried = match (entry.provider, name) {
        (None, "embed") => try_embedder(services, patience).await,
        (_, "rerank") => try_reranker(services, entry, patience).await,
        (None, _) => Err(format!("no {name} model is configured: provider is null")),
        (Some(provider), _) => Err(format!(
            "this build has no client for provider {}: nothing was sent",
            Provider::name(provider)
        )),
    };
    let (ok, detail) = match tried {
        Ok(detail) => (true, detail),
        Err(detail) => (false, detail),
    };
    Tried { ok, took: begun.elapsed(), detail }
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
