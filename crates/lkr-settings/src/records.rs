//! The stored record: only values that were set, under one key. The record carries its format version.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{DedupStrategy, Error, ErrorKind, Provider, Result};

/// The key of the record.
pub(crate) const KEY: &str = "settings";

/// Version 1 of the settings. Entry names are free, so entries of a later version of the program are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SettingsV1 {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) models: BTreeMap<String, ModelV1>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) parsers: BTreeMap<String, ParserV1>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) dedup: DedupV1,
}

/// Version 1 of a model entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ModelV1 {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) provider: Option<Provider>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) base_url: Option<String>,
    /// Sealed for the place [`key_place`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) api_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) timeout_s: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) context_tokens: Option<u32>,
}

/// Version 1 of a parser entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ParserV1 {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) plugin: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) languages: Option<Vec<String>>,
}

/// Version 1 of the duplicate detection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DedupV1 {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) strategy: Option<DedupStrategy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) simhash_threshold: Option<u8>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "v")]
enum Versioned<T> {
    #[serde(rename = "1")]
    V1(T),
}

/// The place that the key of the model entry `name` is sealed for.
pub(crate) fn key_place(name: &str) -> String {
    format!("models.{name}.api_key")
}

pub(crate) fn encode(settings: &SettingsV1) -> Result<Vec<u8>> {
    serde_json::to_vec(&Versioned::V1(settings)).map_err(|e| Error::internal("write settings record", e))
}

pub(crate) fn decode(bytes: &[u8]) -> Result<SettingsV1> {
    // The cause is left out, because it may quote the record.
    let Versioned::V1(settings) = serde_json::from_slice(bytes)
        .map_err(|_| Error::new(ErrorKind::Corrupt, "read settings record", "the record is damaged"))?;
    Ok(settings)
}

fn is_default(dedup: &DedupV1) -> bool {
    *dedup == DedupV1::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encode_writes_only_values_that_were_set() {
        assert_eq!(encode(&SettingsV1::default()).unwrap(), br#"{"v":"1"}"#);
        let text = r#"{"v":"1","models":{"embed":{"timeout_s":5}},"dedup":{"strategy":"simhash"}}"#;
        let settings = decode(text.as_bytes()).unwrap();
        assert_eq!(settings.models["embed"].timeout_s, Some(5));
        assert_eq!(String::from_utf8(encode(&settings).unwrap()).unwrap(), text);
    }

    #[test]
    fn decode_of_a_damaged_record_fails_without_quoting_it() {
        for bytes in ["", "{}", r#"{"v":"2"}"#, r#"{"v":"1","dedup":{"strategy":"planted"}}"#, "planted"] {
            let error = decode(bytes.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{bytes}");
            assert!(!format!("{error} {error:?}").contains("planted"));
        }
    }
}
