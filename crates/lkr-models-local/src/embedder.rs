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
use crate::kernels;
use crate::lane::{Encode, Lane};
use crate::options::LocalOptions;
use crate::pooling::Pooling;
use crate::steps::{Steps, VECTOR};
use crate::tokens::{Sequence, TextTokenizer};
use crate::weights::WeightsFile;

/// The number of texts that are tokenized in one job.
const TEXTS_PER_JOB: usize = 128;

/// A text of so many bytes, such as most queries, is tokenized by the calling thread, if it is alone. That takes less than a tenth
/// of a millisecond, about as long as waking another thread and being woken by it.
const MAX_BYTES_IN_PLACE: usize = 256;

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
    /// The numbers of a token's row.
    hidden: usize,
    steps: Steps,
    /// The numbers of a vector.
    dims: usize,
}

impl Encode for Model {
    fn encode(&self, sequences: &[&Sequence]) -> Result<Vec<Vec<f32>>> {
        let states = self.encoder.states(sequences)?;
        states.each().map(|rows| self.vector(rows)).collect()
    }
}

impl Model {
    /// The vector of a text whose tokens have these rows.
    fn vector(&self, rows: &[f32]) -> Result<Vec<f32>> {
        let mut vector = if self.steps.is_empty() {
            self.pooling.direction(rows, self.hidden)?
        } else {
            self.steps.apply(self.pooling.pool(rows, self.hidden)?)?
        };
        vector.truncate(self.dims);
        if kernels::to_unit(&mut vector) {
            Ok(vector)
        } else {
            Err(error::internal("the model answered a vector that is zero or not finite"))
        }
    }
}

impl LocalEmbedder {
    /// Opens the sentence-transformers folder `dir`.
    ///
    /// The weights are mapped into memory, so the files must not be changed in place while the model is in use
    /// (replacing a file is fine). Blocks while the tokenizer is read and a short text is embedded on trial, some tens of
    /// milliseconds to a second.
    ///
    /// Fails with [`lkr_models::ErrorKind::Config`] if a file is missing, damaged, or requires an unsupported feature;
    /// the message names it.
    pub fn open(dir: &Path, options: LocalOptions) -> Result<Self> {
        let folder = ModelFolder::read(dir)?;
        let tokenizer =
            std::fs::read(&folder.tokenizer).map_err(|why| error::file(&folder.tokenizer, why))?;
        let weights = WeightsFile::open(&folder.weights)?;
        let queries = Lane::new(
            "embed-queries",
            options.query_prefix.unwrap_or_else(|| folder.query_prefix.clone()),
            options.query_threads,
        );
        let passages = Lane::in_background(
            "embed-passages",
            options.passage_prefix.unwrap_or_else(|| folder.passage_prefix.clone()),
            options.passage_threads,
        );
        let steps = folder.modules.load_steps(folder.config.hidden, VECTOR)?.without_last_normalize();
        let dims = kept_dims(options.truncate_dim.or(folder.truncate_dim), steps.width)?;
        let settings = Settings { folder: &folder, steps: &steps, dims };
        let for_id = settings.for_id(&queries.prefix, &passages.prefix);
        let id = |settings: &str| fingerprint(weights.bytes(), &tokenizer, settings);
        let full_id = id(&for_id);
        let profile = EmbedderProfile {
            cosine_scale: options.cosine_scale.or_else(|| (full_id == MINILM_ID).then_some(REFERENCE_SCALE)),
            id: match options.precision {
                Precision::Float32 => full_id,
                precision => id(&format!("{for_id} {}", precision.name())),
            },
            name: settings.name(options.precision),
            dims,
            max_tokens: folder.max_tokens,
            precision: Some(options.precision),
        };
        let (config, max_tokens) = (&folder.config, folder.max_tokens);
        let tokenizer = TextTokenizer::load(&folder.tokenizer, &tokenizer, max_tokens, folder.lower_case)?;
        let encoder = Encoder::load(config, max_tokens, &weights.tensors()?, options.precision.into())?;
        let model =
            Model { tokenizer, encoder, pooling: folder.modules.pooling, hidden: config.hidden, steps, dims };
        let trial = model.tokenizer.single(error::TRIAL).and_then(|trial| model.encode(&[&trial]));
        trial.map_err(|why| error::trial(dir, &why))?;
        tracing::debug!(id = profile.id, name = profile.name, dims = profile.dims, "model opened");
        Ok(Self { profile, queries, passages, model: Arc::new(model) })
    }
}

