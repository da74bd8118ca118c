use lkr_settings::{MASK, ModelEntry, OcrChoice, PerModel, PluginChoice, Provider, RuntimeSettings};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// The settings that can be changed while the service runs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SettingsItem {
    models: ModelsItem,
    parsers: ParsersItem,
    dedup: DedupItem,
}

/// The models by purpose.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelsItem {
    embed: ModelItem,
    summarize: ModelItem,
    classify: ModelItem,
    rerank: ModelItem,
}

/// A model.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelItem {
    /// local_llm or remote_compatible; null for none. For embed, null selects the model in this process.
    #[schema(required)]
    provider: Option<&'static str>,
    /// The provider's name of the model.
    model: String,
    /// The URL of the provider.
    base_url: String,
    /// Asterisks if a key is stored, else null.
    #[schema(required)]
    api_key: Option<&'static str>,
    /// The timeout of a call, in seconds.
    timeout_s: u32,
    /// The context length of a language model in tokens, including its answer.
    context_tokens: u32,
}

/// The parser plugins by file format.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ParsersItem {
    pdf: PluginItem,
    docx: PluginItem,
    html: PluginItem,
    ocr: OcrItem,
}

/// A selected plugin.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PluginItem {
    plugin: String,
}

/// The selected OCR plugin.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OcrItem {
    plugin: String,
    /// The languages to recognise, as ISO 639-1 codes.
    languages: Vec<String>,
}

/// How duplicates are detected.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DedupItem {
    /// none, sha256 or simhash
    strategy: &'static str,
    /// How many of the 64 fingerprint bits may differ between duplicates: 0 to 64.
    simhash_threshold: u8,
}

impl From<&RuntimeSettings> for SettingsItem {
    fn from(settings: &RuntimeSettings) -> Self {
        let PerModel { embed, summarize, classify, rerank } = &settings.models;
        let plugin = |choice: &PluginChoice| PluginItem { plugin: choice.plugin.clone() };
        let OcrChoice { plugin: ocr, languages } = settings.parsers.ocr.clone();
        Self {
            models: ModelsItem {
                embed: embed.into(),
                summarize: summarize.into(),
                classify: classify.into(),
                rerank: rerank.into(),
            },
            parsers: ParsersItem {
                pdf: plugin(&settings.parsers.pdf),
                docx: plugin(&settings.parsers.docx),
                html: plugin(&settings.parsers.html),
                ocr: OcrItem { plugin: ocr, languages },
            },
            dedup: DedupItem {
                strategy: settings.dedup.strategy.name(),
                simhash_threshold: settings.dedup.simhash_threshold,
            },
        }
    }
}

impl From<&ModelEntry> for ModelItem {
    fn from(entry: &ModelEntry) -> Self {
        Self {
            provider: entry.provider.map(Provider::name),
            model: entry.model.clone(),
            base_url: entry.base_url.clone(),
            api_key: entry.api_key.is_stored().then_some(MASK),
            timeout_s: entry.timeout_s,
            context_tokens: entry.context_tokens,
        }
    }
}

/// The result of testing a model.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SettingsTested {
    pub(crate) ok: bool,
    pub(crate) latency_ms: u64,
    pub(crate) detail: String,
}

/// The allowed values of settings.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SettingsSchema {
    pub(crate) llm_providers: Vec<&'static str>,
    pub(crate) pdf_plugins: Vec<String>,
    pub(crate) docx_plugins: Vec<String>,
    pub(crate) html_plugins: Vec<String>,
    pub(crate) ocr_plugins: Vec<String>,
    pub(crate) dedup_strategies: Vec<&'static str>,
    /// The JSON Schema of the settings, with defaults.
    #[schema(value_type = Object)]
    pub(crate) schema: Value,
}
