use crate::{DedupStrategy, PerModel, Provider, Secret, plugins::ParserKind};

/// A change of some settings. What is `None` keeps what is there, at every depth.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettingsChange {
    /// Of models.
    pub models: Option<ModelsChange>,
    /// Of parser plugins.
    pub parsers: Option<ParsersChange>,
    /// Of how duplicates are found.
    pub dedup: Option<DedupChange>,
}

/// A change of some model entries.
pub type ModelsChange = PerModel<Option<ModelEntryChange>>;

/// A change of one model entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelEntryChange {
    /// Who serves it; `Some(None)` switches it off.
    pub provider: Option<Option<Provider>>,
    /// Its name at the provider.
    pub model: Option<String>,
    /// Where the provider is. Another one than before clears the stored key, unless this change sets one.
    pub base_url: Option<String>,
    /// What becomes of the key.
    pub api_key: KeyChange,
    /// How long one call may take, in seconds.
    pub timeout_s: Option<u32>,
    /// How many tokens a language model takes at a time.
    pub context_tokens: Option<u32>,
}

/// What becomes of a stored key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum KeyChange {
    /// It stays, as long as `base_url` does.
    #[default]
    Keep,
    /// It goes.
    Clear,
    /// This one takes its place.
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
    /// For text in images.
    pub ocr: Option<OcrChange>,
}

/// A change of the plugin for one kind of file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PluginChange {
    /// Its name.
    pub plugin: Option<String>,
}

/// A change of the plugin for text in images.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OcrChange {
    /// Its name.
    pub plugin: Option<String>,
    /// The languages it looks for: all of them, not only new ones.
    pub languages: Option<Vec<String>>,
}

/// A change of how duplicates are found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DedupChange {
    /// By what two texts are the same.
    pub strategy: Option<DedupStrategy>,
    /// Of how many bits simhashes may differ.
    pub simhash_threshold: Option<u8>,
}

/// What a change says of one kind of parser.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ParserChange<'a> {
    pub(crate) kind: ParserKind,
    pub(crate) plugin: Option<&'a str>,
    pub(crate) languages: Option<&'a [String]>,
}

impl SettingsChange {
    /// Whether it names no value at any depth.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.paths().is_empty()
    }

    /// The dotted paths of the values it names, such as `models.summarize.api_key`; never the values.
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
        self.parsers.iter().flat_map(ParsersChange::kinds)
    }
}

impl ModelEntryChange {
    fn paths(&self, entry: &str) -> Vec<String> {
        named(
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
    fn kinds(&self) -> [ParserChange<'_>; 4] {
        [
            ParserChange::of_file(ParserKind::Pdf, self.pdf.as_ref()),
            ParserChange::of_file(ParserKind::Docx, self.docx.as_ref()),
            ParserChange::of_file(ParserKind::Html, self.html.as_ref()),
            ParserChange {
                kind: ParserKind::Ocr,
                plugin: self.ocr.as_ref().and_then(|ocr| ocr.plugin.as_deref()),
                languages: self.ocr.as_ref().and_then(|ocr| ocr.languages.as_deref()),
            },
        ]
    }
}

impl<'a> ParserChange<'a> {
    fn of_file(kind: ParserKind, change: Option<&'a PluginChange>) -> Self {
        Self { kind, plugin: change.and_then(|change| change.plugin.as_deref()), languages: None }
    }

    fn paths(self) -> Vec<String> {
        let values = [("plugin", self.plugin.is_some()), ("languages", self.languages.is_some())];
        named(&format!("parsers.{}", self.kind.name()), &values)
    }
}

impl DedupChange {
    fn paths(&self) -> Vec<String> {
        let values =
            [("strategy", self.strategy.is_some()), ("simhash_threshold", self.simhash_threshold.is_some())];
        named("dedup", &values)
    }
}

/// The paths of the values below `parent` that are there.
fn named(parent: &str, values: &[(&str, bool)]) -> Vec<String> {
    values.iter().filter(|(_, there)| *there).map(|(name, _)| format!("{parent}.{name}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_that_names_nothing_is_empty_at_every_depth() {
        let hollow = SettingsChange {
            models: Some(ModelsChange {
                embed: Some(ModelEntryChange::default()),
                ..ModelsChange::default()
            }),
            parsers: Some(ParsersChange { ocr: Some(OcrChange::default()), ..ParsersChange::default() }),
            dedup: Some(DedupChange::default()),
        };
        assert!(SettingsChange::default().is_empty() && hollow.is_empty());
        assert_eq!(hollow.paths(), Vec::<String>::new());
    }

    #[test]
    fn paths_name_every_value_and_show_none() {
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
