//! Keys at rest.

use std::sync::Arc;

use lkr_settings::{
    ApiKey, ErrorKind, IfMatch, KeyChange, ModelEntryChange, ModelsChange, SealingKey, Settings,
};
use lkr_state::{Expect, ScanOrder, StateStore, StateStoreExt, Write};
use serde_json::Value;

use crate::support::{
    fresh, kind, of_base_url, of_key, of_models, of_summarize, of_threshold, over, plugins,
};

const PLANTED: &str = "sk-planted-0123456789";

async fn with_planted_key() -> (Settings, Arc<dyn StateStore>) {
    let (settings, state) = fresh();
    let entry = of_base_url("https://a.example", KeyChange::Set(PLANTED.into()));
    settings.update(&of_summarize(entry), &IfMatch::Any, vec![]).await.unwrap();
    (settings, state)
}

fn with_another_key(state: &Arc<dyn StateStore>) -> Settings {
    Settings::open(Arc::clone(state), SealingKey::generate(), plugins()).unwrap()
}

async fn stored(state: &Arc<dyn StateStore>) -> Value {
    serde_json::from_slice(&state.get("settings").await.unwrap().unwrap().value).unwrap()
}

/// Changes the stored record, as somebody with access to the store would.
async fn tamper(state: &Arc<dyn StateStore>, change: impl FnOnce(&mut Value)) {
    let mut record = stored(state).await;
    change(&mut record);
    state.apply(vec![Write::put("settings", Expect::Any, record.to_string())]).await.unwrap();
}

#[tokio::test]
async fn no_key_is_stored_as_it_is() {
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
async fn another_process_with_the_same_key_reads_it() {
    let (_, state) = with_planted_key().await;
    let entry = over(&state).current().await.unwrap().settings.models.summarize.clone();
    assert_eq!(entry.api_key, ApiKey::Set(PLANTED.into()));
}

#[tokio::test]
async fn with_another_key_it_counts_as_stored_and_survives_other_changes() {
    let (settings, state) = with_planted_key().await;
    let sealed = stored(&state).await["models"]["summarize"]["api_key"].clone();
    let other = with_another_key(&state);
    let entry = other.current().await.unwrap().settings.models.summarize.clone();
    assert_eq!(entry.api_key, ApiKey::Unreadable);
    assert!(entry.api_key.is_stored());
    assert_eq!(kind(entry.api_key.secret()), ErrorKind::Corrupt);
    assert_eq!(entry.base_url, "https://a.example", "the rest is readable");

    let timeout = ModelEntryChange { timeout_s: Some(5), ..Default::default() };
    other.update(&of_threshold(9), &IfMatch::Any, vec![]).await.unwrap();
    other.update(&of_summarize(timeout.clone()), &IfMatch::Any, vec![]).await.unwrap();
    assert_eq!(other.preview("summarize", &timeout).await.unwrap().api_key, ApiKey::Unreadable);
    assert_eq!(stored(&state).await["models"]["summarize"]["api_key"], sealed);
    let back = settings.current().await.unwrap();
    assert_eq!(back.settings.models.summarize.api_key, ApiKey::Set(PLANTED.into()));
}

#[tokio::test]
async fn with_another_key_it_can_be_replaced_cleared_and_moved_away_from() {
    for (change, expected) in [
        (of_key("sk-new"), ApiKey::Set("sk-new".into())),
        (ModelEntryChange { api_key: KeyChange::Clear, ..Default::default() }, ApiKey::None),
        (of_base_url("https://b.example", KeyChange::Keep), ApiKey::None),
    ] {
        let (_, state) = with_planted_key().await;
        let other = with_another_key(&state);
        let after = other.update(&of_summarize(change), &IfMatch::Any, vec![]).await.unwrap();
        assert_eq!(after.settings.models.summarize.api_key, expected);
    }
}

#[tokio::test]
async fn what_was_tampered_with_does_not_open() {
    let (_, state) = with_planted_key().await;
    let sealed = stored(&state).await["models"]["summarize"]["api_key"].as_str().unwrap().to_owned();
    let mut flipped = sealed.clone().into_bytes();
    let last = flipped.last_mut().unwrap();
    *last = if *last == b'0' { b'1' } else { b'0' };
    let flipped = String::from_utf8(flipped).unwrap();
    for wrong in [flipped.as_str(), &sealed[2..], &sealed[..sealed.len() - 1], "", "zz", PLANTED] {
        tamper(&state, |record| record["models"]["summarize"]["api_key"] = wrong.into()).await;
        let entry = over(&state).current().await.unwrap().settings.models.summarize.clone();
        assert_eq!(entry.api_key, ApiKey::Unreadable, "{wrong}");
    }
    tamper(&state, |record| record["models"]["summarize"]["api_key"] = sealed.into()).await;
    let entry = over(&state).current().await.unwrap().settings.models.summarize.clone();
    assert_eq!(entry.api_key, ApiKey::Set(PLANTED.into()));
}

#[tokio::test]
async fn lesson_26_a_key_that_is_moved_to_another_entry_does_not_open() {
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
async fn the_same_key_is_sealed_anew_each_time() {
    let (settings, state) = fresh();
    let models =
        ModelsChange { embed: Some(of_key(PLANTED)), rerank: Some(of_key(PLANTED)), ..Default::default() };
    settings.update(&of_models(models.clone()), &IfMatch::Any, vec![]).await.unwrap();
    let first = stored(&state).await;
    settings.update(&of_models(models), &IfMatch::Any, vec![]).await.unwrap();
    let second = stored(&state).await;
    let sealed =
        [&first, &second].map(|record| ["embed", "rerank"].map(|name| &record["models"][name]["api_key"]));
    let distinct: std::collections::BTreeSet<_> = sealed.iter().flatten().map(|text| text.as_str()).collect();
    assert_eq!(distinct.len(), 4);
}
