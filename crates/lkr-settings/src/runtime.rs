use serde::{Deserialize, Serialize};

use crate::{Error, ErrorKind, Result, Secret};

/// The settings that can be changed while the service runs, as they count now: defaults and what was set over them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimeSettings {
    /// Which model does what.
    pub models: Models,
    /// Which parser plugin reads which kind of file.
    pub parsers: Parsers,
    /// How duplicates are found.
    pub dedup: Dedup,
}

/// One value for each model entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PerModel<T> {
    /// Of the model that makes vectors.
    pub embed: T,
    /// Of the model that writes summaries.
    pub summarize: T,
    /// Of the model that finds categories.
    pub classify: T,
    /// Of the model that ranks results again.
    pub rerank: T,
}

/// The model entries.
pub type Models = PerModel<ModelEntry>;

/// One model: who serves it, and how it is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelEntry {
    /// Who serves it; none by default.
    pub provider: Option<Provider>,
    /// Its name at the provider, at most 200 characters.
    pub model: String,
    /// Where the provider is: empty, or an HTTP address without user info, query and fragment.
    pub base_url: String,
    /// What the provider is shown.
    pub api_key: ApiKey,
    /// How long one call may take, in seconds: 1 to 600.
    pub timeout_s: u32,
    /// How many tokens a language model takes at a time, those of its answer included: 1,000 to 1,000,000.
    pub context_tokens: u32,
}

/// The key of a model entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ApiKey {
    /// There is none.
    #[default]
    None,
    /// This one.
    Set(Secret),
    /// One is stored that cannot be opened, since another secret key sealed it. It stays until it is set anew or
    /// cleared.
    Unreadable,
}

/// Who serves a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Provider {
    /// A language-model server of one's own.
    LocalLlm,
    /// Somebody else's server that speaks the same protocol.
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
    /// For text in images.
    pub ocr: OcrChoice,
}

/// The plugin for one kind of file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginChoice {
    /// Its name, one of those that are built in.
    pub plugin: String,
}

/// The plugin for text in images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OcrChoice {
    /// Its name, one of those that are built in; `none` by default.
    pub plugin: String,
    /// The languages it looks for: 1 to 10 codes of ISO 639-1.
    pub languages: Vec<String>,
}

/// How duplicates are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dedup {
    /// By what two texts are the same.
    pub strategy: DedupStrategy,
    /// Of how many of 64 bits the simhashes of two texts may differ that count as one: 0 to 64.
    pub simhash_threshold: u8,
}

/// By what two texts are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DedupStrategy {
    /// None is.
    None,
    /// By their SHA-256.
    Sha256,
    /// By simhashes that are close to each other.
    Simhash,
}

impl<T> PerModel<T> {
    /// The names of the entries.
    pub const NAMES: [&str; 4] = ["embed", "summarize", "classify", "rerank"];

    /// The value for the entry of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&T> {
        self.named().into_iter().find_map(|(known, value)| (known == name).then_some(value))
    }

    /// The values with the names of their entries.
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
    /// Whether one is stored, be it readable or not: answers then show the mask.
    #[must_use]
    pub const fn is_stored(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// The key to use.
    ///
    /// # Errors
    /// `Corrupt` where one is stored that cannot be opened.
    pub fn secret(&self) -> Result<Option<&Secret>> {
        match self {
            Self::None => Ok(None),
            Self::Set(secret) => Ok(Some(secret)),
            Self::Unreadable => Err(Error::new(
                ErrorKind::Corrupt,
                "stored api key",
                "cannot be opened with the secret key in force; set it anew",
            )),
        }
    }
}

impl Provider {
    /// All of them.
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
    /// All of them.
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
    fn names_are_those_of_the_records() {
        for provider in Provider::ALL {
            assert_eq!(serde_json::to_value(provider).unwrap(), provider.name());
        }
        for strategy in DedupStrategy::ALL {
            assert_eq!(serde_json::to_value(strategy).unwrap(), strategy.name());
        }
    }

    #[test]
    fn entries_by_name() {
        let names = PerModel::from_names(str::to_owned);
        for name in PerModel::<String>::NAMES {
            assert_eq!(names.get(name).map(String::as_str), Some(name));
        }
        assert_eq!(names.named().map(|(name, _)| name), PerModel::<String>::NAMES);
        assert_eq!(names.get("Embed"), None);
    }

    #[test]
    fn a_key_that_cannot_be_opened_says_so() {
        assert_eq!(ApiKey::None.secret().unwrap(), None);
        let set = ApiKey::Set(Secret::new("sk-planted"));
        assert_eq!(set.secret().unwrap().map(Secret::expose), Some("sk-planted"));
        assert_eq!(format!("{set:?}"), "Set(********)");
        assert_eq!(ApiKey::Unreadable.secret().unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!([ApiKey::None, set, ApiKey::Unreadable].map(|key| key.is_stored()), [false, true, true]);
    }
}
