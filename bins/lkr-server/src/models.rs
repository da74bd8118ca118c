//! Trying out a model's entry of the settings.

use std::time::{Duration, Instant};

use lkr::{KnowledgeBase, ports::EmbedKind};
use lkr_settings::{ModelEntry, Provider};

/// What came of trying a model out.
#[derive(Debug)]
pub(crate) struct Tried {
    pub(crate) ok: bool,
    pub(crate) took: Duration,
    pub(crate) detail: String,
}

/// What the embedding model is asked.
const PROBE: &str = "a short text to embed";

/// Tries an entry out, as the model of that name.
pub(crate) async fn try_out(kb: &KnowledgeBase, name: &str, entry: &ModelEntry) -> Tried {
    let begun = Instant::now();
    let tried = match (entry.provider, name) {
        (None, "embed") => try_embedder(kb, Duration::from_secs(entry.timeout_s.into())).await,
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

async fn try_embedder(kb: &KnowledgeBase, patience: Duration) -> Result<String, String> {
    let Some(embedder) = kb.embedder() else {
        return Err("there is no embedding model: searches go by words alone".to_owned());
    };
    let texts = [PROBE.to_owned()];
    let answered = tokio::time::timeout(patience, embedder.embed(EmbedKind::Query, &texts)).await;
    let vectors = answered.map_err(|_| "the model did not answer in time".to_owned())?;
    let vectors = vectors.map_err(|error| error.to_string())?;
    let dims = vectors.first().map_or(0, Vec::len);
    Ok(format!("{}, {dims} dimensions, in this process", embedder.profile().name))
}
