//! The allowed values. A change is checked completely before any part of it is applied.

use std::ops::RangeInclusive;

use url::Url;

use crate::{
    Error, KeyChange, MASK, ModelEntryChange, OcrChoice, Plugins, Result, Secret, SettingsChange,
    change::ParserChange, iso_639,
};

// The limits are published in the schema. They were chosen, not measured.
pub(crate) const MODEL_CHARS: usize = 200;
pub(crate) const BASE_URL_CHARS: usize = 2048;
pub(crate) const API_KEY_CHARS: usize = 4096;
pub(crate) const TIMEOUT_S: RangeInclusive<u32> = 1..=600;
pub(crate) const CONTEXT_TOKENS: RangeInclusive<u32> = 1_000..=1_000_000;
pub(crate) const LANGUAGES: RangeInclusive<usize> = 1..=10;
pub(crate) const SIMHASH_THRESHOLD: RangeInclusive<u8> = 0..=64;

/// How many characters of a wrong value an error message quotes.
const SHOWN_CHARS: usize = 80;

/// An additional check of addresses.
type CheckAddress = dyn Fn(&str) -> Result<(), String> + Send + Sync;

pub(crate) fn check_change(
    change: &SettingsChange,
    plugins: &Plugins,
    check_address: &CheckAddress,
) -> Result<()> {
    change.models().try_for_each(|(name, entry)| check_model(name, entry, check_address))?;
    change.parsers().try_for_each(|parser| check_parser(parser, plugins))?;
    match change.dedup.and_then(|dedup| dedup.simhash_threshold) {
        Some(threshold) if !SIMHASH_THRESHOLD.contains(&threshold) => {
            Err(invalid("dedup.simhash_threshold", &format!("is {threshold}; allowed is 0 to 64")))
        }
        _ => Ok(()),
    }
}

/// Checks the change of the model entry `name`.
pub(crate) fn check_model(name: &str, change: &ModelEntryChange, check_address: &CheckAddress) -> Result<()> {
    let invalid = |field: &str, reason: String| invalid(&format!("models.{name}.{field}"), &reason);
    if let Some(model) = &change.model {
        check_model_name(model).map_err(|reason| invalid("model", reason))?;
    }
    if let Some(base_url) = &change.base_url {
        check_base_url(base_url.trim(), check_address).map_err(|reason| invalid("base_url", reason))?;
    }
    if let KeyChange::Set(key) = &change.api_key {
        check_api_key(key).map_err(|reason| invalid("api_key", reason))?;
    }
    if let Some(timeout) = change.timeout_s.filter(|timeout| !TIMEOUT_S.contains(timeout)) {
        return Err(invalid("timeout_s", format!("is {timeout}; allowed is 1 to 600")));
    }
    if let Some(tokens) = change.context_tokens.filter(|tokens| !CONTEXT_TOKENS.contains(tokens)) {
        return Err(invalid("context_tokens", format!("is {tokens}; allowed is 1000 to 1000000")));
    }
    Ok(())
}

fn check_parser(change: ParserChange<'_>, plugins: &Plugins) -> Result<()> {
    let path = format!("parsers.{}", change.kind.name());
    let built_in = plugins.for_kind(change.kind);
    if let Some(plugin) = change.plugin.filter(|plugin| !built_in.iter().any(|name| name == plugin)) {
        let reason = format!("is {}; built in: {}", quote(plugin), built_in.join(", "));
        return Err(invalid(&format!("{path}.plugin"), &reason));
    }
    change
        .languages
        .map_or(Ok(()), check_languages)
        .map_err(|reason| invalid(&format!("{path}.languages"), &reason))
}

/// Refuses OCR languages that are not installed. Without this check, documents would silently lack their text.
pub(crate) fn check_ocr(change: &SettingsChange, after: &OcrChoice, plugins: &Plugins) -> Result<()> {
    let ocr = change.parsers.as_ref().and_then(|parsers| parsers.ocr.as_ref());
    let is_named = ocr.is_some_and(|ocr| ocr.plugin.is_some() || ocr.languages.is_some());
    let missing = plugins.missing_languages(after);
    if !is_named || missing.is_empty() {
        return Ok(());
    }
    let installed = plugins.ocr_languages.as_deref().unwrap_or_default().join(", ");
    let reason =
        format!("has {}, not installed for {}; installed: {installed}", missing.join(", "), after.plugin);
    Err(invalid("parsers.ocr.languages", &reason))
}

fn check_languages(codes: &[String]) -> Result<(), String> {
    if !LANGUAGES.contains(&codes.len()) {
        return Err(format!("has {} entries; allowed are 1 to 10", codes.len()));
    }
    match codes.iter().find(|code| !iso_639::codes().any(|known_code| known_code == *code)) {
        Some(code) => Err(format!("has {}; allowed are the two-letter codes of ISO 639-1", quote(code))),
        None => Ok(()),
    }
}

fn check_model_name(model: &str) -> Result<(), String> {
    match model.chars().count() {
        chars if chars > MODEL_CHARS => Err(format!("has {chars} characters; allowed are 200")),
        _ if model.chars().any(char::is_control) => {
            Err(format!("is {}; control characters are not allowed", quote(model)))
        }
        _ => Ok(()),
    }
}

/// Checks an address. The caller has removed surrounding white space.
///
/// Programs parse unusual addresses differently, so only the plain form is allowed. Error messages do not quote text
/// that may contain a password: text around an `@`, the query and the fragment.
fn check_base_url(text: &str, check_address: &CheckAddress) -> Result<(), String> {
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
        return Err(format!("is {}; allowed is http://HOST or https://HOST", quote(text)));
    }
    check_address(text)
}

/// The text between `http://` or `https://` and the path; `None` if the address has another form.
fn host_text(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://")?;
    let is_http = ["http", "https"].iter().any(|http| scheme.eq_ignore_ascii_case(http));
    rest.split('/').next().filter(|host| is_http && !host.is_empty())
}

fn check_api_key(key: &Secret) -> Result<(), String> {
    let key = key.expose();
    if key == MASK {
        return Err("is the mask that responses show for a stored key".to_owned());
    }
    let is_visible = key.bytes().all(|byte| byte.is_ascii_graphic());
    if key.is_empty() || key.len() > API_KEY_CHARS || !is_visible {
        return Err("is not 1 to 4096 visible ASCII characters".to_owned());
    }
    Ok(())
}

fn invalid(path: &str, reason: &str) -> Error {
    Error::invalid("change settings", format!("{path} {reason}"))
}

/// The beginning of a value, in quotation marks.
fn quote(value: &str) -> String {
    let mut chars = value.chars();
    let start: String = chars.by_ref().take(SHOWN_CHARS).collect();
    let more = if chars.next().is_some() { "…" } else { "" };
    format!("{start:?}{more}")
}
