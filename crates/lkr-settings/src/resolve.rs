//! The settings in force: stored values over the defaults.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use crate::{
    ApiKey, Dedup, DedupStrategy, ModelEntry, OcrChoice, Parsers, PerModel, PluginChoice, Plugins,
    RuntimeSettings, SealingKey,
    plugins::ParserKind,
    records::{ModelV1, SettingsV1, key_place},
};

/// The default timeout of a model call, in seconds. Chosen, not measured.
const TIMEOUT_S: u32 = 60;

/// The default context length of a language model, in tokens. Chosen, not measured.
const CONTEXT_TOKENS: u32 = 8_192;

/// The default number of bits in which near duplicates may differ. See docs/studies.md#near-duplicates.
const SIMHASH_THRESHOLD: u8 = 3;

/// The default language of OCR.
const LANGUAGE: &str = "en";

/// The path of the OCR languages.
const LANGUAGES: &str = "parsers.ocr.languages";

/// Computes settings from stored records.
#[derive(Debug)]
pub(crate) struct Resolver {
    pub(crate) sealing: SealingKey,
    pub(crate) plugins: Plugins,
    /// The paths that were warned about. Records are read often, so each path is logged once.
    warned: Mutex<BTreeSet<String>>,
}

impl Resolver {
    pub(crate) fn new(sealing: SealingKey, plugins: Plugins) -> Self {
        Self { sealing, plugins, warned: Mutex::default() }
    }

    pub(crate) fn settings(&self, stored: &SettingsV1) -> RuntimeSettings {
        let unset = ModelV1::default();
        RuntimeSettings {
            models: PerModel::from_names(|name| self.model(name, stored.models.get(name).unwrap_or(&unset))),
            parsers: self.parsers(stored),
            dedup: Dedup {
                strategy: stored.dedup.strategy.unwrap_or(DedupStrategy::Sha256),
                simhash_threshold: stored.dedup.simhash_threshold.unwrap_or(SIMHASH_THRESHOLD),
            },
        }
    }

    pub(crate) fn model(&self, name: &str, stored: &ModelV1) -> ModelEntry {
        ModelEntry {
            provider: stored.provider,
            model: stored.model.clone().unwrap_or_default(),
            base_url: stored.base_url.clone().unwrap_or_default(),
            api_key: stored.api_key.as_deref().map_or(ApiKey::None, |sealed| self.api_key(name, sealed)),
            timeout_s: stored.timeout_s.unwrap_or(TIMEOUT_S),
            context_tokens: stored.context_tokens.unwrap_or(CONTEXT_TOKENS),
        }
    }

    fn api_key(&self, name: &str, sealed: &str) -> ApiKey {
        let place = key_place(name);
        self.sealing.open(sealed, &place).map_or_else(
            || {
                if self.is_first_warning(&place) {
                    tracing::warn!(
                        setting = place,
                        "stored API key was sealed with another secret key; it counts as unreadable until it is set again"
                    );
                }
                ApiKey::Unreadable
            },
            ApiKey::Set,
        )
    }

    fn parsers(&self, stored: &SettingsV1) -> Parsers {
        let choice = |kind| PluginChoice { plugin: self.plugin(kind, stored) };
        let ocr = self.ocr(stored);
        let missing = self.plugins.missing_languages(&ocr);
        if !missing.is_empty() && self.is_first_warning(LANGUAGES) {
            tracing::warn!(
                setting = LANGUAGES,
                missing = missing.join(", "),
                "OCR languages are not installed; text in these languages is not recognised"
            );
        }
        Parsers {
            pdf: choice(ParserKind::Pdf),
            docx: choice(ParserKind::Docx),
            html: choice(ParserKind::Html),
            ocr,
        }
    }

    pub(crate) fn ocr(&self, stored: &SettingsV1) -> OcrChoice {
        let languages = stored.parsers.get(ParserKind::Ocr.name()).and_then(|ocr| ocr.languages.clone());
        OcrChoice {
            plugin: self.plugin(ParserKind::Ocr, stored),
            languages: languages.unwrap_or_else(|| vec![LANGUAGE.to_owned()]),
        }
    }

    /// The stored plugin if it is built in, else the default. A plugin that is not built in stays stored.
    fn plugin(&self, kind: ParserKind, stored: &SettingsV1) -> String {
        let default = self.plugins.default_for(kind);
        let Some(stored_plugin) = stored.parsers.get(kind.name()).and_then(|parser| parser.plugin.as_ref())
        else {
            return default.to_owned();
        };
        if self.plugins.for_kind(kind).contains(stored_plugin) {
            return stored_plugin.clone();
        }
        let path = format!("parsers.{}.plugin", kind.name());
        if self.is_first_warning(&path) {
            tracing::warn!(
                setting = path,
                plugin = stored_plugin,
                default,
                "stored parser plugin is not built in; using the default"
            );
        }
        default.to_owned()
    }

    fn is_first_warning(&self, path: &str) -> bool {
        self.warned.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned())
    }
}
