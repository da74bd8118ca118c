//! Changes, resets, entity tags, and writes in the same step.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use lkr_settings::{
    ApiKey, DedupChange, DedupStrategy, ErrorKind, IfMatch, KeyChange, ModelEntryChange, ModelsChange,
    OcrChange, ParsersChange, PluginChange, Plugins, Provider, Secret, Settings, SettingsChange,
};
use lkr_state::{
    ErrorKind as StateErrorKind, Expect, FailingState, MemoryState, StateStore, StateStoreExt, Write,
};

use crate::support::{
    base_url_change, key_change, kind_of, models_change, new_settings, open, plugins, sealing_key,
    summarize_change, threshold_change,
};

async fn apply(settings: &Settings, change: &SettingsChange) -> Arc<lkr_settings::Snapshot> {
    settings.update(change, &IfMatch::Any, vec![]).await.unwrap()
}

#[tokio::test]
async fn new_store_has_the_defaults_and_reads_store_nothing() {
    let (settings, state) = new_settings();
    let now = settings.current().await.unwrap();
    for (name, entry) in now.settings.models.named() {
        assert_eq!((entry.provider, entry.model.as_str(), entry.base_url.as_str()), (None, "", ""), "{name}");
        assert_eq!((&entry.api_key, entry.timeout_s), (&ApiKey::None, 60), "{name}");
    }
    let parsers = &now.settings.parsers;
    let plugins = [&parsers.pdf.plugin, &parsers.docx.plugin, &parsers.html.plugin, &parsers.ocr.plugin];
    assert_eq!(plugins, ["pdf-a", "docx-a", "html-a", "none"]);
    assert_eq!(parsers.ocr.languages, ["en"]);
    assert_eq!(now.settings.dedup.strategy, DedupStrategy::Sha256);
    assert_eq!(now.settings.dedup.simhash_threshold, 3);
    assert!(state.get("settings").await.unwrap().is_none(), "a read stores nothing");
}

#[tokio::test]
async fn change_is_merged_at_every_depth() {
    let (settings, _) = new_settings();
    let first = summarize_change(ModelEntryChange {
        provider: Some(Some(Provider::LocalLlm)),
        model: Some("small".to_owned()),
        base_url: Some("http://localhost:11434/v1".to_owned()),
        api_key: KeyChange::Set("sk-one".into()),
        timeout_s: Some(5),
        context_tokens: Some(32_000),
    });
    let mut expected = apply(&settings, &first).await.settings.clone();
    assert_eq!(expected.models.summarize.provider, Some(Provider::LocalLlm));
    assert_eq!(expected.models.summarize.api_key, ApiKey::Set(Secret::new("sk-one")));

    let model = ModelEntryChange { model: Some("large".to_owned()), ..Default::default() };
    expected.models.summarize.model = "large".to_owned();
    assert_eq!(apply(&settings, &summarize_change(model)).await.settings, expected);

    let rerank = ModelEntryChange { timeout_s: Some(600), ..Default::default() };
    expected.models.rerank.timeout_s = 600;
    let change = models_change(ModelsChange { rerank: Some(rerank), ..Default::default() });
    assert_eq!(apply(&settings, &change).await.settings, expected);

    let ocr = OcrChange { plugin: None, languages: Some(vec!["de".to_owned(), "fr".to_owned()]) };
    let pdf = PluginChange { plugin: Some("pdf-b".to_owned()) };
    let parsers = ParsersChange { pdf: Some(pdf), ocr: Some(ocr), ..Default::default() };
    expected.parsers.pdf.plugin = "pdf-b".to_owned();
    expected.parsers.ocr.languages = vec!["de".to_owned(), "fr".to_owned()];
    let change = SettingsChange { parsers: Some(parsers), ..Default::default() };
    assert_eq!(apply(&settings, &change).await.settings, expected);

    let dedup = DedupChange { strategy: Some(DedupStrategy::Simhash), simhash_threshold: None };
    expected.dedup.strategy = DedupStrategy::Simhash;
    let change = SettingsChange { dedup: Some(dedup), ..Default::default() };
    assert_eq!(apply(&settings, &change).await.settings, expected);

    let off = ModelEntryChange { provider: Some(None), ..Default::default() };
    expected.models.summarize.provider = None;
    assert_eq!(apply(&settings, &summarize_change(off)).await.settings, expected);
    assert_eq!(apply(&settings, &SettingsChange::default()).await.settings, expected, "an empty change");
    assert_eq!(settings.current().await.unwrap().settings, expected);
}

