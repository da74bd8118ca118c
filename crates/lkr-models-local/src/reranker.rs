use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;
use std::thread::available_parallelism;

use async_trait::async_trait;
use lkr_models::{Precision, Reranker, RerankerProfile, Result};

use crate::config::Positions;
use crate::encoder::Encoder;
use crate::error;
use crate::fingerprint::fingerprint;
use crate::head::Head;
use crate::lane::{Encode, Lane};
use crate::pairs::PairTokenizer;
use crate::rerank_folder::{HeadSource, RerankFolder};
use crate::tokens::Sequence;
use crate::weights::{Tensors, WeightsFile};

/// Options that the folder of a reranker does not contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RerankOptions {
    /// The number of threads that score passages at a time, over all calls; at least 1.
    pub threads: usize,
    /// The number of passages of a search that are scored; at least 1.
    pub candidates: usize,
    /// The precision of the products with weights. Scores of different precisions are those of different models.
    pub precision: Precision,
}

impl Default for RerankOptions {
    /// One thread for each core, 20 passages and single precision.
    fn default() -> Self {
        Self {
            threads: available_parallelism().map_or(1, NonZero::get),
            candidates: 20,
            precision: Precision::default(),
        }
    }
}

/// A cross-encoder that runs in-process on the CPU: the model reads a query and a passage as one sequence.
///
/// Concurrent calls share batches. A call whose future is dropped ends after the batches that are already running.
#[derive(Debug)]
pub struct LocalReranker {
    profile: RerankerProfile,
    lane: Lane,
    model: Arc<Model>,
}

/// The state that blocking threads share.
#[derive(Debug)]
struct Model {
    tokenizer: PairTokenizer,
    encoder: Encoder,
    hidden: usize,
    head: Head,
}

impl Encode for Model {
    fn encode(&self, sequences: &[&Sequence]) -> Result<Vec<Vec<f32>>> {
        let states = self.encoder.states(sequences)?;
        states.each().map(|rows| Ok(vec![self.head.score(rows, self.hidden)?])).collect()
    }
}

impl LocalReranker {
    /// Opens the folder `dir` in the format of transformers or sentence-transformers: a sequence classifier of the
    /// BERT, DistilBERT, RoBERTa or ModernBERT family with one label, or a transformer with a head of modules.
    ///
    /// The weights are mapped into memory, so the files must not be changed in place while the model is in use
    /// (replacing a file is fine). Blocks while the tokenizer is read and a short pair is scored on trial, some tens of
    /// milliseconds to a second.
    ///
    /// Fails with [`lkr_models::ErrorKind::Config`] if a file is missing, damaged, or requires an unsupported feature;
    /// the message names it.
    pub fn open(dir: &Path, options: &RerankOptions) -> Result<Self> {
        let folder = RerankFolder::read(dir)?;
        let RerankFolder { name, config, activation, max_tokens, .. } = &folder;
        let tokenizer =
            std::fs::read(&folder.tokenizer).map_err(|why| error::file(&folder.tokenizer, why))?;
        let weights = WeightsFile::open(&folder.weights)?;
        let tensors = weights.tensors()?;
        let (head, head_id) = load_head(&folder, &tensors)?;
        let precision = match options.precision {
            Precision::Float32 => String::new(),
            precision => format!(" {}", precision.name()),
        };
        let settings = format!("{} {head_id} {activation:?} {max_tokens}{precision}", config.for_id());
        let profile = RerankerProfile {
            id: fingerprint(weights.bytes(), &tokenizer, &settings),
            name: name.clone(),
            candidates: options.candidates.max(1),
        };
        let types = config.positions == Positions::FromZero && config.token_types > 1;
        let tokenizer = PairTokenizer::load(&folder.tokenizer, &tokenizer, *max_tokens, types)?;
        let encoder = Encoder::load(config, *max_tokens, &tensors, options.precision.into())?;
        let model = Model { tokenizer, encoder, hidden: config.hidden, head };
        let trial = model.tokenizer.text(error::TRIAL);
        let trial = trial.and_then(|text| model.encode(&[&model.tokenizer.pair(&text, &text)]));
        trial.map_err(|why| error::trial(dir, &why))?;
        tracing::debug!(id = profile.id, name = profile.name, "reranker opened");
        let lane = Lane::new("rerank", String::new(), options.threads);
        Ok(Self { profile, lane, model: Arc::new(model) })
    }
}

/// The head and its part of the model's id.
fn load_head(folder: &RerankFolder, tensors: &Tensors<'_>) -> Result<(Head, String)> {
    let RerankFolder { config, activation, .. } = folder;
    match &folder.head {
        HeadSource::Classifier(kind) => {
            Ok((Head::load(config, *kind, *activation, tensors)?, format!("{kind:?}")))
        }
        HeadSource::Modules(modules) => {
            let steps = modules.load_steps(config.hidden, "scores")?;
            if steps.width != 1 {
                return Err(error::config(format_args!(
                    "modules with {} results are not a reranker, which has one",
                    steps.width
                )));
            }
            let id = format!("{:?}{}", modules.pooling, steps.id);
            Ok((Head::of_modules(modules.pooling, steps, *activation), id))
        }
    }
}

#[async_trait]
impl Reranker for LocalReranker {
    fn profile(&self) -> &RerankerProfile {
        &self.profile
    }

    async fn rerank(&self, query: &str, passages: &[String]) -> Result<Vec<f32>> {
        let (query, passages, model) = (query.to_owned(), passages.to_vec(), Arc::clone(&self.model));
        let pairs = move || {
            let query = model.tokenizer.text(&query)?;
            let pair = |passage: &String| Ok(model.tokenizer.pair(&query, &model.tokenizer.text(passage)?));
            passages.iter().map(pair).collect::<Result<Vec<_>>>()
        };
        let pairs = self.lane.run(pairs).await?;
        let scores = self.lane.encode(&self.model, pairs).await?;
        Ok(scores.into_iter().flatten().collect())
    }
}
