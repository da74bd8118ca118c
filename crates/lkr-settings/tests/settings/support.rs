use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
};

use lkr_settings::{
    DedupChange, Error, ErrorKind, IfMatch, KeyChange, ModelEntryChange, ModelsChange, Plugins, SealingKey,
    Settings, SettingsChange,
};
use lkr_state::{FailingState, MemoryState, StateStore};

pub(crate) fn plugins() -> Plugins {
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    Plugins {
        pdf: names(&["pdf-a", "pdf-b"]),
        docx: names(&["docx-a", "docx-b"]),
        html: names(&["html-a", "html-b"]),
        ocr: names(&["none", "ocr-b"]),
        ocr_languages: None,
    }
}

pub(crate) fn sealing_key() -> SealingKey {
    SealingKey::from_hex(&"07".repeat(32)).unwrap()
}

pub(crate) fn open(state: &Arc<dyn StateStore>) -> Settings {
    Settings::open(Arc::clone(state), sealing_key(), plugins()).unwrap()
}

pub(crate) fn new_settings() -> (Settings, Arc<dyn StateStore>) {
    let state: Arc<dyn StateStore> = Arc::new(MemoryState::new());
    (open(&state), state)
}

/// Settings whose first `times` writes conflict, because another handle applies `other` just before each of them.
pub(crate) fn with_conflicts(times: usize, other: SettingsChange) -> (Settings, Arc<dyn StateStore>) {
    let (rival, state) = new_settings();
    let writes = AtomicUsize::new(0);
    let failing = FailingState::new(Arc::clone(&state), move |operation| {
        if operation == "apply" && writes.fetch_add(1, Ordering::SeqCst) < times {
            // A store in memory is always ready.
            let mut update = pin!(rival.update(&other, &IfMatch::Any, vec![]));
            let polled = update.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(polled, Poll::Ready(Ok(_))));
        }
        None
    });
    let failing: Arc<dyn StateStore> = Arc::new(failing);
    (open(&failing), state)
}

pub(crate) fn models_change(models: ModelsChange) -> SettingsChange {
    SettingsChange { models: Some(models), ..SettingsChange::default() }
}

pub(crate) fn summarize_change(entry: ModelEntryChange) -> SettingsChange {
    models_change(ModelsChange { summarize: Some(entry), ..ModelsChange::default() })
}

pub(crate) fn base_url_change(base_url: &str, api_key: KeyChange) -> ModelEntryChange {
    ModelEntryChange { base_url: Some(base_url.to_owned()), api_key, ..ModelEntryChange::default() }
}

pub(crate) fn key_change(key: &str) -> ModelEntryChange {
    ModelEntryChange { api_key: KeyChange::Set(key.into()), ..ModelEntryChange::default() }
}

pub(crate) fn threshold_change(threshold: u8) -> SettingsChange {
    let dedup = DedupChange { simhash_threshold: Some(threshold), ..DedupChange::default() };
    SettingsChange { dedup: Some(dedup), ..SettingsChange::default() }
}

pub(crate) fn kind_of<T: std::fmt::Debug>(result: Result<T, Error>) -> ErrorKind {
    result.unwrap_err().kind()
}
