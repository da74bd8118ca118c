use lkr_settings::{MASK, ModelEntry, OcrChoice, PerModel, PluginChoice, Provider, RuntimeSettings};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::settings_input::StrategyInput;

/// The settings that can be changed while the service runs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SettingsItem {
    /// The models by purpose.
    models: ModelsItem,
    /// The parser plugins by file format.
    parsers: ParsersItem,
    /// How duplicates are detected.
    dedup: DedupItem,
}

/// The models by purpose.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelsItem {
    /// The embedding model.
    embed: ModelItem,
    /// The language model that writes summaries.
    summarize: ModelItem,
    /// The language model that classifies documents.
    classify: ModelItem,
    /// The reranker.
    rerank: ModelItem,
}

/// A model.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelItem {
    /// local_llm or remote_compatible; null for none. For embed, null selects the model in this process.
    #[schema(required, pattern = "^(local_llm|remote_compatible)$")]
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
    /// The parser of PDF files.
    pdf: PluginItem,
    /// The parser of DOCX files.
    docx: PluginItem,
    /// The parser of HTML files.
    html: PluginItem,
    /// The reader of pictures of text.
    ocr: OcrItem,
}

/// A selected plugin.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PluginItem {
    /// The name of the plugin.
    plugin: String,
}

/// The selected OCR plugin.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OcrItem {
    /// The name of the plugin; none switches OCR off.
    plugin: String,
    /// The languages to recognise, as ISO 639-1 codes.
    languages: Vec<String>,
}

/// How duplicates are detected.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DedupItem {
    /// none, sha256 or simhash
    #[schema(value_type = StrategyInput)]
    strategy: &'static str,
    /// How many of the 64 fingerprint bits may differ between duplicates: 0 to 64.
    #[schema(maximum = 64)]
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
    /// Whether the model answered.
    pub(crate) ok: bool,
    /// How long the call took, in milliseconds.
    pub(crate) latency_ms: u64,
    /// What the model did, or why the call failed.
    pub(crate) detail: String,
}

/// The allowed values of settings.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SettingsSchema {
    /// The kinds of providers.
    pub(crate) llm_providers: Vec<&'static str>,
    /// The parsers of PDF files.
    pub(crate) pdf_plugins: Vec<String>,
    /// The parsers of DOCX files.
    pub(crate) docx_plugins: Vec<String>,
    /// The parsers of HTML files.
    pub(crate) html_plugins: Vec<String>,
    /// The readers of pictures of text.
    pub(crate) ocr_plugins: Vec<String>,
    /// The strategies of dedup.
    pub(crate) dedup_strategies: Vec<&'static str>,
    /// The JSON Schema of the settings, with defaults.
    #[schema(value_type = Object)]
    pub(crate) schema: Value,
}
