//! Random sequences of changes against a reference model: a table of paths and texts.

use std::{collections::BTreeMap, sync::Arc};

use lkr_settings::{
    DedupChange, DedupStrategy, IfMatch, KeyChange, ModelEntryChange, ModelsChange, OcrChange, ParsersChange,
    PluginChange, Provider, RuntimeSettings, Settings, SettingsChange,
};
use lkr_state::{MemoryState, StateStore};
use proptest::{collection::vec, option, prelude::*, sample::select};

use crate::support::open;

type Table = BTreeMap<&'static str, String>;

#[derive(Debug, Clone)]
enum Step {
    Update(Box<SettingsChange>),
    Reset,
    /// The process restarts.
    Reopen,
}

/// Two of the four entries, so that changes meet the same entry more often.
fn models() -> impl Strategy<Value = ModelsChange> {
    (option::of(entry()), option::of(entry())).prop_map(|(embed, rerank)| ModelsChange {
        embed,
        rerank,
        ..Default::default()
    })
}

fn entry() -> impl Strategy<Value = ModelEntryChange> {
    let provider = select(vec![None, Some(Provider::LocalLlm), Some(Provider::RemoteCompatible)]);
    let key = prop_oneof![
        2 => Just(KeyChange::Keep),
        1 => Just(KeyChange::Clear),
        2 => text(&["sk-one", "sk-two"]).prop_map(|key| KeyChange::Set(key.into())),
        1 => Just(KeyChange::Set("not allowed".into())),
    ];
    (
        option::of(provider),
        option::of(text(&["", "m", "n"])),
        option::of(text(&["", "http://a", " http://a ", "https://b/v1", "ftp://no"])),
        key,
        option::of(select(vec![0, 1, 60, 600])),
        option::of(select(vec![999, 1_000, 8_192, 1_000_000])),
    )
        .prop_map(|(provider, model, base_url, api_key, timeout_s, context_tokens)| ModelEntryChange {
            provider,
            model,
            base_url,
            api_key,
            timeout_s,
            context_tokens,
        })
}

fn parsers() -> impl Strategy<Value = ParsersChange> {
    let html = option::of(text(&["html-a", "html-b", "gone"])).prop_map(|plugin| PluginChange { plugin });
    let languages = vec(text(&["en", "de"]), 0..3);
    let ocr = (option::of(text(&["none", "ocr-b"])), option::of(languages))
        .prop_map(|(plugin, languages)| OcrChange { plugin, languages });
    (option::of(html), option::of(ocr)).prop_map(|(html, ocr)| ParsersChange {
        html,
        ocr,
        ..Default::default()
    })
}

fn dedup() -> impl Strategy<Value = DedupChange> {
    (option::of(select(DedupStrategy::ALL.to_vec())), option::of(0..70_u8))
        .prop_map(|(strategy, simhash_threshold)| DedupChange { strategy, simhash_threshold })
}

