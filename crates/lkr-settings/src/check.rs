//! What values are allowed. A change is checked whole before any of it is done.

use std::ops::RangeInclusive;

use url::Url;

use crate::{
    Error, KeyChange, MASK, ModelEntryChange, OcrChoice, Plugins, Result, Secret, SettingsChange,
    change::ParserChange, languages,
};

pub(crate) const MODEL_CHARS: usize = 200;
pub(crate) const BASE_URL_CHARS: usize = 2048;
pub(crate) const API_KEY_CHARS: usize = 4096;
pub(crate) const TIMEOUT_S: RangeInclusive<u32> = 1..=600;
pub(crate) const CONTEXT_TOKENS: RangeInclusive<u32> = 1_000..=1_000_000;
pub(crate) const LANGUAGES: RangeInclusive<usize> = 1..=10;
pub(crate) const SIMHASH_THRESHOLD: RangeInclusive<u8> = 0..=64;

/// How much of a wrong value a message repeats.
const SHOWN_CHARS: usize = 80;

/// What addresses must pass, besides having the right form.
type Addresses = dyn Fn(&str) -> Result<(), String> + Send + Sync;

pub(crate) fn check_change(change: &SettingsChange, plugins: &Plugins, addresses: &Addresses) -> Result<()> {
    change.models().try_for_each(|(name, entry)| check_model(name, entry, addresses))?;
    change.parsers().try_for_each(|parser| check_parser(parser, plugins))?;
    match change.dedup.and_then(|dedup| dedup.simhash_threshold) {
        Some(threshold) if !SIMHASH_THRESHOLD.contains(&threshold) => {
            Err(refuse("dedup.simhash_threshold", &format!("is {threshold}; allowed is 0 to 64")))
        }
        _ => Ok(()),
    }
}

/// Checks the change of the model entry `name`.
pub(crate) fn check_model(name: &str, change: &ModelEntryChange, addresses: &Addresses) -> Result<()> {
    let refuse = |field: &str, reason: String| refuse(&format!("models.{name}.{field}"), &reason);
    if let Some(model) = &change.model {
        check_model_name(model).map_err(|reason| refuse("model", reason))?;
    }
    if let Some(base_url) = &change.base_url {
        check_base_url(base_url.trim(), addresses).map_err(|reason| refuse("base_url", reason))?;
    }
    if let KeyChange::Set(key) = &change.api_key {
        check_api_key(key).map_err(|reason| refuse("api_key", reason))?;
    }
    if let Some(timeout) = change.timeout_s.filter(|timeout| !TIMEOUT_S.contains(timeout)) {
        return Err(refuse("timeout_s", format!("is {timeout}; allowed is 1 to 600")));
    }
    if let Some(tokens) = change.context_tokens.filter(|tokens| !CONTEXT_TOKENS.contains(tokens)) {
        return Err(refuse("context_tokens", format!("is {tokens}; allowed is 1000 to 1000000")));
    }
    Ok(())
}

fn check_parser(change: ParserChange<'_>, plugins: &Plugins) -> Result<()> {
    let path = format!("parsers.{}", change.kind.name());
    let built_in = plugins.of(change.kind);
    if let Some(plugin) = change.plugin.filter(|plugin| !built_in.iter().any(|known| known == plugin)) {
        let reason = format!("is {}; built in: {}", shown(plugin), built_in.join(", "));
        return Err(refuse(&format!("{path}.plugin"), &reason));
    }
    change
        .languages
        .map_or(Ok(()), check_languages)
        .map_err(|reason| refuse(&format!("{path}.languages"), &reason))
}

/// Refuses languages that text in images cannot be read in here, as the change would have it: whoever asks for one is
/// told now, and not by documents that lack their text.
pub(crate) fn check_ocr(change: &SettingsChange, after: &OcrChoice, plugins: &Plugins) -> Result<()> {
    let ocr = change.parsers.as_ref().and_then(|parsers| parsers.ocr.as_ref());
    let is_named = ocr.is_some_and(|ocr| ocr.plugin.is_some() || ocr.languages.is_some());
    let missing = plugins.missing_languages(after);
    if !is_named || missing.is_empty() {
        return Ok(());
    }
    let here = plugins.ocr_languages.as_deref().unwrap_or_default().join(", ");
    let reason = format!(
        "has {}, of which {} has nothing installed; installed: {here}",
        missing.join(", "),
        after.plugin
    );
    Err(refuse("parsers.ocr.languages", &reason))
}

fn check_languages(codes: &[String]) -> Result<(), String> {
    if !LANGUAGES.contains(&codes.len()) {
        return Err(format!("has {} entries; allowed are 1 to 10", codes.len()));
    }
    match codes.iter().find(|code| !languages::codes().any(|known| known == *code)) {
        Some(code) => Err(format!("has {}; allowed are the two-letter codes of ISO 639-1", shown(code))),
        None => Ok(()),
    }
}

fn check_model_name(model: &str) -> Result<(), String> {
    match model.chars().count() {
        chars if chars > MODEL_CHARS => Err(format!("has {chars} characters; allowed are 200")),
        _ if model.chars().any(char::is_control) => {
            Err(format!("is {}; control characters are not allowed", shown(model)))
        }
        _ => Ok(()),
    }
}

/// Checks an address that is not surrounded by white space.
///
/// Other programs may read odd addresses in another way than this one does, so only the plain form passes. What may
/// hold a password is not repeated: that is all text around an `@`, and the query and fragment.
fn check_base_url(text: &str, addresses: &Addresses) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    let chars = text.chars().count();
    if chars > BASE_URL_CHARS {
        return Err(format!("has {chars} characters; allowed are 2048"));
    }
    if text.contains(|c: char| c == '\\' || c.is_whitespace() || c.is_control()) {
        return Err("has a backslash, white space or a control character".to_owned());
    }
    let url = Url::parse(text).map_err(|error| format!("is not an address: {error}"))?;
    if text.contains(['?', '#']) {
        return Err("has a query or a fragment; neither is allowed".to_owned());
    }
    let host = host_text(text);
    if host.unwrap_or(text).contains('@') {
        return Err("has user info before the host; send a key as api_key".to_owned());
    }
    if host.is_none() || !url.has_host() {
        return Err(format!("is {}; allowed is http://HOST or https://HOST", shown(text)));
    }
    addresses(text)
}

/// The text between `http://` or `https://` and the path; `None` where the address has not this form.
fn host_text(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://")?;
    let known = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    rest.split('/').next().filter(|host| known && !host.is_empty())
}

fn check_api_key(key: &Secret) -> Result<(), String> {
    let key = key.expose();
    if key == MASK {
        return Err("is the mask that stands for a stored key".to_owned());
    }
    let visible = key.bytes().all(|byte| byte.is_ascii_graphic());
    if key.is_empty() || key.len() > API_KEY_CHARS || !visible {
        return Err("is not 1 to 4096 visible ASCII characters".to_owned());
    }
    Ok(())
}

fn refuse(path: &str, reason: &str) -> Error {
    Error::invalid("change settings", format!("{path} {reason}"))
}

/// The beginning of a value, quoted.
fn shown(value: &str) -> String {
    let mut chars = value.chars();
    let start: String = chars.by_ref().take(SHOWN_CHARS).collect();
    let more = if chars.next().is_some() { "…" } else { "" };
    format!("{start:?}{more}")
}
