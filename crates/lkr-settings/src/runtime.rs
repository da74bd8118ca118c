use serde::{Deserialize, Serialize};

use crate::{Error, ErrorKind, Result, Secret};

/// The settings that can be changed while the service runs, as they are in force: stored values over the defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimeSettings {
    /// The model of each purpose.
    pub models: Models,
    /// The parser plugin of each kind of file.
    pub parsers: Parsers,
    /// How duplicates are found.
    pub dedup: Dedup,
}

/// One value for each model entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PerModel<T> {
    /// For the embedding model.
    pub embed: T,
    /// For the model that writes summaries.
    pub summarize: T,
    /// For the model that classifies documents.
    pub classify: T,
    /// For the reranking model.
    pub rerank: T,
}

/// The model entries.
pub type Models = PerModel<ModelEntry>;

/// One model: its provider, and how to reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelEntry {
    /// The kind of its provider; none by default.
    pub provider: Option<Provider>,
    /// Its name at the provider, at most 200 characters.
    pub model: String,
    /// The provider's address: empty, or an HTTP address without user info, query and fragment.
    pub base_url: String,
    /// The key that is sent to the provider.
    pub api_key: ApiKey,
    /// How long one call may take, in seconds: 1 to 600.
    pub timeout_s: u32,
    /// The context length of a language model in tokens, its output included: 1,000 to 1,000,000.
    pub context_tokens: u32,
}

/// The key of a model entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ApiKey {
    /// No key is stored.
    #[default]
    None,
    /// The stored key.
    Set(Secret),
    /// A key is stored that was sealed with another secret key. It stays stored until it is replaced or cleared.
    Unreadable,
}

/// The kind of a model provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Provider {
    /// A model server that the operator runs.
    LocalLlm,
    /// A third party's server with the same protocol.
    RemoteCompatible,
}

/// The parser plugins in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsers {
    /// For PDF files.
    pub pdf: PluginChoice,
    /// For DOCX files.
    pub docx: PluginChoice,
    /// For HTML files.
    pub html: PluginChoice,
    /// For OCR of images.
    pub ocr: OcrChoice,
}

/// The plugin for one kind of file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginChoice {
    /// Its name, one of the built-in plugins.
    pub plugin: String,
}

/// The plugin for OCR of images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OcrChoice {
    /// Its name, one of the built-in plugins; `none` by default.
    pub plugin: String,
    /// The languages that it recognises: 1 to 10 codes of ISO 639-1.
    pub languages: Vec<String>,
}

/// How duplicates are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dedup {
    /// How two texts are compared.
    pub strategy: DedupStrategy,
    /// In how many of 64 bits the SimHashes of two duplicates may differ at most: 0 to 64.
    pub simhash_threshold: u8,
}

/// How two texts are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DedupStrategy {
    /// Duplicates are not detected.
    None,
    /// Texts with equal SHA-256 are duplicates.
    Sha256,
    /// Texts with near SimHashes are duplicates.
    Simhash,
}

impl<T> PerModel<T> {
    /// The names of the entries.
    pub const NAMES: [&str; 4] = ["embed", "summarize", "classify", "rerank"];

    /// The value of the entry with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&T> {
        self.named().into_iter().find_map(|(entry, value)| (entry == name).then_some(value))
    }

    /// The values with their entries' names.
    pub fn named(&self) -> [(&'static str, &T); 4] {
        [
            ("embed", &self.embed),
            ("summarize", &self.summarize),
            ("classify", &self.classify),
            ("rerank", &self.rerank),
        ]
    }

    pub(crate) fn from_names(mut value: impl FnMut(&'static str) -> T) -> Self {
        Self {
            embed: value("embed"),
            summarize: value("summarize"),
            classify: value("classify"),
            rerank: value("rerank"),
        }
    }
}

impl ApiKey {
    /// Whether a key is stored, readable or not. Responses then show the mask.
    #[must_use]
    pub const fn is_stored(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// The key to use.
    ///
    /// # Errors
    /// `Corrupt` if a key is stored that cannot be opened.
    pub fn secret(&self) -> Result<Option<&Secret>> {
        match self {
            Self::None => Ok(None),
            Self::Set(secret) => Ok(Some(secret)),
            Self::Unreadable => Err(Error::new(
                ErrorKind::Corrupt,
                "open stored api key",
                "it was sealed with another secret key; set it again",
            )),
        }
    }
}

impl Provider {
    /// All variants.
    pub const ALL: [Self; 2] = [Self::LocalLlm, Self::RemoteCompatible];

    /// Its name in the API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LocalLlm => "local_llm",
            Self::RemoteCompatible => "remote_compatible",
        }
    }
}

impl DedupStrategy {
    /// All variants.
    pub const ALL: [Self; 3] = [Self::None, Self::Sha256, Self::Simhash];

    /// Its name in the API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Sha256 => "sha256",
            Self::Simhash => "simhash",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_equal_the_serialized_values() {
        for provider in Provider::ALL {
            assert_eq!(serde_json::to_value(provider).unwrap(), provider.name());
        }
        for strategy in DedupStrategy::ALL {
            assert_eq!(serde_json::to_value(strategy).unwrap(), strategy.name());
        }
    }

    #[test]
    fn get_by_name_returns_the_entry_or_none() {
        let names = PerModel::from_names(str::to_owned);
        for name in PerModel::<String>::NAMES {
            assert_eq!(names.get(name).map(String::as_str), Some(name));
        }
        assert_eq!(names.named().map(|(name, _)| name), PerModel::<String>::NAMES);
        assert_eq!(names.get("Embed"), None);
    }

    #[test]
    fn secret_of_an_unreadable_key_is_an_error() {
        assert_eq!(ApiKey::None.secret().unwrap(), None);
        let set = ApiKey::Set(Secret::new("sk-planted"));
        assert_eq!(set.secret().unwrap().map(Secret::expose), Some("sk-planted"));
        assert_eq!(format!("{set:?}"), "Set(********)");
        assert_eq!(ApiKey::Unreadable.secret().unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!([ApiKey::None, set, ApiKey::Unreadable].map(|key| key.is_stored()), [false, true, true]);
    }
}
