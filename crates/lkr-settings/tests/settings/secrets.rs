//! API keys at rest.

use std::sync::Arc;

use lkr_settings::{
    ApiKey, ErrorKind, IfMatch, KeyChange, ModelEntryChange, ModelsChange, SealingKey, Settings,
};
use lkr_state::{Expect, ScanOrder, StateStore, StateStoreExt, Write};
use serde_json::Value;

use crate::support::{
    base_url_change, key_change, kind_of, models_change, new_settings, open, plugins, summarize_change,
    threshold_change,
};

const PLANTED: &str = "sk-planted-0123456789";

async fn with_planted_key() -> (Settings, Arc<dyn StateStore>) {
    let (settings, state) = new_settings();
    let entry = base_url_change("https://a.example", KeyChange::Set(PLANTED.into()));
    settings.update(&summarize_change(entry), &IfMatch::Any, vec![]).await.unwrap();
    (settings, state)
}

fn with_another_key(state: &Arc<dyn StateStore>) -> Settings {
    Settings::open(Arc::clone(state), SealingKey::generate(), plugins()).unwrap()
}

async fn stored(state: &Arc<dyn StateStore>) -> Value {
    serde_json::from_slice(&state.get("settings").await.unwrap().unwrap().value).unwrap()
}

/// Changes the stored record, as an attacker with access to the store would.
async fn tamper(state: &Arc<dyn StateStore>, change: impl FnOnce(&mut Value)) {
    let mut record = stored(state).await;
    change(&mut record);
    state.apply(vec![Write::put("settings", Expect::Any, record.to_string())]).await.unwrap();
}

#[tokio::test]
async fn keys_are_stored_sealed_only() {
    let (settings, state) = with_planted_key().await;
    let hex: String = PLANTED.bytes().map(|byte| format!("{byte:02x}")).collect();
    let records = state.scan("", None, ScanOrder::Ascending, 10).await.unwrap();
    assert_eq!(records.len(), 1);
    let text = String::from_utf8(records[0].1.value.to_vec()).unwrap();
    assert!(text.contains("https://a.example") && text.contains("api_key"), "{text}");
    assert!(!text.contains(PLANTED) && !text.contains(&hex), "{text}");
    let now = settings.current().await.unwrap();
    assert_eq!(now.settings.models.summarize.api_key, ApiKey::Set(PLANTED.into()));
    assert!(!format!("{settings:?} {now:?}").contains(PLANTED));
}

#[tokio::test]
async fn other_process_with_the_same_secret_key_opens_it() {
    let (_, state) = with_planted_key().await;
    let entry = open(&state).current().await.unwrap().settings.models.summarize.clone();
    assert_eq!(entry.api_key, ApiKey::Set(PLANTED.into()));
}

#[tokio::test]
async fn other_secret_key_keeps_the_stored_key_through_changes() {
    let (settings, state) = with_planted_key().await;
    let sealed = stored(&state).await["models"]["summarize"]["api_key"].clone();
    let other = with_another_key(&state);
    let entry = other.current().await.unwrap().settings.models.summarize.clone();
    assert_eq!(entry.api_key, ApiKey::Unreadable);
    assert!(entry.api_key.is_stored());
    assert_eq!(kind_of(entry.api_key.secret()), ErrorKind::Corrupt);
    assert_eq!(entry.base_url, "https://a.example", "the other fields are readable");

    let timeout = ModelEntryChange { timeout_s: Some(5), ..Default::default() };
    other.update(&threshold_change(9), &IfMatch::Any, vec![]).await.unwrap();
    other.update(&summarize_change(timeout.clone()), &IfMatch::Any, vec![]).await.unwrap();
    assert_eq!(other.preview("summarize", &timeout).await.unwrap().api_key, ApiKey::Unreadable);
    assert_eq!(stored(&state).await["models"]["summarize"]["api_key"], sealed);
    let back = settings.current().await.unwrap();
    assert_eq!(back.settings.models.summarize.api_key, ApiKey::Set(PLANTED.into()));
}

#[tokio::test]
async fn other_secret_key_allows_replacing_and_clearing() {
    for (change, expected) in [
        (key_change("sk-new"), ApiKey::Set("sk-new".into())),
        (ModelEntryChange { api_key: KeyChange::Clear, ..Default::default() }, ApiKey::None),
        (base_url_change("https://b.example", KeyChange::Keep), ApiKey::None),
    ] {
        let (_, state) = with_planted_key().await;
        let other = with_another_key(&state);
        let after = other.update(&summarize_change(change), &IfMatch::Any, vec![]).await.unwrap();
        assert_eq!(after.settings.models.summarize.api_key, expected);
    }
}

#[tokio::test]
async fn tampered_key_does_not_open() {
    let (_, state) = with_planted_key().await;
    let sealed = stored(&state).await["models"]["summarize"]["api_key"].as_str().unwrap().to_owned();
    let mut flipped = sealed.clone().into_bytes();
    let last = flipped.last_mut().unwrap();
    *last = if *last == b'0' { b'1' } else { b'0' };
    let flipped = String::from_utf8(flipped).unwrap();
    for wrong in [flipped.as_str(), &sealed[2..], &sealed[..sealed.len() - 1], "", "zz", PLANTED] {
        tamper(&state, |record| record["models"]["summarize"]["api_key"] = wrong.into()).await;
        let entry = open(&state).current().await.unwrap().settings.models.summarize.clone();
        assert_eq!(entry.api_key, ApiKey::Unreadable, "{wrong}");
    }
    tamper(&state, |record| record["models"]["summarize"]["api_key"] = sealed.into()).await;
    let entry = open(&state).current().await.unwrap().settings.models.summarize.clone();
    assert_eq!(entry.api_key, ApiKey::Set(PLANTED.into()));
}

#[tokio::test]
async fn lesson_26_key_moved_to_another_entry_does_not_open() {
    let (settings, state) = with_planted_key().await;
    tamper(&state, |record| {
        record["models"]["rerank"] = record["models"]["summarize"].clone();
        record["models"]["rerank"]["base_url"] = "https://attacker.example".into();
    })
    .await;
    let models = settings.current().await.unwrap().settings.models.clone();
    assert_eq!(models.rerank.api_key, ApiKey::Unreadable);
    assert_eq!(models.summarize.api_key, ApiKey::Set(PLANTED.into()));
}

#[tokio::test]
async fn same_key_is_sealed_differently_each_time() {
    let (settings, state) = new_settings();
    let models = ModelsChange {
        embed: Some(key_change(PLANTED)),
        rerank: Some(key_change(PLANTED)),
        ..Default::default()
    };
    settings.update(&models_change(models.clone()), &IfMatch::Any, vec![]).await.unwrap();
    let first = stored(&state).await;
    settings.update(&models_change(models), &IfMatch::Any, vec![]).await.unwrap();
    let second = stored(&state).await;
    let sealed =
        [&first, &second].map(|record| ["embed", "rerank"].map(|name| &record["models"][name]["api_key"]));
    let distinct: std::collections::BTreeSet<_> = sealed.iter().flatten().map(|text| text.as_str()).collect();
    assert_eq!(distinct.len(), 4);
}
