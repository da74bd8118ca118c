use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use lkr_models::{EmbedKind, Embedder, EmbedderProfile, Result};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::batch::balanced;
use crate::encoder::Encoder;
use crate::error;
use crate::fingerprint::fingerprint;
use crate::folder::ModelFolder;
use crate::options::LocalOptions;
use crate::tokens::TextTokenizer;
use crate::weights::WeightsFile;

/// How many tokens go through the model together: enough to make the products efficient, few enough for buffers
/// of some megabytes.
const BATCH_TOKENS: usize = 2048;
/// How many texts are tokenized in one go.
const TEXTS_A_JOB: usize = 128;

/// A sentence-transformers model, run in this process on the CPU.
///
/// Queries and passages have threads of their own: a query never waits for a passage. A call whose future is dropped
/// ends after the batches that are already running.
#[derive(Debug)]
pub struct LocalEmbedder {
    profile: EmbedderProfile,
    queries: Lane,
    passages: Lane,
    model: Arc<Model>,
}

/// The threads and the prefix of one kind of text.
#[derive(Debug)]
struct Lane {
    prefix: String,
    threads: usize,
    permits: Arc<Semaphore>,
}

/// What the blocking threads share.
#[derive(Debug)]
struct Model {
    tokenizer: TextTokenizer,
    encoder: Encoder,
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
        let encoder = Encoder::load(&folder.config, folder.pooling, &weights.tensors()?)?;
        tracing::debug!(id = profile.id, name = profile.name, dims = profile.dims, "model opened");
        Ok(Self { profile, queries, passages, model: Arc::new(Model { tokenizer, encoder }) })
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
        let vectors = encode(&self.model, lane, sequences).await?;
        Ok(places.into_iter().filter_map(|place| vectors.get(place).cloned()).collect())
    }

    fn letters_per_piece(&self, text: &str) -> Option<f32> {
        self.model.tokenizer.letters_per_piece(text)
    }
}

impl Lane {
    fn new(prefix: String, threads: usize) -> Self {
        let threads = threads.clamp(1, Semaphore::MAX_PERMITS);
        Self { prefix, threads, permits: Arc::new(Semaphore::new(threads)) }
    }

    /// Runs `jobs` on blocking threads, as many at a time as the lane has; answers in the order of the jobs.
    async fn run<T, J>(&self, jobs: Vec<J>) -> Result<Vec<T>>
    where
        T: Send + 'static,
        J: FnOnce() -> Result<T> + Send + 'static,
    {
        stream::iter(jobs).map(|job| self.run_one(job)).buffered(self.threads).try_collect().await
    }

    async fn run_one<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(error::unavailable)?;
        let runtime = Handle::try_current().map_err(error::unavailable)?;
        let job = move || {
            // The permit stays with the thread: a future that is dropped does not make room before its job ends.
            let _permit = permit;
            job()
        };
        runtime.spawn_blocking(job).await.map_err(error::internal)?
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

async fn tokenize(model: &Arc<Model>, lane: &Lane, texts: &[&str]) -> Result<Vec<Vec<u32>>> {
    let jobs = texts
        .chunks(TEXTS_A_JOB)
        .map(|texts| {
            let texts: Vec<String> = texts.iter().map(|text| format!("{}{text}", lane.prefix)).collect();
            let model = Arc::clone(model);
            move || texts.iter().map(|text| model.tokenizer.ids(text)).collect::<Result<Vec<_>>>()
        })
        .collect();
    Ok(lane.run(jobs).await?.concat())
}

/// The vectors of `sequences`, in their order.
async fn encode(model: &Arc<Model>, lane: &Lane, sequences: Vec<Vec<u32>>) -> Result<Vec<Vec<f32>>> {
    let lengths: Vec<usize> = sequences.iter().map(Vec::len).collect();
    let sequences = Arc::new(sequences);
    let jobs = balanced(&lengths, BATCH_TOKENS)
        .into_iter()
        .map(|batch| {
            let (model, sequences) = (Arc::clone(model), Arc::clone(&sequences));
            move || {
                let batch = sequences.get(batch).unwrap_or_default();
                model.encoder.encode(&batch.iter().map(Vec::as_slice).collect::<Vec<_>>())
            }
        })
        .collect();
    Ok(lane.run(jobs).await?.concat())
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
        let busy = embedder.passages.permits.acquire_many(2).await.unwrap();
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
        drop(embedder.passages.permits.acquire_many(2).await.unwrap());
    }
}
