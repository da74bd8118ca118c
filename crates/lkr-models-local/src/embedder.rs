use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::try_join_all;
use lkr_models::{EmbedKind, Embedder, EmbedderProfile, Precision, REFERENCE_SCALE, Result};

use crate::encoder::Encoder;
use crate::error;
use crate::fingerprint::{MINILM_ID, fingerprint};
use crate::folder::ModelFolder;
use crate::lane::{Encode, Lane};
use crate::options::LocalOptions;
use crate::pooling::Pooling;
use crate::tokens::{Sequence, TextTokenizer};
use crate::weights::WeightsFile;

/// The number of texts that are tokenized in one job.
const TEXTS_PER_JOB: usize = 128;

/// A sentence-transformers model that runs in-process on the CPU.
///
/// Queries and passages have separate threads, so a query never waits for a passage. Concurrent calls share batches, so
/// many small calls are about as fast as one large call. A call whose future is dropped ends after the batches that are
/// already running.
#[derive(Debug)]
pub struct LocalEmbedder {
    profile: EmbedderProfile,
    queries: Lane,
    passages: Lane,
    model: Arc<Model>,
}

/// The state that blocking threads share.
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
    /// The weights are mapped into memory, so the files must not be changed in place while the model is in use
    /// (replacing a file is fine). Blocks while the tokenizer is read, some tens of milliseconds to a second.
    ///
    /// Fails with [`lkr_models::ErrorKind::Config`] if a file is missing, damaged, or requires an unsupported feature;
    /// the message names it.
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
        let id = |settings: &str| fingerprint(weights.bytes(), &tokenizer, settings);
        let full_id = id(&settings);
        let profile = EmbedderProfile {
            cosine_scale: options.cosine_scale.or_else(|| (full_id == MINILM_ID).then_some(REFERENCE_SCALE)),
            id: match options.precision {
                Precision::Float32 => full_id,
                Precision::Int8 => id(&format!("{settings} int8")),
            },
            name: match options.precision {
                Precision::Float32 => folder.name,
                Precision::Int8 => format!("{} (int8)", folder.name),
            },
            dims: folder.config.hidden,
            max_tokens: folder.max_tokens,
            precision: Some(options.precision),
        };
        let tokenizer =
            TextTokenizer::load(&folder.tokenizer, &tokenizer, folder.max_tokens, folder.lower_case)?;
        let encoder = Encoder::load(&folder.config, &weights.tensors()?, options.precision)?;
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

/// The distinct texts, and the index of each of `texts` among them.
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
    let jobs = texts.chunks(TEXTS_PER_JOB).map(|texts| {
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
    async fn query_is_embedded_while_passages_occupy_all_threads() {
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
    async fn dropped_calls_release_their_threads() {
        let embedder = tiny();
        let texts: Vec<String> = (0..400).map(|i| format!("the council approved {i}")).collect();
        for _ in 0..20 {
            assert!(embedder.embed(EmbedKind::Passage, &texts).now_or_never().is_none());
        }
        assert_eq!(embedder.embed(EmbedKind::Passage, &texts).await.unwrap().len(), texts.len());
        // Exactly the running jobs hold permits.
        drop(embedder.passages.all_threads(2).await);
    }
}