/// The numbers of a vector of `width` that are kept.
fn kept_dims(truncate_dim: Option<usize>, width: usize) -> Result<usize> {
    match truncate_dim {
        None => Ok(width),
        Some(dims) if (1..=width).contains(&dims) => Ok(dims),
        Some(dims) => {
            let what =
                format_args!("truncate_dim {dims} is not between 1 and the model's {width} dimensions");
            Err(error::config(what))
        }
    }
}

/// What makes the vectors of a model beside its weights and its tokenizer.
struct Settings<'a> {
    folder: &'a ModelFolder,
    steps: &'a Steps,
    dims: usize,
}

impl Settings<'_> {
    /// The settings as a part of the model's id. What older versions can open has the text that they gave it.
    fn for_id(&self, query_prefix: &str, passage_prefix: &str) -> String {
        let ModelFolder { config, modules, max_tokens, lower_case, .. } = self.folder;
        let pooling = if self.steps.is_empty() { modules.pooling.of_direction() } else { modules.pooling };
        let mut text = format!(
            "{} {pooling:?} {max_tokens} {lower_case} {query_prefix:?} {passage_prefix:?}{}",
            config.for_id(),
            self.steps.id
        );
        if self.dims < self.steps.width {
            text += &format!(" {} dimensions", self.dims);
        }
        text
    }

    /// The name of the folder, with what makes another model of the same folder.
    fn name(&self, precision: Precision) -> String {
        let mut variant = Vec::new();
        if precision != Precision::Float32 {
            variant.push(precision.name().to_owned());
        }
        if self.dims < self.steps.width {
            variant.push(format!("{} of {} dimensions", self.dims, self.steps.width));
        }
        let name = &self.folder.name;
        if variant.is_empty() { name.clone() } else { format!("{name} ({})", variant.join(", ")) }
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
    if let [text] = texts
        && text.len() <= MAX_BYTES_IN_PLACE
    {
        return Ok(vec![model.tokenizer.single(&format!("{}{text}", lane.prefix))?]);
    }
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
        let busy = embedder.passages.occupy(&embedder.model);
        let mut passages = embedder.embed(EmbedKind::Passage, &texts);
        assert!((&mut passages).now_or_never().is_none());
        let query = embedder.embed(EmbedKind::Query, &texts).await.unwrap();
        drop(busy);
        assert_eq!(passages.await.unwrap(), query);
    }

    /// The tokens of the last short text are kept.
    #[tokio::test]
    async fn vector_of_a_text_does_not_depend_on_what_was_asked_before() {
        let (embedder, other) = (tiny(), tiny());
        let long = "the council approved ".repeat(90);
        for text in
            ["two weeks", "Two weeks", "two weeks ", "the council", long.as_str(), "two weeks", "", "two"]
        {
            let letters = embedder.letters_per_piece(text);
            let texts = [text.to_owned()];
            let vectors = embedder.embed(EmbedKind::Query, &texts).await.unwrap();
            assert_eq!(vectors, other.embed(EmbedKind::Query, &texts).await.unwrap(), "{text}");
            assert_eq!(
                (letters, letters),
                (embedder.letters_per_piece(text), other.letters_per_piece(text)),
                "{text}"
            );
        }
    }

    #[tokio::test]
    async fn dropped_calls_release_their_threads() {
        let embedder = tiny();
        let texts: Vec<String> = (0..400).map(|i| format!("the council approved {i}")).collect();
        for _ in 0..20 {
            assert!(embedder.embed(EmbedKind::Passage, &texts).now_or_never().is_none());
        }
        assert_eq!(embedder.embed(EmbedKind::Passage, &texts).await.unwrap().len(), texts.len());
        while embedder.passages.encoding() > 0 {
            tokio::task::yield_now().await;
        }
    }
}
