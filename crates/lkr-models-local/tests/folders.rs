//! Unusable model folders are refused with an error that names the defect.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "the helpers of tests may fail as the tests do"
)]

#[path = "support/common.rs"]
mod common;

use std::fs;
use std::path::Path;

use common::fixture;
use lkr_models::ErrorKind;
use lkr_models_local::{LocalEmbedder, LocalOptions};
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A copy of a fixture that a test can damage.
fn copy(name: &str) -> TempDir {
    fn walk(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
            let target = to.join(entry.file_name());
            if entry.path().is_dir() {
                walk(&entry.path(), &target);
            } else {
                fs::copy(entry.path(), target).unwrap();
            }
        }
    }
    let dir = TempDir::new().unwrap();
    walk(&fixture(name), dir.path());
    dir
}

/// Opening fails with a configuration error whose message contains `expected`.
fn assert_refused(dir: &Path, expected: &str) {
    let error = LocalEmbedder::open(dir, LocalOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(!error.is_retryable());
    assert!(error.to_string().contains(expected), "{error} does not contain {expected:?}");
}

fn set(dir: &Path, file: &str, key: &str, value: Value) {
    let path = dir.join(file);
    let mut content: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    content[key] = value;
    fs::write(path, content.to_string()).unwrap();
}

#[test]
fn missing_folder_or_file_is_named_in_the_error() {
    assert_refused(Path::new("/nonexistent/model"), "modules.json");
    for file in
        ["modules.json", "config.json", "tokenizer.json", "model.safetensors", "1_Pooling/config.json"]
    {
        let dir = copy("tiny-bert-mean");
        fs::remove_file(dir.path().join(file)).unwrap();
        assert_refused(dir.path(), file);
    }
}

#[test]
fn invalid_json_file_is_named_in_the_error() {
    let files = [
        "modules.json",
        "config.json",
        "tokenizer.json",
        "1_Pooling/config.json",
        "sentence_bert_config.json",
    ];
    for file in files {
        let dir = copy("tiny-bert-mean");
        fs::write(dir.path().join(file), "{ \"cut").unwrap();
        assert_refused(dir.path(), file);
    }
}

#[test]
fn unsupported_setting_is_named_in_the_error() {
    let cases = [
        ("config.json", "model_type", json!("mpnet"), "model_type mpnet"),
        ("config.json", "hidden_act", json!("swish"), "hidden_act swish"),
        ("config.json", "position_embedding_type", json!("relative_key"), "relative_key"),
        ("config.json", "is_decoder", json!(true), "is_decoder"),
        ("config.json", "num_attention_heads", json!(0), "sizes"),
        ("config.json", "num_attention_heads", json!(5), "sizes"),
        ("config.json", "num_hidden_layers", json!(3), "encoder.layer.2"),
        ("config.json", "vocab_size", json!(7), "word_embeddings"),
        ("config.json", "hidden_size", json!(u64::MAX), "sizes"),
        ("1_Pooling/config.json", "pooling_mode", json!("lasttoken"), "lasttoken"),
        ("1_Pooling/config.json", "pooling_mode", json!(["cls", "mean"]), "pooling_mode"),
        ("1_Pooling/config.json", "pooling_mode_cls_token", json!(true), "cls_token"),
        ("1_Pooling/config.json", "include_prompt", json!(false), "include_prompt"),
        ("sentence_bert_config.json", "max_seq_length", json!(2), "limit of 2"),
    ];
    for (file, key, value, expected) in cases {
        let dir = copy("tiny-bert-mean");
        set(dir.path(), file, key, value);
        assert_refused(dir.path(), expected);
    }
}

#[test]
fn dense_module_is_refused() {
    let dir = copy("tiny-bert-mean");
    let path = dir.path().join("modules.json");
    let mut modules: Vec<Value> = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    modules.push(
        json!({"idx": 3, "name": "3", "path": "3_Dense", "type": "sentence_transformers.models.Dense"}),
    );
    fs::write(path, json!(modules).to_string()).unwrap();
    assert_refused(dir.path(), "models.Dense");
}

#[test]
fn missing_default_prompt_is_refused() {
    let dir = copy("tiny-bert-cls");
    set(dir.path(), "config_sentence_transformers.json", "default_prompt_name", json!("none such"));
    set(dir.path(), "config_sentence_transformers.json", "prompts", json!({}));
    assert_refused(dir.path(), "none such");
}

#[test]
fn weights_with_wrong_shape_or_type_are_refused() {
    let dir = copy("tiny-bert-mean");
    set(dir.path(), "config.json", "intermediate_size", json!(64));
    assert_refused(dir.path(), "intermediate.dense.weight has shape [48, 32], not [64, 32]");

    let dir = copy("tiny-bert-mean");
    let path = dir.path().join("model.safetensors");
    let mut bytes = fs::read(&path).unwrap();
    // The header is ASCII: the first tensor's type becomes an integer of the same width.
    let at = bytes.windows(5).position(|window| window == b"\"F32\"").unwrap();
    bytes[at..at + 5].copy_from_slice(b"\"I32\"");
    fs::write(&path, bytes).unwrap();
    assert_refused(dir.path(), "I32");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn truncated_weights_are_refused(keep in 0.0f64..1.0) {
        let dir = copy("tiny-bert-mean");
        let path = dir.path().join("model.safetensors");
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..(bytes.len() as f64 * keep) as usize]).unwrap();
        assert_refused(dir.path(), "model.safetensors");
    }

    /// Opening a file with a damaged header returns, and never panics.
    #[test]
    fn damaged_header_does_not_panic(at in 0usize..3000, byte: u8) {
        let dir = copy("tiny-bert-mean");
        let path = dir.path().join("model.safetensors");
        let mut bytes = fs::read(&path).unwrap();
        bytes[at] = byte;
        fs::write(&path, bytes).unwrap();
        let _ = LocalEmbedder::open(dir.path(), LocalOptions::default());
    }
}

#[test]
fn options_override_the_folder_and_change_the_id() {
    let folder = fixture("tiny-bert-cls");
    let open = |options| LocalEmbedder::open(&folder, options).unwrap();
    use lkr_models::Embedder;
    let plain = open(LocalOptions::default());
    let prefixed = open(LocalOptions { passage_prefix: Some("title: ".into()), ..LocalOptions::default() });
    let scaled =
        open(LocalOptions { cosine_scale: Some(12.0), passage_threads: 0, ..LocalOptions::default() });
    assert_ne!(plain.profile().id, prefixed.profile().id);
    assert_eq!(plain.profile().id, scaled.profile().id);
    assert_eq!((plain.profile().cosine_scale, scaled.profile().cosine_scale), (None, Some(12.0)));
}
