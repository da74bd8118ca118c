use crate::{DedupStrategy, PerModel, Provider, Secret, plugins::ParserKind};

/// A change of some settings. A field that is `None` keeps its value, at every depth.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettingsChange {
    /// Changes of models.
    pub models: Option<ModelsChange>,
    /// Changes of parser plugins.
    pub parsers: Option<ParsersChange>,
    /// Changes of how duplicates are found.
    pub dedup: Option<DedupChange>,
}

/// A change of some model entries.
pub type ModelsChange = PerModel<Option<ModelEntryChange>>;

/// A change of one model entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelEntryChange {
    /// The kind of its provider; `Some(None)` switches the entry off.
    pub provider: Option<Option<Provider>>,
    /// Its name at the provider.
    pub model: Option<String>,
    /// The provider's address. A different address clears the stored key, unless the same change sets one.
    pub base_url: Option<String>,
    /// The change of the key.
    pub api_key: KeyChange,
    /// How long one call may take, in seconds.
    pub timeout_s: Option<u32>,
    /// The context length of a language model, in tokens.
    pub context_tokens: Option<u32>,
}

/// The change of a stored key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum KeyChange {
    /// The key stays, unless `base_url` changes.
    #[default]
    Keep,
    /// The key is removed.
    Clear,
    /// The key is replaced.
    Set(Secret),
}

/// A change of some parser plugins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParsersChange {
    /// For PDF files.
    pub pdf: Option<PluginChange>,
    /// For DOCX files.
    pub docx: Option<PluginChange>,
    /// For HTML files.
    pub html: Option<PluginChange>,
    /// For OCR of images.
    pub ocr: Option<OcrChange>,
}

/// A change of the plugin for one kind of file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PluginChange {
    /// Its name.
    pub plugin: Option<String>,
}

/// A change of the plugin for OCR of images.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OcrChange {
    /// Its name.
    pub plugin: Option<String>,
    /// The complete new list of languages that it recognises.
    pub languages: Option<Vec<String>>,
}

/// A change of how duplicates are found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DedupChange {
    /// How two texts are compared.
    pub strategy: Option<DedupStrategy>,
    /// In how many bits the SimHashes of two duplicates may differ at most.
    pub simhash_threshold: Option<u8>,
}

/// The change of one parser kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ParserChange<'a> {
    pub(crate) kind: ParserKind,
    pub(crate) plugin: Option<&'a str>,
    pub(crate) languages: Option<&'a [String]>,
}

impl SettingsChange {
    /// Whether the change contains no value at any depth.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.paths().is_empty()
    }

    /// The dotted paths of the changed values, such as `models.summarize.api_key`. The values are not included.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        let models = self.models().flat_map(|(name, entry)| entry.paths(&format!("models.{name}")));
        let parsers = self.parsers().flat_map(ParserChange::paths);
        let dedup = self.dedup.iter().flat_map(DedupChange::paths);
        models.chain(parsers).chain(dedup).collect()
    }

    pub(crate) fn models(&self) -> impl Iterator<Item = (&'static str, &ModelEntryChange)> {
        let entries = self.models.iter().flat_map(PerModel::named);
        entries.filter_map(|(name, entry)| Some((name, entry.as_ref()?)))
    }

    pub(crate) fn parsers(&self) -> impl Iterator<Item = ParserChange<'_>> {
        self.parsers.iter().flat_map(ParsersChange::by_kind)
    }
}

impl ModelEntryChange {
    fn paths(&self, entry: &str) -> Vec<String> {
        paths_below(
            entry,
            &[
                ("provider", self.provider.is_some()),
                ("model", self.model.is_some()),
                ("base_url", self.base_url.is_some()),
                ("api_key", self.api_key != KeyChange::Keep),
                ("timeout_s", self.timeout_s.is_some()),
                ("context_tokens", self.context_tokens.is_some()),
            ],
        )
    }
}

impl ParsersChange {
    fn by_kind(&self) -> [ParserChange<'_>; 4] {
        [
            ParserChange::for_file(ParserKind::Pdf, self.pdf.as_ref()),
            ParserChange::for_file(ParserKind::Docx, self.docx.as_ref()),
            ParserChange::for_file(ParserKind::Html, self.html.as_ref()),
            ParserChange {
                kind: ParserKind::Ocr,
                plugin: self.ocr.as_ref().and_then(|ocr| ocr.plugin.as_deref()),
                languages: self.ocr.as_ref().and_then(|ocr| ocr.languages.as_deref()),
            },
        ]
    }
}

impl<'a> ParserChange<'a> {
    fn for_file(kind: ParserKind, change: Option<&'a PluginChange>) -> Self {
        Self { kind, plugin: change.and_then(|change| change.plugin.as_deref()), languages: None }
    }

    fn paths(self) -> Vec<String> {
        let values = [("plugin", self.plugin.is_some()), ("languages", self.languages.is_some())];
        paths_below(&format!("parsers.{}", self.kind.name()), &values)
    }
}

impl DedupChange {
    fn paths(&self) -> Vec<String> {
        let values =
            [("strategy", self.strategy.is_some()), ("simhash_threshold", self.simhash_threshold.is_some())];
        paths_below("dedup", &values)
    }
}

/// The paths of the values below `parent` that are set.
fn paths_below(parent: &str, values: &[(&str, bool)]) -> Vec<String> {
    values.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| format!("{parent}.{name}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_without_values_is_empty_at_every_depth() {
        let nested = SettingsChange {
            models: Some(ModelsChange {
                embed: Some(ModelEntryChange::default()),
                ..ModelsChange::default()
            }),
            parsers: Some(ParsersChange { ocr: Some(OcrChange::default()), ..ParsersChange::default() }),
            dedup: Some(DedupChange::default()),
        };
        assert!(SettingsChange::default().is_empty() && nested.is_empty());
        assert_eq!(nested.paths(), Vec::<String>::new());
    }

    #[test]
    fn paths_list_every_changed_value_and_no_secret() {
        let entry = ModelEntryChange {
            provider: Some(None),
            model: Some("m".to_owned()),
            base_url: Some("http://h".to_owned()),
            api_key: KeyChange::Set(Secret::new("sk-planted")),
            timeout_s: Some(1),
            context_tokens: Some(1_000),
        };
        let clear = ModelEntryChange { api_key: KeyChange::Clear, ..ModelEntryChange::default() };
        let plugin = Some(PluginChange { plugin: Some("p".to_owned()) });
        let change = SettingsChange {
            models: Some(ModelsChange { summarize: Some(entry), rerank: Some(clear), ..Default::default() }),
            parsers: Some(ParsersChange {
                pdf: plugin.clone(),
                docx: plugin.clone(),
                html: plugin,
                ocr: Some(OcrChange { plugin: Some("none".to_owned()), languages: Some(vec![]) }),
            }),
            dedup: Some(DedupChange { strategy: Some(DedupStrategy::None), simhash_threshold: Some(0) }),
        };
        assert!(!change.is_empty());
        let expected = "models.summarize.provider models.summarize.model models.summarize.base_url \
            models.summarize.api_key models.summarize.timeout_s models.summarize.context_tokens models.rerank.api_key parsers.pdf.plugin \
            parsers.docx.plugin parsers.html.plugin parsers.ocr.plugin parsers.ocr.languages dedup.strategy \
            dedup.simhash_threshold";
        assert_eq!(change.paths().join(" "), expected);
        assert!(!format!("{change:?}").contains("planted"));
    }
}
