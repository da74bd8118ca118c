use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::try_join_all;
use lkr_models::{EmbedKind, Embedder, EmbedderProfile, Result};

use crate::encoder::Encoder;
use crate::error;
use crate::fingerprint::fingerprint;
use crate::folder::ModelFolder;
use crate::lane::{Encode, Lane};
use crate::options::LocalOptions;
use crate::pooling::Pooling;
use crate::tokens::{Sequence, TextTokenizer};
use crate::weights::WeightsFile;

/// How many texts are tokenized in one go.
const TEXTS_A_JOB: usize = 128;

/// A sentence-transformers model, run in this process on the CPU.
///
/// Queries and passages have threads of their own: a query never waits for a passage. Calls that come at the same
/// time share batches, so many small ones are about as fast as a large one. A call whose future is dropped ends after
/// the batches that are already running.
#[derive(Debug)]
pub struct LocalEmbedder {
    profile: EmbedderProfile,
    queries: Lane,
    passages: Lane,
    model: Arc<Model>,
}

/// What the blocking threads share.
#[derive(Debug)]
struct Model {
    tokenizer: TextTokenizer,
    encoder: Encoder,
    pooling: Pooling,
    dims: usize,
}

impl Encode for Model {
    fn encode(&self, sequences: &[&Sequence]) -> Result<Vec<Vec<f32>>> {
        let states = self.encoder.states(sequences)?;
        states.each().map(|rows| self.pooling.pool(rows, self.dims)).collect()
    }
}

impl LocalEmbedder {
    /// Opens the sentence-transformers folder `dir`.
    ///
    /// The weights are mapped into memory: the files must not be changed in place while the model is in use (putting
    /// another file in their place is fine). Blocks for the time of reading the tokenizer, some tens of milliseconds
    /// to a second.
    ///
    /// Fails with [`lkr_models::ErrorKind::Config`] where a file is missing, damaged, or asks for what is not
    /// supported; the message names it.
    pub fn open(dir: &Path, options: LocalOptions) -> Result<Self> {
        let folder = ModelFolder::read(dir)?;
        let tokenizer =
            std::fs::read(&folder.tokenizer).map_err(|why| error::file(&folder.tokenizer, why))?;
        let weights = WeightsFile::open(&folder.weights)?;
        let queries = Lane::new(options.query_prefix.unwrap_or(folder.query_prefix), options.query_threads);
        let passages =
            Lane::new(options.passage_prefix.unwrap_or(folder.passage_prefix), options.passage_threads);
        let settings = format!(
            "{:?} {:?} {} {} {:?} {:?}",
            folder.config,
            folder.pooling,
            folder.max_tokens,
            folder.lower_case,
            queries.prefix,
            passages.prefix
        );
        let profile = EmbedderProfile {
            id: fingerprint(weights.bytes(), &tokenizer, &settings),
            name: folder.name,
            dims: folder.config.hidden,
            max_tokens: folder.max_tokens,
            cosine_scale: options.cosine_scale,
        };
        let tokenizer =
            TextTokenizer::load(&folder.tokenizer, &tokenizer, folder.max_tokens, folder.lower_case)?;
        let encoder = Encoder::load(&folder.config, &weights.tensors()?)?;
        let model = Model { tokenizer, encoder, pooling: folder.pooling, dims: profile.dims };
        tracing::debug!(id = profile.id, name = profile.name, dims = profile.dims, "model opened");
        Ok(Self { profile, queries, passages, model: Arc::new(model) })
    }
}

#[async_trait]
impl Embedder for LocalEmbedder {
    fn profile(&self) -> &EmbedderProfile {
        &self.profile
    }

    async fn embed(&self, kind: EmbedKind, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        let lane = match kind {
            EmbedKind::Query => &self.queries,
            EmbedKind::Passage => &self.passages,
        };
        let (unique, places) = deduplicate(texts);
        let sequences = tokenize(&self.model, lane, &unique).await?;
        let vectors = lane.encode(&self.model, sequences).await?;
        Ok(places.into_iter().filter_map(|place| vectors.get(place).cloned()).collect())
    }

    fn letters_per_piece(&self, text: &str) -> Option<f32> {
        self.model.tokenizer.letters_per_piece(text)
    }
}

/// Each text once, and where each of `texts` stands among them.
fn deduplicate(texts: &[String]) -> (Vec<&str>, Vec<usize>) {
    let mut unique = Vec::new();
    let mut seen = HashMap::new();
    let places = texts
        .iter()
        .map(|text| {
            *seen.entry(text.as_str()).or_insert_with(|| {
                unique.push(text.as_str());
                unique.len() - 1
            })
        })
        .collect();
    (unique, places)
}

async fn tokenize(model: &Arc<Model>, lane: &Lane, texts: &[&str]) -> Result<Vec<Sequence>> {
    let jobs = texts.chunks(TEXTS_A_JOB).map(|texts| {
        let texts: Vec<String> = texts.iter().map(|text| format!("{}{text}", lane.prefix)).collect();
        let model = Arc::clone(model);
        lane.run(move || texts.iter().map(|text| model.tokenizer.single(text)).collect::<Result<Vec<_>>>())
    });
    Ok(try_join_all(jobs).await?.concat())
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn tiny() -> LocalEmbedder {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tiny-bert-mean");
        LocalEmbedder::open(&folder, LocalOptions { passage_threads: 2, ..LocalOptions::default() }).unwrap()
    }

    #[tokio::test]
    async fn queries_do_not_wait_for_passages() {
        let embedder = tiny();
        let texts = ["two weeks".to_owned()];
        let busy = embedder.passages.all_threads(2).await;
        let mut passages = embedder.embed(EmbedKind::Passage, &texts);
        assert!((&mut passages).now_or_never().is_none());
        let query = embedder.embed(EmbedKind::Query, &texts).await.unwrap();
        drop(busy);
        assert_eq!(passages.await.unwrap(), query);
    }

    #[tokio::test]
    async fn dropped_calls_give_their_threads_back() {
        let embedder = tiny();
        let texts: Vec<String> = (0..400).map(|i| format!("the council approved {i}")).collect();
        for _ in 0..20 {
            assert!(embedder.embed(EmbedKind::Passage, &texts).now_or_never().is_none());
        }
        assert_eq!(embedder.embed(EmbedKind::Passage, &texts).await.unwrap().len(), texts.len());
        // Every job that still runs holds a permit, and no other.
        drop(embedder.passages.all_threads(2).await);
    }
}
