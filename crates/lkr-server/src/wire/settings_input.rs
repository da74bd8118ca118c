use lkr_settings::{
    DedupStrategy, KeyChange, MASK, ModelEntryChange, OcrChange, ParsersChange, PerModel, PluginChange,
    Provider, SettingsChange,
};
use serde::{Deserialize, Deserializer};
use utoipa::ToSchema;

use super::formats::LanguageCode;
use crate::http::{SecretInput, object, optional_object};

/// A change of the settings. Keys that are absent or null stay as they are, at every level.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SettingsInput {
    /// The models by purpose.
    #[serde(default, deserialize_with = "optional_object")]
    models: Option<ModelsInput>,
    /// The parser plugins by file format.
    #[serde(default, deserialize_with = "optional_object")]
    parsers: Option<ParsersInput>,
    /// How duplicates are detected.
    #[serde(default, deserialize_with = "optional_object")]
    dedup: Option<DedupInput>,
}

/// A change of the models.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelsInput {
    /// The embedding model.
    #[serde(default, deserialize_with = "optional_object")]
    embed: Option<ModelInput>,
    /// The language model that writes summaries.
    #[serde(default, deserialize_with = "optional_object")]
    summarize: Option<ModelInput>,
    /// The language model that classifies documents.
    #[serde(default, deserialize_with = "optional_object")]
    classify: Option<ModelInput>,
    /// The reranker.
    #[serde(default, deserialize_with = "optional_object")]
    rerank: Option<ModelInput>,
}

/// A change of a model.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelInput {
    /// The kind of provider. Null keeps the current one; none switches the model off.
    provider: Option<ProviderInput>,
    /// The provider's name of the model, at most 200 characters.
    #[schema(max_length = 200, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]*$")]
    model: Option<String>,
    /// The URL of the provider: http or https, a host, no user, query or fragment. A change clears the stored key.
    #[schema(max_length = 2048, pattern = "^(https?://[A-Za-z0-9.:_\\[\\]-]+(/[^\\s?#@\\\\]*)?)?$")]
    base_url: Option<String>,
    /// The API key to store. The asterisks of a response keep the stored key; null clears it.
    #[serde(default, deserialize_with = "key_change")]
    #[schema(value_type = Option<String>, format = Password, min_length = 1, max_length = 4096, pattern = "^[\\x21-\\x7e]+$")]
    api_key: KeyChange,
    /// The timeout of a call in seconds, 1 to 600.
    #[schema(minimum = 1, maximum = 600)]
    timeout_s: Option<u32>,
    /// The context length of a language model in tokens, 1,000 to 1,000,000.
    #[schema(minimum = 1_000, maximum = 1_000_000)]
    context_tokens: Option<u32>,
}

/// The kind of provider of a model.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ProviderInput {
    None,
    LocalLlm,
    RemoteCompatible,
}

/// A change of the parser plugins.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ParsersInput {
    /// The parser of PDF files.
    #[serde(default, deserialize_with = "optional_object")]
    pdf: Option<PluginInput>,
    /// The parser of DOCX files.
    #[serde(default, deserialize_with = "optional_object")]
    docx: Option<PluginInput>,
    /// The parser of HTML files.
    #[serde(default, deserialize_with = "optional_object")]
    html: Option<PluginInput>,
    /// The reader of pictures of text.
    #[serde(default, deserialize_with = "optional_object")]
    ocr: Option<OcrInput>,
}

/// A selected plugin.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PluginInput {
    /// A plugin that GET /settings/schema lists.
    plugin: Option<String>,
}

/// The selected OCR plugin.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OcrInput {
    /// A plugin that GET /settings/schema lists.
    plugin: Option<String>,
    /// The languages to recognise: 1 to 10 ISO 639-1 codes, which replace the current ones.
    #[schema(min_items = 1, max_items = 10, value_type = Option<Vec<LanguageCode>>)]
    languages: Option<Vec<String>>,
}

/// A change of how duplicates are detected.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DedupInput {
    /// How duplicates are detected.
    strategy: Option<StrategyInput>,
    /// How many of the 64 fingerprint bits may differ between duplicates: 0 to 64.
    #[schema(maximum = 64)]
    simhash_threshold: Option<u8>,
}

/// How duplicates are detected.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StrategyInput {
    None,
    Sha256,
    Simhash,
}

impl SettingsInput {
    /// Whether every key is absent or null.
    pub(crate) fn is_empty(&self) -> bool {
        self.models.is_none() && self.parsers.is_none() && self.dedup.is_none()
    }
}

impl From<SettingsInput> for SettingsChange {
    fn from(input: SettingsInput) -> Self {
        Self {
            models: input.models.map(PerModel::from),
            parsers: input.parsers.map(ParsersChange::from),
            dedup: input.dedup.map(|dedup| lkr_settings::DedupChange {
                strategy: dedup.strategy.map(DedupStrategy::from),
                simhash_threshold: dedup.simhash_threshold,
            }),
        }
    }
}

