//! Concurrent changes.

use lkr_settings::{ErrorKind, IfMatch, ModelEntryChange, ModelsChange, PerModel, Settings, SettingsChange};
use lkr_state::{StateStoreExt, Write};

use crate::support::{kind_of, models_change, new_settings, open, threshold_change, with_conflicts};

/// A change of one field of one entry.
fn one_field(entry: usize, field: usize) -> SettingsChange {
    let text = Some(format!("http://h/{entry}"));
    let change = match field {
        0 => ModelEntryChange { model: text, ..Default::default() },
        1 => ModelEntryChange { base_url: text, ..Default::default() },
        _ => ModelEntryChange { timeout_s: Some(u32::try_from(entry).unwrap() + 1), ..Default::default() },
    };
    let mut models = ModelsChange::default();
    *[&mut models.embed, &mut models.summarize, &mut models.classify, &mut models.rerank][entry] =
        Some(change);
    models_change(models)
}

async fn all_at_once(handle: impl Fn() -> Settings) {
    let tasks: Vec<_> = (0..12)
        .map(|index| {
            let settings = handle();
            tokio::spawn(async move {
                let alongside = vec![Write::increment("generation")];
                settings.update(&one_field(index / 3, index % 3), &IfMatch::Any, alongside).await
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    let settings = handle();
    let now = settings.current().await.unwrap();
    for (index, name) in PerModel::<()>::NAMES.into_iter().enumerate() {
        let entry = now.settings.models.get(name).unwrap();
        let text = format!("http://h/{index}");
        assert_eq!((&entry.model, &entry.base_url), (&text, &text), "{name}");
        assert_eq!(usize::try_from(entry.timeout_s).unwrap(), index + 1, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_changes_in_one_process_are_all_applied() {
    for _ in 0..20 {
        let (settings, state) = new_settings();
        all_at_once(|| settings.clone()).await;
        assert_eq!(state.counter("generation").await.unwrap(), 12);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_changes_in_many_processes_are_all_applied() {
    for _ in 0..20 {
        let (_, state) = new_settings();
        all_at_once(|| open(&state)).await;
        assert_eq!(state.counter("generation").await.unwrap(), 12);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_changes_with_the_same_tag_exactly_one_wins() {
    for _ in 0..20 {
        let (settings, state) = new_settings();
        let seen = IfMatch::Tags(vec![settings.current().await.unwrap().etag().to_owned()]);
        let tasks: Vec<_> = (10..20)
            .map(|threshold| {
                let (settings, seen) = (open(&state), seen.clone());
                let alongside = vec![Write::increment("generation")];
                tokio::spawn(
                    async move { settings.update(&threshold_change(threshold), &seen, alongside).await },
                )
            })
            .collect();
        let mut winners = vec![];
        for task in tasks {
            match task.await.unwrap() {
                Ok(after) => winners.push(after.settings.dedup.simhash_threshold),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict),
            }
        }
        let now = settings.current().await.unwrap().settings.dedup.simhash_threshold;
        assert_eq!(winners, [now]);
        assert_eq!(state.counter("generation").await.unwrap(), 1);
    }
}

#[tokio::test]
async fn change_after_a_conflict_is_merged_into_the_other_change() {
    let (settings, state) = with_conflicts(1, one_field(0, 0));
    settings.update(&threshold_change(9), &IfMatch::Any, vec![Write::increment("generation")]).await.unwrap();
    let now = open(&state).current().await.unwrap();
    assert_eq!(now.settings.dedup.simhash_threshold, 9);
    assert_eq!(now.settings.models.embed.model, "http://h/0");
    assert_eq!(state.counter("generation").await.unwrap(), 1);
}

#[tokio::test]
async fn change_with_a_tag_after_a_conflict_is_refused() {
    let (settings, state) = with_conflicts(1, one_field(0, 0));
    let seen = IfMatch::Tags(vec![settings.current().await.unwrap().etag().to_owned()]);
    let alongside = vec![Write::increment("generation")];
    assert_eq!(kind_of(settings.update(&threshold_change(9), &seen, alongside).await), ErrorKind::Conflict);
    let now = settings.current().await.unwrap();
    assert_eq!(now.settings.dedup.simhash_threshold, 3);
    assert_eq!(now.settings.models.embed.model, "http://h/0");
    assert_eq!(state.counter("generation").await.unwrap(), 0);
}

#[tokio::test]
async fn reset_after_a_conflict_resets_the_other_change_too() {
    let (settings, _) = with_conflicts(1, one_field(0, 0));
    let reset = settings.reset(&IfMatch::Any, vec![]).await.unwrap();
    assert_eq!(reset.settings.models.embed.model, "");
    let (settings, _) = with_conflicts(1, one_field(0, 0));
    let seen = IfMatch::Tags(vec![settings.current().await.unwrap().etag().to_owned()]);
    assert_eq!(kind_of(settings.reset(&seen, vec![]).await), ErrorKind::Conflict);
}

#[tokio::test]
async fn change_with_endless_conflicts_ends_as_contention() {
    let (settings, _) = with_conflicts(8, one_field(0, 0));
    assert!(settings.update(&threshold_change(9), &IfMatch::Any, vec![]).await.is_ok());
    let (settings, _) = with_conflicts(usize::MAX, one_field(0, 0));
    let error = settings.update(&threshold_change(9), &IfMatch::Any, vec![]).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Contention && error.is_retryable(), "{error}");
    assert_eq!(settings.current().await.unwrap().settings.dedup.simhash_threshold, 3);
}