fn text(texts: &[&'static str]) -> impl Strategy<Value = String> + use<> {
    select(texts.to_vec()).prop_map(str::to_owned)
}

fn step() -> impl Strategy<Value = Step> {
    let change = (option::of(models()), option::of(parsers()), option::of(dedup())).prop_map(
        |(models, parsers, dedup)| Step::Update(Box::new(SettingsChange { models, parsers, dedup })),
    );
    prop_oneof![12 => change, 1 => Just(Step::Reset), 2 => Just(Step::Reopen)]
}

fn table(settings: &RuntimeSettings) -> Table {
    let RuntimeSettings { models, parsers, dedup } = settings;
    let key = |key: &lkr_settings::ApiKey| {
        key.secret().unwrap().map_or_else(String::new, |key| key.expose().to_owned())
    };
    Table::from([
        ("embed.provider", models.embed.provider.map_or("", Provider::name).to_owned()),
        ("embed.model", models.embed.model.clone()),
        ("embed.base_url", models.embed.base_url.clone()),
        ("embed.api_key", key(&models.embed.api_key)),
        ("embed.timeout_s", models.embed.timeout_s.to_string()),
        ("embed.context_tokens", models.embed.context_tokens.to_string()),
        ("rerank.provider", models.rerank.provider.map_or("", Provider::name).to_owned()),
        ("rerank.model", models.rerank.model.clone()),
        ("rerank.base_url", models.rerank.base_url.clone()),
        ("rerank.api_key", key(&models.rerank.api_key)),
        ("rerank.timeout_s", models.rerank.timeout_s.to_string()),
        ("rerank.context_tokens", models.rerank.context_tokens.to_string()),
        ("html", parsers.html.plugin.clone()),
        ("ocr", parsers.ocr.plugin.clone()),
        ("languages", parsers.ocr.languages.join(" ")),
        ("strategy", dedup.strategy.name().to_owned()),
        ("threshold", dedup.simhash_threshold.to_string()),
    ])
}

/// The table after `change`; `None` if it is not allowed.
fn after(before: &Table, change: &SettingsChange) -> Option<Table> {
    let mut table = before.clone();
    let models = change.models.clone().unwrap_or_default();
    let embed = [
        "embed.provider",
        "embed.model",
        "embed.base_url",
        "embed.api_key",
        "embed.timeout_s",
        "embed.context_tokens",
    ];
    let rerank = [
        "rerank.provider",
        "rerank.model",
        "rerank.base_url",
        "rerank.api_key",
        "rerank.timeout_s",
        "rerank.context_tokens",
    ];
    for (entry, paths) in [(models.embed, embed), (models.rerank, rerank)] {
        entry_after(&mut table, paths, &entry.unwrap_or_default())?;
    }
    let parsers = change.parsers.clone().unwrap_or_default();
    let html = parsers.html.unwrap_or_default().plugin;
    if html.as_deref() == Some("gone") {
        return None;
    }
    let ocr = parsers.ocr.unwrap_or_default();
    if ocr.languages.as_ref().is_some_and(Vec::is_empty) {
        return None;
    }
    let dedup = change.dedup.unwrap_or_default();
    if dedup.simhash_threshold.is_some_and(|threshold| threshold > 64) {
        return None;
    }
    put(&mut table, "html", html);
    put(&mut table, "ocr", ocr.plugin);
    put(&mut table, "languages", ocr.languages.map(|codes| codes.join(" ")));
    put(&mut table, "strategy", dedup.strategy.map(|strategy| strategy.name().to_owned()));
    put(&mut table, "threshold", dedup.simhash_threshold.map(|threshold| threshold.to_string()));
    Some(table)
}

fn entry_after(table: &mut Table, paths: [&'static str; 6], change: &ModelEntryChange) -> Option<()> {
    let [provider, model, base_url, api_key, timeout_s, context_tokens] = paths;
    if change.base_url.as_deref() == Some("ftp://no")
        || change.api_key == KeyChange::Set("not allowed".into())
        || change.timeout_s == Some(0)
        || change.context_tokens == Some(999)
    {
        return None;
    }
    let address = change.base_url.as_ref().map(|url| url.trim().to_owned());
    if address.as_ref().is_some_and(|address| *address != table[base_url]) {
        table.insert(api_key, String::new());
    }
    match &change.api_key {
        KeyChange::Keep => {}
        KeyChange::Clear => put(table, api_key, Some(String::new())),
        KeyChange::Set(key) => put(table, api_key, Some(key.expose().to_owned())),
    }
    put(table, base_url, address);
    put(table, provider, change.provider.map(|set| set.map_or("", Provider::name).to_owned()));
    put(table, model, change.model.clone());
    put(table, timeout_s, change.timeout_s.map(|timeout| timeout.to_string()));
    put(table, context_tokens, change.context_tokens.map(|tokens| tokens.to_string()));
    Some(())
}

fn put(table: &mut Table, path: &'static str, value: Option<String>) {
    table.extend(value.map(|value| (path, value)));
}

async fn run(steps: Vec<Step>) {
    let state: Arc<dyn StateStore> = Arc::new(MemoryState::new());
    let mut settings: Settings = open(&state);
    let defaults = table(&settings.current().await.unwrap().settings);
    let mut expected = defaults.clone();
    for step in steps {
        let etag = settings.current().await.unwrap().etag().to_owned();
        match step {
            Step::Update(change) => {
                let result = settings.update(&change, &IfMatch::Any, vec![]).await;
                let allowed = after(&expected, &change);
                assert_eq!(result.is_ok(), allowed.is_some(), "{change:?}");
                // An empty change keeps the tag.
                let changes = allowed.is_some() && !change.is_empty();
                assert_eq!(result.is_ok_and(|new| new.etag() != etag), changes, "{change:?}");
                expected = allowed.unwrap_or(expected);
            }
            Step::Reset => {
                assert_ne!(settings.reset(&IfMatch::Any, vec![]).await.unwrap().etag(), etag);
                expected = defaults.clone();
            }
            Step::Reopen => settings = open(&state),
        }
        assert_eq!(table(&settings.current().await.unwrap().settings), expected);
    }
}

proptest! {
    #[test]
    fn random_changes_equal_the_reference_model(steps in vec(step(), 1..24)) {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(run(steps));
    }
}
