//! Refused values: the messages, and that nothing is stored.

use std::sync::Arc;

use lkr_settings::{
    ErrorKind, IfMatch, KeyChange, ModelEntryChange, OcrChange, ParsersChange, PluginChange, Plugins,
    Settings, SettingsChange,
};
use lkr_state::{MemoryState, StateStore, StateStoreExt};

use crate::support::{
    base_url_change, key_change, kind_of, new_settings, open, plugins as built_in_plugins, sealing_key,
    summarize_change, threshold_change,
};

/// The message of the refusal of `change`.
async fn refusal(change: SettingsChange) -> String {
    let (settings, state) = new_settings();
    let error = settings.update(&change, &IfMatch::Any, vec![]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(state.get("settings").await.unwrap().is_none(), "nothing was stored");
    let message = error.to_string();
    assert!(message.len() < 800, "{message}");
    message.strip_prefix("change settings: ").unwrap().to_owned()
}

async fn is_allowed(change: SettingsChange) {
    let (settings, _) = new_settings();
    let result = settings.update(&change, &IfMatch::Any, vec![]).await;
    assert!(result.is_ok(), "{change:?}: {result:?}");
}

fn model(model: impl Into<String>) -> SettingsChange {
    summarize_change(ModelEntryChange { model: Some(model.into()), ..Default::default() })
}

fn timeout(timeout_s: u32) -> SettingsChange {
    summarize_change(ModelEntryChange { timeout_s: Some(timeout_s), ..Default::default() })
}

fn base_url(text: &str) -> SettingsChange {
    summarize_change(base_url_change(text, KeyChange::Keep))
}

fn parsers(parsers: ParsersChange) -> SettingsChange {
    SettingsChange { parsers: Some(parsers), ..Default::default() }
}

fn languages(codes: &[&str]) -> SettingsChange {
    let languages = Some(codes.iter().map(|&code| code.to_owned()).collect());
    parsers(ParsersChange { ocr: Some(OcrChange { plugin: None, languages }), ..Default::default() })
}

#[tokio::test]
async fn plugins_that_are_not_built_in_are_refused() {
    let one = |plugin: &str| Some(PluginChange { plugin: Some(plugin.to_owned()) });
    let pdf = refusal(parsers(ParsersChange { pdf: one("other"), ..Default::default() })).await;
    assert_eq!(pdf, "parsers.pdf.plugin is \"other\"; built in: pdf-a, pdf-b");
    let docx = refusal(parsers(ParsersChange { docx: one("pdf-a"), ..Default::default() })).await;
    assert_eq!(docx, "parsers.docx.plugin is \"pdf-a\"; built in: docx-a, docx-b");
    let html = refusal(parsers(ParsersChange { html: one(""), ..Default::default() })).await;
    assert_eq!(html, "parsers.html.plugin is \"\"; built in: html-a, html-b");
    let ocr = Some(OcrChange { plugin: Some("x\n".repeat(500)), languages: None });
    let ocr = refusal(parsers(ParsersChange { ocr, ..Default::default() })).await;
    assert!(ocr.starts_with(r#"parsers.ocr.plugin is "x\nx\n"#), "{ocr}");
    assert!(ocr.ends_with("built in: none, ocr-b"), "{ocr}");
}

#[tokio::test]
async fn numbers_out_of_range_are_refused() {
    assert_eq!(refusal(threshold_change(65)).await, "dedup.simhash_threshold is 65; allowed is 0 to 64");
    let expected = "models.summarize.timeout_s is 0; allowed is 1 to 600";
    assert_eq!(refusal(timeout(0)).await, expected);
    assert_eq!(refusal(timeout(601)).await, expected.replace("is 0", "is 601"));
    let context =
        |tokens| summarize_change(ModelEntryChange { context_tokens: Some(tokens), ..Default::default() });
    let expected = "models.summarize.context_tokens is 999; allowed is 1000 to 1000000";
    assert_eq!(refusal(context(999)).await, expected);
    assert_eq!(refusal(context(1_000_001)).await, expected.replace("999;", "1000001;"));
    is_allowed(context(1_000_000)).await;
    for allowed in [threshold_change(0), threshold_change(64), timeout(1), timeout(600)] {
        is_allowed(allowed).await;
    }
}

#[tokio::test]
async fn unknown_ocr_languages_are_refused() {
    let path = "parsers.ocr.languages";
    let codes = "allowed are the two-letter codes of ISO 639-1";
    assert_eq!(refusal(languages(&[])).await, format!("{path} has 0 entries; allowed are 1 to 10"));
    assert_eq!(refusal(languages(&["en"; 11])).await, format!("{path} has 11 entries; allowed are 1 to 10"));
    for wrong in ["EN", "eng", "xx", "", "e", "en ", "en de"] {
        assert_eq!(refusal(languages(&["de", wrong])).await, format!("{path} has {wrong:?}; {codes}"));
    }
    is_allowed(languages(&["aa", "de", "en", "es", "fr", "it", "ja", "zh", "zu", "hi"])).await;
}

#[tokio::test]
async fn ocr_languages_not_installed_are_refused_when_changed() {
    let installed =
        Plugins { ocr_languages: Some(vec!["de".to_owned(), "en".to_owned()]), ..built_in_plugins() };
    let (state, key) = (new_settings().1, sealing_key());
    let settings = Settings::open(Arc::clone(&state), key, installed).unwrap();
    let update = async |plugin: Option<&str>, codes: &[&str]| {
        let languages = codes.iter().map(|&code| code.to_owned()).collect();
        let languages = Some(languages).filter(|_| !codes.is_empty());
        let ocr = Some(OcrChange { plugin: plugin.map(str::to_owned), languages });
        let change = parsers(ParsersChange { ocr, ..Default::default() });
        let updated = settings.update(&change, &IfMatch::Any, vec![]).await;
        updated.map(|after| after.settings.parsers.ocr.languages.join(" ")).map_err(|error| error.to_string())
    };
    let refused =
        "change settings: parsers.ocr.languages has fr, it, not installed for ocr-b; installed: de, en";
    // OCR is off, so no language is missing.
    assert_eq!(update(None, &["fr", "en", "it"]).await.unwrap(), "fr en it");
    assert_eq!(update(Some("ocr-b"), &[]).await.unwrap_err(), refused);
    assert_eq!(update(Some("ocr-b"), &["it", "fr"]).await.unwrap_err(), refused.replace("fr, it", "it, fr"));
    assert_eq!(update(Some("ocr-b"), &["en", "de"]).await.unwrap(), "en de");
    assert_eq!(update(None, &["fr", "de", "it"]).await.unwrap_err(), refused);
    assert_eq!(update(None, &["de"]).await.unwrap(), "de");
    assert_eq!(update(Some("none"), &["fr"]).await.unwrap(), "fr");
    // Stored languages that are not installed do not block other changes.
    let elsewhere = open(&state);
    let ocr = Some(OcrChange { plugin: Some("ocr-b".to_owned()), languages: None });
    let change = parsers(ParsersChange { ocr, ..Default::default() });
    elsewhere.update(&change, &IfMatch::Any, vec![]).await.unwrap();
    settings.update(&threshold_change(9), &IfMatch::Any, vec![]).await.unwrap();
    assert_eq!(settings.current().await.unwrap().settings.parsers.ocr.languages, ["fr"]);
}

#[tokio::test]
async fn model_names_too_long_or_with_control_characters_are_refused() {
    let long = refusal(model("x".repeat(201))).await;
    assert_eq!(long, "models.summarize.model has 201 characters; allowed are 200");
    let control = refusal(model("a\u{7f}b")).await;
    assert_eq!(control, "models.summarize.model is \"a\\u{7f}b\"; control characters are not allowed");
    for allowed in ["", "org/model:7b-q4", &"é".repeat(200)] {
        is_allowed(model(allowed)).await;
    }
}

#[tokio::test]
async fn malformed_addresses_are_refused() {
    let long = format!("http://h/{}", "x".repeat(2040));
    is_allowed(base_url(&long[..2048])).await;
    let refused = refusal(base_url(&long)).await;
    assert_eq!(refused, "models.summarize.base_url has 2049 characters; allowed are 2048");
    for allowed in [
        "",
        "  ",
        "http://localhost:11434",
        " https://models.example/v1/ ",
        "HTTP://10.0.0.1",
        "http://[::1]:80/a@b",
    ] {
        is_allowed(base_url(allowed)).await;
    }
    let shown = refusal(base_url("ftp://h/x")).await;
    assert_eq!(shown, "models.summarize.base_url is \"ftp://h/x\"; allowed is http://HOST or https://HOST");
    for wrong in [
        "localhost:11434",
        "models.example",
        "/v1",
        "http://",
        "https:///v1",
        "http:/h",
        "http:h",
        "file:///etc/passwd",
        "data:x",
        "http://h:99999",
        "http://[::1",
        "http:\\\\h",
        "http://h\\x",
        "http://a b",
        "ht\ntp://h",
        "http://h\u{a0}x",
        "http://h\0",
        "javascript:alert(1)",
    ] {
        let reason = refusal(base_url(wrong)).await;
        assert!(reason.starts_with("models.summarize.base_url "), "{reason}");
    }
}

#[tokio::test]
async fn lesson_26_addresses_must_pass_the_given_check() {
    let state: Arc<dyn StateStore> = Arc::new(MemoryState::new());
    let check = |address: &str| match address.contains("forbidden") {
        true => Err("is forbidden".to_owned()),
        false => Ok(()),
    };
    let settings =
        Settings::open_checking(state, sealing_key(), built_in_plugins(), Arc::new(check)).unwrap();
    let entry = |address| base_url_change(address, KeyChange::Keep);
    let change = |address| summarize_change(entry(address));
    for address in ["http://forbidden/v1", " http://forbidden/v1 "] {
        let error = settings.update(&change(address), &IfMatch::Any, vec![]).await.unwrap_err();
        assert_eq!(error.to_string(), "change settings: models.summarize.base_url is forbidden");
        assert_eq!(kind_of(settings.preview("rerank", &entry(address)).await), ErrorKind::Invalid);
    }
    for address in ["http://allowed/v1", ""] {
        settings.update(&change(address), &IfMatch::Any, vec![]).await.unwrap();
    }
}

#[tokio::test]
async fn messages_do_not_quote_addresses_with_secrets() {
    for (wrong, reason) in [
        ("http://user:planted@h", "user info"),
        ("http://planted@h/x", "user info"),
        ("http://@planted", "user info"),
        ("http://a@b@planted/", "user info"),
        ("ftp://user:planted@h", "user info"),
        ("http:user:planted@h", "user info"),
        ("http:///user:planted@h", "user info"),
        ("http:/user:planted@h", "user info"),
        ("mailto:planted@h", "user info"),
        ("http://h/?key=planted", "a query"),
        ("http://h#planted", "a query"),
        ("http://h?", "a query"),
        ("ftp://user:planted@h/?x", "a query"),
        ("http://user:planted@", "not an address"),
        ("http://user:planted@h:port", "not an address"),
        ("planted", "not an address"),
        ("http://user:planted\\@h", "a backslash"),
    ] {
        let refused = refusal(base_url(wrong)).await;
        assert!(refused.contains(reason), "{wrong}: {refused}");
        assert!(!refused.contains("planted"), "{refused}");
    }
}

#[tokio::test]
async fn invalid_keys_are_refused_without_quoting_them() {
    let long = "planted".repeat(600);
    for wrong in ["", " ", " planted", "planted ", "plan ted", "planted\n", "plantéd", "\u{7f}planted", &long]
    {
        let refused = refusal(summarize_change(key_change(wrong))).await;
        assert_eq!(refused, "models.summarize.api_key is not 1 to 4096 visible ASCII characters");
    }
    let mask = refusal(summarize_change(key_change("********"))).await;
    assert_eq!(mask, "models.summarize.api_key is the mask that responses show for a stored key");
    for allowed in ["x", "sk-!~\"'{}", &long[..4096]] {
        is_allowed(summarize_change(key_change(allowed))).await;
    }
}

#[tokio::test]
async fn change_with_one_invalid_value_stores_nothing() {
    let mut change = summarize_change(key_change("sk-planted"));
    change.dedup = threshold_change(65).dedup;
    let refused = refusal(change).await;
    assert!(refused.starts_with("dedup.simhash_threshold"), "{refused}");
}
