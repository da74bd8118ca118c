use lkr_settings::{
    DedupStrategy, KeyChange, MASK, ModelEntryChange, OcrChange, ParsersChange, PerModel, PluginChange,
    Provider, SettingsChange,
};
use serde::{Deserialize, Deserializer};
use utoipa::ToSchema;

use crate::http::{Secret, object};

/// What to change of the settings; what is left out or null stays, at every depth.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SettingsInput {
    #[serde(default, deserialize_with = "object")]
    models: Option<ModelsInput>,
    #[serde(default, deserialize_with = "object")]
    parsers: Option<ParsersInput>,
    #[serde(default, deserialize_with = "object")]
    dedup: Option<DedupInput>,
}

/// What to change of the models.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelsInput {
    #[serde(default, deserialize_with = "object")]
    embed: Option<ModelInput>,
    #[serde(default, deserialize_with = "object")]
    summarize: Option<ModelInput>,
    #[serde(default, deserialize_with = "object")]
    classify: Option<ModelInput>,
    #[serde(default, deserialize_with = "object")]
    rerank: Option<ModelInput>,
}

/// What to change of a model.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelInput {
    /// Who serves it. Null keeps what is there; none switches it off.
    provider: Option<ProviderInput>,
    /// At most 200 characters.
    model: Option<String>,
    /// http or https, a host, no user, query or fragment; another one than before clears the stored key.
    base_url: Option<String>,
    /// A key to store; the asterisks of an answer keep the stored one, null clears it.
    #[serde(default, deserialize_with = "key_change")]
    #[schema(value_type = Option<String>, format = Password)]
    api_key: KeyChange,
    /// 1 to 600.
    #[schema(minimum = 1, maximum = 600)]
    timeout_s: Option<u32>,
    /// 1,000 to 1,000,000.
    #[schema(minimum = 1_000, maximum = 1_000_000)]
    context_tokens: Option<u32>,
}

/// Who serves a model.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ProviderInput {
    None,
    LocalLlm,
    RemoteCompatible,
}

/// What to change of the plugins.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ParsersInput {
    #[serde(default, deserialize_with = "object")]
    pdf: Option<PluginInput>,
    #[serde(default, deserialize_with = "object")]
    docx: Option<PluginInput>,
    #[serde(default, deserialize_with = "object")]
    html: Option<PluginInput>,
    #[serde(default, deserialize_with = "object")]
    ocr: Option<OcrInput>,
}

/// The choice of a plugin.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PluginInput {
    /// One of those in GET /settings/schema.
    plugin: Option<String>,
}

/// The choice of a plugin that reads pictures.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OcrInput {
    /// One of those in GET /settings/schema.
    plugin: Option<String>,
    /// 1 to 10 of ISO 639-1, in place of those before.
    languages: Option<Vec<String>>,
}

/// What to change of how duplicates are told.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DedupInput {
    strategy: Option<StrategyInput>,
    /// How many of 64 bits may differ: 0 to 64.
    #[schema(maximum = 64)]
    simhash_threshold: Option<u8>,
}

/// How duplicates are told.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StrategyInput {
    None,
    Sha256,
    Simhash,
}

impl SettingsInput {
    /// Whether it has no key but null ones.
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

/// The asterisks keep a key, null clears it, any other text is a new one.
fn key_change<'de, D: Deserializer<'de>>(deserializer: D) -> Result<KeyChange, D::Error> {
    let key = Option::<Secret>::deserialize(deserializer)?;
    Ok(match key {
        None => KeyChange::Clear,
        Some(Secret(text)) if text == MASK => KeyChange::Keep,
        Some(Secret(text)) => KeyChange::Set(text.into()),
    })
}

/// A model's entry to be tried out: exactly one.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SettingsTest {
    /// Over the stored entry of that name.
    models: ModelsInput,
}

impl SettingsTest {
    /// The one entry and its name; `None` where there is none, or more.
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
    fn keys_are_kept_cleared_and_set() {
        assert_eq!(entry("{}").api_key, KeyChange::Keep);
        assert_eq!(entry(r#"{"api_key": "********"}"#).api_key, KeyChange::Keep);
        assert_eq!(entry(r#"{"api_key": null}"#).api_key, KeyChange::Clear);
        assert_eq!(entry(r#"{"api_key": "sk-1"}"#).api_key, KeyChange::Set("sk-1".into()));
        let wrong = serde_json::from_str::<ModelInput>(r#"{"api_key": 4711}"#).unwrap_err().to_string();
        assert!(!wrong.contains("4711"), "{wrong}");
    }

    #[test]
    fn null_keeps_a_provider_and_none_switches_it_off() {
        assert_eq!(entry(r#"{"provider": null}"#).provider, None);
        assert_eq!(entry(r#"{"provider": "none"}"#).provider, Some(None));
        assert_eq!(entry(r#"{"provider": "local_llm"}"#).provider, Some(Some(Provider::LocalLlm)));
        assert!(serde_json::from_str::<ModelInput>(r#"{"provider": "openai"}"#).is_err());
    }

    #[test]
    fn one_entry_is_tried_at_a_time() {
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