#[tokio::test]
async fn lesson_26_changed_address_clears_the_key() {
    let key_after = async |change: ModelEntryChange| {
        let (settings, _) = new_settings();
        let with_key = base_url_change("https://a.example", KeyChange::Set("sk-old".into()));
        apply(&settings, &summarize_change(with_key)).await;
        let previewed = settings.preview("summarize", &change).await.unwrap();
        let after = apply(&settings, &summarize_change(change)).await.settings.models.summarize.clone();
        assert_eq!(previewed, after, "a preview follows the same rules");
        after.api_key.secret().unwrap().map(|key| key.expose().to_owned())
    };
    let old = Some("sk-old".to_owned());
    let new = Some("sk-new".to_owned());
    assert_eq!(key_after(ModelEntryChange::default()).await, old);
    assert_eq!(key_after(base_url_change("https://a.example", KeyChange::Keep)).await, old);
    assert_eq!(key_after(base_url_change("  https://a.example\n", KeyChange::Keep)).await, old, "trimmed");
    for other in ["https://b.example", "https://a.example/", "http://a.example", "HTTPS://a.example", ""] {
        assert_eq!(key_after(base_url_change(other, KeyChange::Keep)).await, None, "{other}");
        assert_eq!(key_after(base_url_change(other, KeyChange::Clear)).await, None, "{other}");
        assert_eq!(key_after(base_url_change(other, KeyChange::Set("sk-new".into()))).await, new, "{other}");
    }
    assert_eq!(key_after(key_change("sk-new")).await, new);
    let clear = ModelEntryChange { api_key: KeyChange::Clear, ..Default::default() };
    assert_eq!(key_after(clear).await, None);
}

#[tokio::test]
async fn first_address_clears_a_key_that_was_stored_without_one() {
    let (settings, _) = new_settings();
    apply(&settings, &summarize_change(key_change("sk-old"))).await;
    let same = apply(&settings, &summarize_change(base_url_change(" ", KeyChange::Keep))).await;
    assert!(same.settings.models.summarize.api_key.is_stored(), "the address is still empty");
    let moved = apply(&settings, &summarize_change(base_url_change("http://a", KeyChange::Keep))).await;
    assert!(!moved.settings.models.summarize.api_key.is_stored());
}

#[tokio::test]
async fn changed_address_keeps_the_keys_of_other_entries() {
    let (settings, _) = new_settings();
    let models = ModelsChange {
        embed: Some(key_change("sk-e")),
        rerank: Some(key_change("sk-r")),
        ..Default::default()
    };
    apply(&settings, &models_change(models)).await;
    let embed = Some(base_url_change("http://a", KeyChange::Keep));
    let after = apply(&settings, &models_change(ModelsChange { embed, ..Default::default() })).await;
    assert_eq!(after.settings.models.embed.api_key, ApiKey::None);
    assert_eq!(after.settings.models.rerank.api_key, ApiKey::Set("sk-r".into()));
}