impl From<ModelsInput> for PerModel<Option<ModelEntryChange>> {
    fn from(input: ModelsInput) -> Self {
        let ModelsInput { embed, summarize, classify, rerank } = input;
        let entry = |entry: Option<ModelInput>| entry.map(ModelEntryChange::from);
        Self {
            embed: entry(embed),
            summarize: entry(summarize),
            classify: entry(classify),
            rerank: entry(rerank),
        }
    }
}

impl From<ModelInput> for ModelEntryChange {
    fn from(input: ModelInput) -> Self {
        Self {
            provider: input.provider.map(Option::from),
            model: input.model,
            base_url: input.base_url,
            api_key: input.api_key,
            timeout_s: input.timeout_s,
            context_tokens: input.context_tokens,
        }
    }
}

impl From<ProviderInput> for Option<Provider> {
    fn from(provider: ProviderInput) -> Self {
        match provider {
            ProviderInput::None => None,
            ProviderInput::LocalLlm => Some(Provider::LocalLlm),
            ProviderInput::RemoteCompatible => Some(Provider::RemoteCompatible),
        }
    }
}

impl From<ParsersInput> for ParsersChange {
    fn from(input: ParsersInput) -> Self {
        let plugin = |input: Option<PluginInput>| input.map(|input| PluginChange { plugin: input.plugin });
        Self {
            pdf: plugin(input.pdf),
            docx: plugin(input.docx),
            html: plugin(input.html),
            ocr: input.ocr.map(|ocr| OcrChange { plugin: ocr.plugin, languages: ocr.languages }),
        }
    }
}

impl From<StrategyInput> for DedupStrategy {
    fn from(strategy: StrategyInput) -> Self {
        match strategy {
            StrategyInput::None => Self::None,
            StrategyInput::Sha256 => Self::Sha256,
            StrategyInput::Simhash => Self::Simhash,
        }
    }
}

/// The asterisks keep the stored key, null clears it, and any other text replaces it.
fn key_change<'de, D: Deserializer<'de>>(deserializer: D) -> Result<KeyChange, D::Error> {
    let key = Option::<SecretInput>::deserialize(deserializer)?;
    Ok(match key {
        None => KeyChange::Clear,
        Some(SecretInput(text)) if text == MASK => KeyChange::Keep,
        Some(SecretInput(text)) => KeyChange::Set(text.into()),
    })
}

/// A model's entry to test: exactly one.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SettingsTest {
    /// The changes to test, applied to the stored entry.
    #[serde(deserialize_with = "object")]
    models: ModelsInput,
}

impl SettingsTest {
    /// The only entry with its name; `None` if there is none, or more than one.
    pub(crate) fn entry(self) -> Option<(&'static str, ModelEntryChange)> {
        let PerModel { embed, summarize, classify, rerank } = PerModel::from(self.models);
        let named = PerModel::<()>::NAMES.into_iter().zip([embed, summarize, classify, rerank]);
        let mut entries = named.filter_map(|(name, entry)| Some((name, entry?)));
        entries.next().filter(|_| entries.next().is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(input: &str) -> ModelEntryChange {
        serde_json::from_str::<ModelInput>(input).unwrap().into()
    }

    #[test]
    fn api_key_asterisks_keep_null_clears_and_text_replaces() {
        assert_eq!(entry("{}").api_key, KeyChange::Keep);
        assert_eq!(entry(r#"{"api_key": "********"}"#).api_key, KeyChange::Keep);
        assert_eq!(entry(r#"{"api_key": null}"#).api_key, KeyChange::Clear);
        assert_eq!(entry(r#"{"api_key": "sk-1"}"#).api_key, KeyChange::Set("sk-1".into()));
        let wrong = serde_json::from_str::<ModelInput>(r#"{"api_key": 4711}"#).unwrap_err().to_string();
        assert!(!wrong.contains("4711"), "{wrong}");
    }

    #[test]
    fn provider_null_keeps_and_none_switches_off() {
        assert_eq!(entry(r#"{"provider": null}"#).provider, None);
        assert_eq!(entry(r#"{"provider": "none"}"#).provider, Some(None));
        assert_eq!(entry(r#"{"provider": "local_llm"}"#).provider, Some(Some(Provider::LocalLlm)));
        assert!(serde_json::from_str::<ModelInput>(r#"{"provider": "openai"}"#).is_err());
    }

    #[test]
    fn settings_test_without_exactly_one_entry_is_refused() {
        let test = |models: &str| {
            let test: SettingsTest = serde_json::from_str(&format!(r#"{{"models": {models}}}"#)).unwrap();
            test.entry().map(|(name, _)| name)
        };
        assert_eq!(test(r#"{"rerank": {}}"#), Some("rerank"));
        assert_eq!(test(r#"{"embed": {}, "rerank": null}"#), Some("embed"));
        assert_eq!(test("{}"), None);
        assert_eq!(test(r#"{"embed": {}, "rerank": {}}"#), None);
    }
}
