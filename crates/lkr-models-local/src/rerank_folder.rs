//! Reads the JSON files of a cross-encoder folder.

use std::path::{Path, PathBuf};

use lkr_models::Result;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::config::{ModelConfig, RawConfig};
use crate::error;
use crate::folder::{RawModule, SentenceConfig, max_tokens, name_of, optional, required};
use crate::head::{HeadKind, OutputActivation};

/// The validated contents of the JSON files of a folder.
#[derive(Debug)]
pub(crate) struct RerankFolder {
    pub(crate) name: String,
    pub(crate) config: ModelConfig,
    pub(crate) head: HeadKind,
    pub(crate) activation: OutputActivation,
    /// The longest pair in tokens, including special ones.
    pub(crate) max_tokens: usize,
    pub(crate) tokenizer: PathBuf,
    pub(crate) weights: PathBuf,
}

impl RerankFolder {
    pub(crate) fn read(dir: &Path) -> Result<Self> {
        let transformer = transformer(dir)?;
        let path = transformer.join("config.json");
        let (raw, labels): (RawConfig, RawLabels) = (required(&path)?, required(&path)?);
        let config = ModelConfig::try_from(raw)?;
        let sentence_config: RerankerConfig =
            optional(&dir.join("config_sentence_transformers.json"))?.unwrap_or_default();
        if let Some(name) = &sentence_config.default_prompt_name {
            return Err(error::config(format_args!("default_prompt_name {name} is not supported")));
        }
        Ok(Self {
            name: name_of(dir),
            head: labels.head()?,
            activation: output_activation(
                sentence_config.activation_fn.as_deref().or_else(|| labels.activation_fn()),
            )?,
            max_tokens: max_tokens(&transformer, &SentenceConfig::read(&transformer)?, &config)?,
            tokenizer: transformer.join("tokenizer.json"),
            weights: transformer.join("model.safetensors"),
            config,
        })
    }
}

/// The folder of the transformer: the folder itself, unless `modules.json` names another as its only module.
fn transformer(dir: &Path) -> Result<PathBuf> {
    let path = dir.join("modules.json");
    let Some(modules): Option<Vec<RawModule>> = optional(&path)? else { return Ok(dir.to_owned()) };
    match modules.as_slice() {
        [module] if module.name() == "Transformer" => Ok(dir.join(&module.path)),
        modules => {
            let classes: Vec<&str> = modules.iter().map(RawModule::name).collect();
            Err(error::file(
                &path,
                format_args!("modules {classes:?} are not a reranker, which has one Transformer"),
            ))
        }
    }
}

/// sentence-transformers' own settings of a cross-encoder.
#[derive(Deserialize, Default)]
struct RerankerConfig {
    activation_fn: Option<String>,
    default_prompt_name: Option<String>,
}

/// The settings of the head in config.json.
#[derive(Deserialize)]
struct RawLabels {
    #[serde(default)]
    architectures: Vec<String>,
    model_type: String,
    id2label: Option<Map<String, Value>>,
    num_labels: Option<usize>,
    #[serde(default)]
    sentence_transformers: RawActivation,
    /// The location before version 4.
    sbert_ce_default_activation_function: Option<String>,
}

#[derive(Deserialize, Default)]
struct RawActivation {
    activation_fn: Option<String>,
}

impl RawLabels {
    fn head(&self) -> Result<HeadKind> {
        if let Some(other) =
            self.architectures.iter().find(|name| !name.ends_with("ForSequenceClassification"))
        {
            return Err(error::config(format_args!("architecture {other} is not a reranker")));
        }
        // Two labels are the default, which is not written.
        let labels = self.id2label.as_ref().map(Map::len).or(self.num_labels).unwrap_or(2);
        if labels != 1 {
            return Err(error::config(format_args!(
                "a model with {labels} labels is not a reranker, which has one"
            )));
        }
        Ok(if self.model_type == "bert" { HeadKind::Pooler } else { HeadKind::Dense })
    }

    fn activation_fn(&self) -> Option<&str> {
        let newer = self.sentence_transformers.activation_fn.as_ref();
        newer.or(self.sbert_ce_default_activation_function.as_ref()).map(String::as_str)
    }
}

/// The function of the raw score: a probability if the folder does not specify one, as in the reference.
fn output_activation(stated: Option<&str>) -> Result<OutputActivation> {
    // Only the class's name is stable.
    match stated.map(|stated| stated.rsplit('.').next().unwrap_or_default()) {
        None | Some("Sigmoid") => Ok(OutputActivation::Sigmoid),
        Some("Identity") => Ok(OutputActivation::Identity),
        Some(other) => Err(error::config(format_args!("activation_fn {other} is not supported"))),
    }
}