#[tokio::test]
async fn preview_stores_nothing_and_refuses_invalid_values() {
    let (settings, state) = new_settings();
    let entry = settings.preview("embed", &key_change("sk-tried")).await.unwrap();
    assert_eq!(entry.api_key, ApiKey::Set("sk-tried".into()));
    assert!(state.get("settings").await.unwrap().is_none());
    let error = settings.preview("other", &key_change("sk-tried")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let expected =
        "preview settings: models.other is unknown; allowed are embed, summarize, classify, rerank";
    assert_eq!(error.to_string(), expected);
    let timeout = ModelEntryChange { timeout_s: Some(0), ..Default::default() };
    assert_eq!(kind_of(settings.preview("embed", &timeout).await), ErrorKind::Invalid);
}

#[tokio::test]
async fn reset_restores_the_defaults_with_a_new_etag() {
    let (settings, state) = new_settings();
    let first = settings.current().await.unwrap();
    apply(&settings, &threshold_change(9)).await;
    apply(&settings, &summarize_change(key_change("sk-planted"))).await;
    let reset = settings.reset(&IfMatch::Any, vec![]).await.unwrap();
    assert_eq!(reset.settings, first.settings);
    assert_ne!(reset.etag(), first.etag());
    let record = state.get("settings").await.unwrap().unwrap();
    assert_eq!(record.value, r#"{"v":"1"}"#, "an empty record stays");
}

#[tokio::test]
async fn etag_changes_with_each_write_and_with_the_plugins() {
    let (settings, state) = new_settings();
    let mut seen = vec![settings.current().await.unwrap().etag().to_owned()];
    for step in 0..3 {
        // A change to equal values has a new tag too.
        seen.push(apply(&settings, &threshold_change(5)).await.etag().to_owned());
        seen.push(settings.reset(&IfMatch::Any, vec![]).await.unwrap().etag().to_owned());
        assert_eq!(
            settings.current().await.unwrap().etag(),
            seen[2 * step + 2],
            "the tag stays without a write"
        );
    }
    let same = open(&state).current().await.unwrap().etag().to_owned();
    assert_eq!(Some(&same), seen.last(), "every process has the same tag");
    let more = Plugins { html: vec!["html-a".to_owned()], ..plugins() };
    let other = Settings::open(state, sealing_key(), more).unwrap();
    seen.push(other.current().await.unwrap().etag().to_owned());
    let distinct: std::collections::BTreeSet<_> = seen.iter().collect();
    assert_eq!(distinct.len(), seen.len(), "{seen:?}");
    for tag in &seen {
        assert!(tag.starts_with('"') && tag.ends_with('"') && tag.matches('"').count() == 2, "{tag}");
    }
}

#[tokio::test]
async fn if_match_accepts_only_the_current_tag() {
    let (settings, _) = new_settings();
    let first = settings.current().await.unwrap().etag().to_owned();
    let tags = |tags: &[&str]| IfMatch::Tags(tags.iter().map(|&tag| tag.to_owned()).collect());
    let weak = format!("W/{first}");
    let bare = first.trim_matches('"');
    for wrong in [tags(&[]), tags(&["\"other\""]), tags(&[&weak]), tags(&[bare]), tags(&["*"])] {
        assert_eq!(kind_of(settings.update(&threshold_change(9), &wrong, vec![]).await), ErrorKind::Conflict);
        assert_eq!(kind_of(settings.reset(&wrong, vec![]).await), ErrorKind::Conflict);
    }
    assert_eq!(settings.current().await.unwrap().etag(), first);
    let right = tags(&["\"other\"", &first]);
    let after = settings.update(&threshold_change(9), &right, vec![]).await.unwrap();
    assert_eq!(after.settings.dedup.simhash_threshold, 9);
    assert_eq!(kind_of(settings.update(&threshold_change(8), &right, vec![]).await), ErrorKind::Conflict);
    let now = tags(&[after.etag()]);
    assert_eq!(settings.reset(&now, vec![]).await.unwrap().settings.dedup.simhash_threshold, 3);
}

#[tokio::test]
async fn alongside_writes_are_applied_with_the_change_or_not_at_all() {
    let (settings, state) = new_settings();
    let alongside =
        |entry: &str| vec![Write::put(entry, Expect::Absent, "who"), Write::increment("generation")];
    settings.update(&threshold_change(9), &IfMatch::Any, alongside("audit/1")).await.unwrap();
    settings.reset(&IfMatch::Any, alongside("audit/2")).await.unwrap();
    assert!(state.get("audit/1").await.unwrap().is_some() && state.get("audit/2").await.unwrap().is_some());
    assert_eq!(state.counter("generation").await.unwrap(), 2);

    let stale = IfMatch::Tags(vec!["\"stale\"".to_owned()]);
    let refused = [
        (
            ErrorKind::Invalid,
            settings.update(&threshold_change(65), &IfMatch::Any, alongside("audit/3")).await,
        ),
        (ErrorKind::Conflict, settings.update(&threshold_change(9), &stale, alongside("audit/3")).await),
        (ErrorKind::Conflict, settings.reset(&stale, alongside("audit/3")).await),
        (
            ErrorKind::Conflict,
            settings.update(&threshold_change(9), &IfMatch::Any, alongside("audit/1")).await,
        ),
        (ErrorKind::Conflict, settings.reset(&IfMatch::Any, alongside("audit/1")).await),
    ];
    for (expected, result) in refused {
        assert_eq!(kind_of(result), expected);
    }
    assert!(state.get("audit/3").await.unwrap().is_none());
    assert_eq!(state.counter("generation").await.unwrap(), 2);
    assert_eq!(settings.current().await.unwrap().settings.dedup.simhash_threshold, 3);
}

#[tokio::test]
async fn other_process_sees_a_change_at_once() {
    let (one, state) = new_settings();
    let other = open(&state);
    other.current().await.unwrap();
    let changed = apply(&one, &threshold_change(9)).await;
    let seen = other.current().await.unwrap();
    assert_eq!((seen.etag(), &seen.settings), (changed.etag(), &changed.settings));
}

#[tokio::test]
async fn record_is_decoded_once_per_version() {
    let (settings, _) = new_settings();
    let first = settings.current().await.unwrap();
    assert!(Arc::ptr_eq(&first, &settings.clone().current().await.unwrap()));
    let second = apply(&settings, &threshold_change(9)).await;
    assert!(!Arc::ptr_eq(&first, &second));
    assert!(Arc::ptr_eq(&second, &settings.current().await.unwrap()));
    assert_eq!(first.settings.dedup.simhash_threshold, 3, "a request in flight keeps its snapshot");
}

#[tokio::test]
async fn subscribers_are_notified_of_new_versions() {
    let (settings, state) = new_settings();
    let mut versions = settings.subscribe();
    settings.current().await.unwrap();
    assert!(!versions.has_changed().unwrap());
    apply(&settings, &threshold_change(9)).await;
    assert!(versions.has_changed().unwrap());
    let seen = *versions.borrow_and_update();
    settings.current().await.unwrap();
    assert!(!versions.has_changed().unwrap());
    apply(&open(&state), &threshold_change(8)).await;
    settings.current().await.unwrap();
    assert!(versions.has_changed().unwrap() && *versions.borrow() > seen);
}

#[tokio::test]
async fn removed_plugin_falls_back_to_the_default_and_stays_stored() {
    let (settings, state) = new_settings();
    let pdf = PluginChange { plugin: Some("pdf-b".to_owned()) };
    let parsers = ParsersChange { pdf: Some(pdf), ..Default::default() };
    apply(&settings, &SettingsChange { parsers: Some(parsers), ..Default::default() }).await;
    let fewer = Plugins { pdf: vec!["pdf-a".to_owned()], ..plugins() };
    let without = Settings::open(Arc::clone(&state), sealing_key(), fewer).unwrap();
    assert_eq!(without.current().await.unwrap().settings.parsers.pdf.plugin, "pdf-a");
    apply(&without, &threshold_change(9)).await;
    let back = settings.current().await.unwrap();
    assert_eq!(back.settings.parsers.pdf.plugin, "pdf-b");
    assert_eq!(back.settings.dedup.simhash_threshold, 9);
}

#[tokio::test]
async fn damaged_record_is_an_error_until_a_reset() {
    let (settings, state) = new_settings();
    state.apply(vec![Write::put("settings", Expect::Any, "{\"v\":\"1\",\"sk-planted")]).await.unwrap();
    assert_eq!(kind_of(settings.current().await), ErrorKind::Corrupt);
    let error = settings.update(&threshold_change(9), &IfMatch::Any, vec![]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(!format!("{error} {error:?}").contains("planted"));
    let reset = settings.reset(&IfMatch::Any, vec![]).await.unwrap();
    assert_eq!(reset.settings.dedup.simhash_threshold, 3);
    assert!(settings.current().await.is_ok());
}

#[tokio::test]
async fn store_errors_keep_their_kind_and_change_nothing() {
    let kinds = [
        (StateErrorKind::Unavailable, ErrorKind::Unavailable),
        (StateErrorKind::Corrupt, ErrorKind::Corrupt),
        (StateErrorKind::Internal, ErrorKind::Internal),
    ];
    for (theirs, ours) in kinds {
        for failing in ["get_many", "apply"] {
            let inner: Arc<dyn StateStore> = Arc::new(MemoryState::new());
            let state = FailingState::new(Arc::clone(&inner), move |op| (op == failing).then_some(theirs));
            let state: Arc<dyn StateStore> = Arc::new(state);
            let settings = open(&state);
            assert_eq!(kind_of(settings.update(&threshold_change(9), &IfMatch::Any, vec![]).await), ours);
            assert_eq!(kind_of(settings.reset(&IfMatch::Any, vec![]).await), ours);
            assert!(inner.get("settings").await.unwrap().is_none());
            if failing == "get_many" {
                assert_eq!(kind_of(settings.current().await), ours);
                assert_eq!(kind_of(settings.derive(|_| ()).get().await), ours);
                assert_eq!(kind_of(settings.preview("embed", &ModelEntryChange::default()).await), ours);
            }
        }
    }
}

#[tokio::test]
async fn change_that_cannot_be_read_back_is_stored() {
    let inner: Arc<dyn StateStore> = Arc::new(MemoryState::new());
    let reads = AtomicUsize::new(0);
    let state = FailingState::new(Arc::clone(&inner), move |operation| {
        let second = operation == "get_many" && reads.fetch_add(1, Ordering::SeqCst) == 1;
        second.then_some(StateErrorKind::Unavailable)
    });
    let state: Arc<dyn StateStore> = Arc::new(state);
    let settings = open(&state);
    let error = settings.update(&threshold_change(9), &IfMatch::Any, vec![]).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Unavailable && error.is_retryable());
    assert_eq!(settings.current().await.unwrap().settings.dedup.simhash_threshold, 9);
}
