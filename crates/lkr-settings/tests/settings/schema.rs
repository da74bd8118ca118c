//! The schema against the settings that it describes.

use std::collections::BTreeMap;

use lkr_settings::{Dedup, ModelEntry, Models, OcrChoice, Parsers, PluginChoice, RuntimeSettings, Settings};
use serde_json::{Value, json};

use crate::support::new_settings;

/// The leaf values as responses show them. No pattern has `..`, so a new field that is missing here does not compile.
fn leaves(settings: &RuntimeSettings) -> BTreeMap<String, Value> {
    let RuntimeSettings { models, parsers, dedup } = settings;
    let Models { embed, summarize, classify, rerank } = models;
    let Parsers { pdf, docx, html, ocr } = parsers;
    let Dedup { strategy, simhash_threshold } = dedup;
    let OcrChoice { plugin, languages } = ocr;
    let mut leaves = BTreeMap::new();
    let mut leaf = |path: String, value: Value| assert!(leaves.insert(path, value).is_none());
    for (name, entry) in
        [("embed", embed), ("summarize", summarize), ("classify", classify), ("rerank", rerank)]
    {
        let ModelEntry { provider, model, base_url, api_key, timeout_s, context_tokens } = entry;
        leaf(format!("models.{name}.provider"), json!(provider));
        leaf(format!("models.{name}.model"), json!(model));
        leaf(format!("models.{name}.base_url"), json!(base_url));
        leaf(format!("models.{name}.api_key"), json!(api_key.is_stored().then_some("********")));
        leaf(format!("models.{name}.timeout_s"), json!(timeout_s));
        leaf(format!("models.{name}.context_tokens"), json!(context_tokens));
    }
    for (name, PluginChoice { plugin }) in [("pdf", pdf), ("docx", docx), ("html", html)] {
        leaf(format!("parsers.{name}.plugin"), json!(plugin));
    }
    leaf("parsers.ocr.plugin".to_owned(), json!(plugin));
    leaf("parsers.ocr.languages".to_owned(), json!(languages));
    leaf("dedup.strategy".to_owned(), json!(strategy));
    leaf("dedup.simhash_threshold".to_owned(), json!(simhash_threshold));
    leaves
}

/// Collects the leaves below `schema`. Checks that each object requires all its properties and allows no others.
fn schema_leaves(path: &str, schema: &Value, leaves: &mut BTreeMap<String, Value>) {
    assert!(schema["description"].as_str().is_some_and(|text| text.ends_with('.')), "{path}");
    let Some(properties) = schema["properties"].as_object() else {
        assert!(schema.get("default").is_some(), "{path}");
        leaves.insert(path.to_owned(), schema.clone());
        return;
    };
    assert_eq!(schema["type"], "object", "{path}");
    assert_eq!(schema["additionalProperties"], false, "{path}");
    assert_eq!(schema.get("default"), None, "{path}");
    let required = schema["required"].as_array().unwrap();
    assert!(required.len() == properties.len(), "{path}");
    assert!(required.iter().all(|name| properties.contains_key(name.as_str().unwrap())), "{path}");
    for (name, property) in properties {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        schema_leaves(&path, property, leaves);
    }
}

fn leaves_of(settings: &Settings) -> BTreeMap<String, Value> {
    let mut leaves = BTreeMap::new();
    schema_leaves("", &settings.schema(), &mut leaves);
    leaves
}

#[tokio::test]
async fn schema_lists_exactly_the_settings_with_their_defaults() {
    let (settings, _) = new_settings();
    let defaults: BTreeMap<_, _> = leaves_of(&settings)
        .into_iter()
        .map(|(path, mut schema)| {
            let default = schema["default"].take();
            (path, default)
        })
        .collect();
    assert_eq!(defaults, leaves(&settings.current().await.unwrap().settings));
}

#[test]
fn schema_states_allowed_values_and_limits() {
    let (settings, _) = new_settings();
    let leaves = leaves_of(&settings);
    assert_eq!(settings.schema()["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(leaves["parsers.pdf.plugin"]["enum"], json!(settings.plugins().pdf));
    assert_eq!(leaves["parsers.docx.plugin"]["enum"], json!(settings.plugins().docx));
    assert_eq!(leaves["parsers.html.plugin"]["enum"], json!(settings.plugins().html));
    assert_eq!(leaves["parsers.ocr.plugin"]["enum"], json!(["none", "ocr-b"]));
    assert_eq!(leaves["models.embed.provider"]["enum"], json!(["local_llm", "remote_compatible", null]));
    assert_eq!(leaves["dedup.strategy"]["enum"], json!(["none", "sha256", "simhash"]));
    let bounds = |path: &str| [&leaves[path]["minimum"], &leaves[path]["maximum"]].map(Value::as_u64);
    assert_eq!(bounds("dedup.simhash_threshold"), [Some(0), Some(64)]);
    assert_eq!(bounds("models.rerank.timeout_s"), [Some(1), Some(600)]);
    assert_eq!(leaves["models.embed.model"]["maxLength"], 200);
    assert_eq!(leaves["models.embed.base_url"]["maxLength"], 2048);
    assert_eq!(leaves["models.embed.api_key"]["maxLength"], 4096);
    assert_eq!(leaves["models.embed.api_key"]["type"], json!(["string", "null"]));
    let languages = &leaves["parsers.ocr.languages"];
    assert_eq!([&languages["minItems"], &languages["maxItems"]].map(Value::as_u64), [Some(1), Some(10)]);
    assert_eq!(languages["items"]["enum"].as_array().unwrap().len(), 183);
}
