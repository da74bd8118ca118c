//! Reads the JSON files of a cross-encoder folder.

use std::path::{Path, PathBuf};

use lkr_models::Result;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::config::{Family, ModelConfig, activation};
use crate::error;
use crate::folder::{SentenceConfig, max_tokens, name_of, optional, required};
use crate::head::{HeadKind, OutputActivation};
use crate::modules::{Layout, Modules};
use crate::pooling::Pooling;

/// The validated contents of the JSON files of a folder.
#[derive(Debug)]
pub(crate) struct RerankFolder {
    pub(crate) name: String,
    pub(crate) config: ModelConfig,
    pub(crate) head: HeadSource,
    pub(crate) activation: OutputActivation,
    /// The longest pair in tokens, including special ones.
    pub(crate) max_tokens: usize,
    pub(crate) tokenizer: PathBuf,
    pub(crate) weights: PathBuf,
}

/// The place of the weights behind the transformer.
#[derive(Debug)]
pub(crate) enum HeadSource {
    /// In the file of the transformer.
    Classifier(HeadKind),
    /// In modules of their own.
    Modules(Modules),
}

impl RerankFolder {
    pub(crate) fn read(dir: &Path) -> Result<Self> {
        let layout = Layout::read(dir)?;
        let transformer = layout.transformer().to_owned();
        let path = transformer.join("config.json");
        let (config, labels): (ModelConfig, RawLabels) = (ModelConfig::read(&path)?, required(&path)?);
        let sentence_config: RerankerConfig =
            optional(&dir.join("config_sentence_transformers.json"))?.unwrap_or_default();
        if let Some(name) = &sentence_config.default_prompt_name {
            return Err(error::config(format_args!("default_prompt_name {name} is not supported")));
        }
        Ok(Self {
            name: name_of(dir),
            head: match layout {
                Layout::Modules(modules) => HeadSource::Modules(modules),
                Layout::Transformer(_) => HeadSource::Classifier(labels.head(&config)?),
            },
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
    // What only ModernBERT has.
    classifier_pooling: Option<String>,
    classifier_activation: Option<String>,
    #[serde(default)]
    classifier_bias: bool,
}

#[derive(Deserialize, Default)]
struct RawActivation {
    activation_fn: Option<String>,
}

impl RawLabels {
    fn head(&self, config: &ModelConfig) -> Result<HeadKind> {
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
        match &config.family {
            Family::Bert if self.model_type == "bert" => Ok(HeadKind::Pooler),
            Family::Bert => Ok(HeadKind::Dense),
            Family::DistilBert => Ok(HeadKind::PreClassifier),
            Family::ModernBert(_) => self.prediction_head(),
        }
    }

    fn prediction_head(&self) -> Result<HeadKind> {
        let pooling = match self.classifier_pooling.as_deref() {
            Some("cls") => Pooling::Cls,
            Some("mean") => Pooling::Mean,
            Some(other) => {
                return Err(error::config(format_args!("classifier_pooling {other} is not supported")));
            }
            None => return Err(error::config("config.json has no classifier_pooling")),
        };
        let name = self.classifier_activation.as_deref().unwrap_or("gelu");
        let activation = activation("classifier_activation", name)?;
        Ok(HeadKind::Prediction { pooling, activation, biased: self.classifier_bias })
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
