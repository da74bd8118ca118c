//! Applies a checked change to the stored settings.

use crate::{
    KeyChange, ModelEntryChange, Result, SealingKey, SettingsChange,
    records::{ModelV1, SettingsV1, key_place},
};

/// `stored` after `change`. The caller has checked the values.
pub(crate) fn merge(
    mut stored: SettingsV1,
    change: &SettingsChange,
    sealing: &SealingKey,
) -> Result<SettingsV1> {
    for (name, entry) in change.models() {
        let before = stored.models.remove(name).unwrap_or_default();
        stored.models.insert(name.to_owned(), merge_model(before, name, entry, sealing)?);
    }
    for parser in change.parsers() {
        let entry = stored.parsers.entry(parser.kind.name().to_owned()).or_default();
        replace(&mut entry.plugin, parser.plugin.map(str::to_owned));
        replace(&mut entry.languages, parser.languages.map(<[String]>::to_vec));
    }
    if let Some(dedup) = change.dedup {
        replace(&mut stored.dedup.strategy, dedup.strategy);
        replace(&mut stored.dedup.simhash_threshold, dedup.simhash_threshold);
    }
    stored.models.retain(|_, entry| *entry != ModelV1::default());
    stored.parsers.retain(|_, entry| *entry != Default::default());
    Ok(stored)
}

/// The stored entry `name` after `change`. The caller has checked the values.
pub(crate) fn merge_model(
    mut stored: ModelV1,
    name: &str,
    change: &ModelEntryChange,
    sealing: &SealingKey,
) -> Result<ModelV1> {
    let base_url = change.base_url.as_deref().map(str::trim);
    let is_moved = base_url.is_some_and(|url| url != stored.base_url.as_deref().unwrap_or_default());
    match &change.api_key {
        KeyChange::Set(key) => stored.api_key = Some(sealing.seal(key, &key_place(name))?),
        KeyChange::Clear => stored.api_key = None,
        // A key belongs to the host it was entered for: changing the address must not send it to another host.
        KeyChange::Keep if is_moved => stored.api_key = None,
        KeyChange::Keep => {}
    }
    if let Some(provider) = change.provider {
        stored.provider = provider;
    }
    replace(&mut stored.model, change.model.clone());
    replace(&mut stored.base_url, base_url.map(str::to_owned));
    replace(&mut stored.timeout_s, change.timeout_s);
    replace(&mut stored.context_tokens, change.context_tokens);
    Ok(stored)
}

fn replace<T>(stored: &mut Option<T>, change: Option<T>) {
    if change.is_some() {
        *stored = change;
    }
}
