//! Reads the JSON files of a sentence-transformers folder.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use lkr_models::Result;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::config::ModelConfig;
use crate::error;
use crate::modules::Modules;

/// The validated contents of the JSON files of a folder.
#[derive(Debug)]
pub(crate) struct ModelFolder {
    pub(crate) name: String,
    pub(crate) config: ModelConfig,
    pub(crate) modules: Modules,
    /// The longest input in tokens, including special ones.
    pub(crate) max_tokens: usize,
    /// Whether texts are lower-cased before tokenization.
    pub(crate) lower_case: bool,
    pub(crate) query_prefix: String,
    pub(crate) passage_prefix: String,
    /// The numbers of a vector that are kept; without it all.
    pub(crate) truncate_dim: Option<usize>,
    pub(crate) tokenizer: PathBuf,
    pub(crate) weights: PathBuf,
}

impl ModelFolder {
    pub(crate) fn read(dir: &Path) -> Result<Self> {
        if !dir.is_dir() {
            return Err(error::file(dir, "there is no such folder"));
        }
        let modules = Modules::read(dir)?;
        let transformer = &modules.transformer;
        let config = ModelConfig::read(&transformer.join("config.json"))?;
        let sentence = SentenceConfig::read(transformer)?;
        let settings: Settings =
            optional(&dir.join("config_sentence_transformers.json"))?.unwrap_or_default();
        Ok(Self {
            name: name_of(dir),
            max_tokens: max_tokens(transformer, &sentence, &config)?,
            lower_case: sentence.do_lower_case,
            query_prefix: settings.prefix(&["query"])?,
            passage_prefix: settings.prefix(&["document", "passage", "corpus"])?,
            truncate_dim: settings.truncate_dim,
            tokenizer: transformer.join("tokenizer.json"),
            weights: transformer.join("model.safetensors"),
            config,
            modules,
        })
    }
}

/// sentence_bert_config.json, which once had a different name for each family.
#[derive(Deserialize, Default)]
pub(crate) struct SentenceConfig {
    max_seq_length: Option<usize>,
    #[serde(default)]
    do_lower_case: bool,
}

impl SentenceConfig {
    pub(crate) fn read(transformer: &Path) -> Result<Self> {
        for family in ["bert", "roberta", "distilbert", "xlm-roberta", "camembert"] {
            if let Some(found) = optional(&transformer.join(format!("sentence_{family}_config.json")))? {
                return Ok(found);
            }
        }
        Ok(Self::default())
    }
}

/// The limit of the folder, otherwise of its tokenizer, at most the number of the model's positions.
pub(crate) fn max_tokens(
    transformer: &Path,
    sentence: &SentenceConfig,
    config: &ModelConfig,
) -> Result<usize> {
    let stated = match sentence.max_seq_length {
        Some(stated) => Some(stated),
        None => tokenizer_limit(transformer)?,
    };
    let positions = config.usable_positions();
    Ok(stated.map_or(positions, |stated| stated.min(positions)))
}

/// The limit in the settings of the tokenizer.
fn tokenizer_limit(dir: &Path) -> Result<Option<usize>> {
    /// A huge float if the tokenizer has no limit.
    #[derive(Deserialize)]
    struct TokenizerConfig {
        model_max_length: Option<f64>,
    }
    let tokenizer: Option<TokenizerConfig> = optional(&dir.join("tokenizer_config.json"))?;
    // The cast saturates; larger limits are reduced to the positions anyway.
    Ok(tokenizer.and_then(|tokenizer| tokenizer.model_max_length).map(|length| length as usize))
}

/// config_sentence_transformers.json.
#[derive(Deserialize, Default)]
struct Settings {
    #[serde(default)]
    prompts: BTreeMap<String, Option<String>>,
    default_prompt_name: Option<String>,
    truncate_dim: Option<usize>,
}

impl Settings {
    /// The prompt of the first of `names` that has one, otherwise the default prompt, otherwise nothing.
    fn prefix(&self, names: &[&str]) -> Result<String> {
        let named = names.iter().find_map(|&name| self.prompts.get(name));
        let prompt = match (named, &self.default_prompt_name) {
            (Some(prompt), _) => prompt,
            (None, None) => &None,
            (None, Some(name)) => self.prompts.get(name).ok_or_else(|| {
                error::config(format_args!("default_prompt_name {name} is not one of the prompts"))
            })?,
        };
        Ok(prompt.clone().unwrap_or_default())
    }
}

pub(crate) fn required<T: DeserializeOwned>(path: &Path) -> Result<T> {
    optional(path)?.ok_or_else(|| error::file(path, "the file is missing"))
}

pub(crate) fn optional<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    match fs::read(path) {
        Ok(bytes) => from_json(path, &bytes).map(Some),
        Err(why) if why.kind() == ErrorKind::NotFound => Ok(None),
        Err(why) => Err(error::file(path, why)),
    }
}

/// Errors name the key whose value is wrong.
fn from_json<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|why| error::file(path, why))?;
    json.end().map_err(|why| error::file(path, why))?;
    Ok(value)
}

pub(crate) fn name_of(dir: &Path) -> String {
    let full = fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    full.file_name().map_or_else(|| "local".to_owned(), |name| name.to_string_lossy().into_owned())
}
