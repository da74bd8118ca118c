//! Scores equal those of the reference library. Unusable model folders are refused with an error that names the defect.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "the helpers of tests may fail as the tests do"
)]

#[path = "support/common.rs"]
mod common;

use std::{collections::BTreeMap, fs, path::Path};

use common::{copy, fixture, open_reranker};
use lkr_models::{ErrorKind, Precision, Reranker};
use lkr_models_local::{LocalReranker, RerankOptions};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Case {
    query: String,
    passage: String,
    score: f32,
}

async fn check_family(name: &str, within: f32) {
    let folder = fixture(name);
    let cases: Vec<Case> = serde_json::from_slice(&fs::read(folder.join("expected.json")).unwrap()).unwrap();
    let mut by_query: BTreeMap<&str, Vec<&Case>> = BTreeMap::new();
    for case in &cases {
        by_query.entry(&case.query).or_default().push(case);
    }
    assert!(by_query.len() > 1);
    let reranker = open_reranker(&folder);
    for (query, cases) in by_query {
        let passages: Vec<String> = cases.iter().map(|case| case.passage.clone()).collect();
        let scores = reranker.rerank(query, &passages).await.unwrap();
        for (score, case) in scores.iter().zip(&cases) {
            let about = format!("{query:?} {:?}: {score}, not {}", case.passage, case.score);
            assert!((score - case.score).abs() < within, "{about}");
        }
        // The comparison is meaningful only if scores differ by far more than the tolerance.
        let (least, most) = scores.iter().fold((f32::MAX, f32::MIN), |(a, b), x| (a.min(*x), b.max(*x)));
        assert!(most - least > 20.0 * within, "{query:?}: {scores:?}");
    }
    assert_eq!(reranker.profile().name, name);
}

#[tokio::test]
async fn bert_matches_the_reference_scores() {
    check_family("tiny-bert-reranker", 1e-4).await;
}

/// Weights by lot suffer more from rounding than trained ones.
#[tokio::test]
async fn scores_of_8_bit_integers_are_near_the_reference_scores() {
    check_precision(Precision::Int8, 10.0).await;
}

#[tokio::test]
async fn scores_of_bf16_are_near_the_reference_scores() {
    check_precision(Precision::Bf16, 50.0).await;
}

/// On average, the error is less than so small a part of the range of the scores.
async fn check_precision(precision: Precision, part: f32) {
    let options = RerankOptions { precision, ..RerankOptions::default() };
    for name in ["tiny-bert-reranker", "tiny-distilbert-reranker", "tiny-modernbert-reranker"] {
        let folder = fixture(name);
        let reranker = LocalReranker::open(&folder, &options).unwrap();
        let cases: Vec<Case> =
            serde_json::from_slice(&fs::read(folder.join("expected.json")).unwrap()).unwrap();
        let mut errors = Vec::new();
        for case in &cases {
            let score = reranker.rerank(&case.query, std::slice::from_ref(&case.passage)).await.unwrap()[0];
            errors.push((score - case.score).abs());
        }
        let (least, most) =
            cases.iter().fold((f32::MAX, f32::MIN), |(a, b), x| (a.min(x.score), b.max(x.score)));
        let mean = errors.iter().sum::<f32>() / errors.len() as f32;
        assert!(mean < (most - least) / part, "{name}: {mean} in scores from {least} to {most}");
        assert!(mean > 1e-5, "{name} computes in another precision");
        assert_ne!(reranker.profile().id, open_reranker(&folder).profile().id, "it is another model");
    }
}

#[tokio::test]
async fn xlm_roberta_matches_the_reference_scores() {
    check_family("tiny-xlm-roberta-reranker", 1e-4).await;
}

#[tokio::test]
async fn distilbert_matches_the_reference_scores() {
    check_family("tiny-distilbert-reranker", 1e-4).await;
}

#[tokio::test]
async fn modernbert_matches_the_reference_scores() {
    check_family("tiny-modernbert-reranker", 1e-4).await;
}

#[tokio::test]
async fn modernbert_with_a_head_of_modules_matches_the_reference_scores() {
    check_family("tiny-modernbert-modules-reranker", 1e-4).await;
}

fn set(dir: &Path, file: &str, key: &str, value: Value) {
    let path = dir.join(file);
    let mut content: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    content[key] = value;
    fs::write(path, content.to_string()).unwrap();
}

fn assert_refused(dir: &Path, expected: &str) {
    let error = LocalReranker::open(dir, &RerankOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(error.to_string().contains(expected), "{error} does not contain {expected:?}");
}

#[test]
fn missing_or_damaged_file_is_named_in_the_error() {
    assert_refused(Path::new("/nonexistent/model"), "config.json");
    for file in ["config.json", "tokenizer.json", "model.safetensors"] {
        let dir = copy("tiny-bert-reranker");
        fs::write(dir.path().join(file), "{ \"cut").unwrap();
        assert_refused(dir.path(), file);
        fs::remove_file(dir.path().join(file)).unwrap();
        assert_refused(dir.path(), file);
    }
}

#[test]
fn folder_of_another_model_is_refused() {
    for (key, value, expected) in [
        ("architectures", json!(["BertModel"]), "BertModel is not a reranker"),
        ("id2label", json!({ "0": "no", "1": "yes" }), "2 labels"),
        ("id2label", json!(null), "2 labels"),
        ("max_position_embeddings", json!("many"), "max_position_embeddings: invalid type"),
        ("model_type", json!("deberta-v2"), "deberta-v2"),
        ("model_type", json!("xlm-roberta"), "classifier.dense.weight is missing"),
    ] {
        let dir = copy("tiny-bert-reranker");
        set(dir.path(), "config.json", key, value);
        assert_refused(dir.path(), expected);
    }
    let config_file = "config_sentence_transformers.json";
    for (file, key, value, expected) in [
        (config_file, "activation_fn", json!("torch.nn.modules.activation.Tanh"), "Tanh"),
        (config_file, "default_prompt_name", json!("query"), "default_prompt_name query"),
    ] {
        let dir = copy("tiny-bert-reranker");
        set(dir.path(), file, key, value);
        assert_refused(dir.path(), expected);
    }
    let dir = copy("tiny-bert-reranker");
    fs::copy(fixture("tiny-bert-mean").join("modules.json"), dir.path().join("modules.json")).unwrap();
    assert_refused(dir.path(), "Pooling");
    // An embedding model has no classification head.
    assert_refused(&fixture("tiny-bert-mean"), "modules with 32 results");
    assert_refused(&fixture("tiny-bert-dense"), "modules with 48 results");
    let dir = copy("tiny-bert-reranker");
    set(dir.path(), "tokenizer_config.json", "model_max_length", json!(3));
    assert_refused(dir.path(), "limit of 3");
}

#[test]
fn reranker_whose_scores_are_not_finite_is_refused() {
    let dir = copy("tiny-bert-reranker");
    set(dir.path(), "config.json", "layer_norm_eps", json!(-1.0));
    assert_refused(dir.path(), "it cannot encode a short text: ");
}

#[test]
fn unsupported_head_is_named_in_the_error() {
    let name = "tiny-modernbert-reranker";
    for (key, value, expected) in [
        ("classifier_pooling", json!("max"), "classifier_pooling max"),
        ("classifier_pooling", json!(null), "classifier_pooling"),
        ("classifier_activation", json!("mish"), "classifier_activation mish"),
        ("architectures", json!(["ModernBertModel"]), "ModernBertModel is not a reranker"),
        ("norm_bias", json!(true), "head.norm.bias is missing"),
    ] {
        let dir = copy(name);
        set(dir.path(), "config.json", key, value);
        assert_refused(dir.path(), expected);
    }
    let dir = copy("tiny-distilbert-reranker");
    set(dir.path(), "config.json", "model_type", json!("bert"));
    assert_refused(dir.path(), "hidden_size");
    for (key, value, expected) in [
        ("module_output_name", json!("sentence_embedding"), "only scores"),
        ("out_features", json!(2), "shape [1, 32], not [2, 32]"),
        ("activation_function", json!("torch.nn.modules.activation.Mish"), "Mish"),
    ] {
        let dir = copy("tiny-modernbert-modules-reranker");
        set(dir.path(), "4_Dense/config.json", key, value);
        assert_refused(dir.path(), expected);
    }
}

#[tokio::test]
async fn activation_is_read_from_the_folder() {
    let (passages, query) = (vec!["The council approved the budget.".to_owned()], "which budget");
    let mut scores = Vec::new();
    let mut ids = Vec::new();
    let (sigmoid, identity) = ("torch.nn.modules.activation.Sigmoid", "torch.nn.modules.linear.Identity");
    // The keys of different library versions, the newest first. The last case sets no activation.
    for (file, key, value) in [
        ("config_sentence_transformers.json", "activation_fn", json!(identity)),
        ("config_sentence_transformers.json", "activation_fn", json!(sigmoid)),
        ("config.json", "sentence_transformers", json!({ "activation_fn": identity })),
        ("config.json", "sbert_ce_default_activation_function", json!(identity)),
        ("config.json", "unset", json!(null)),
    ] {
        let dir = copy("tiny-bert-reranker");
        set(dir.path(), "config_sentence_transformers.json", "activation_fn", json!(null));
        set(dir.path(), file, key, value);
        let reranker = open_reranker(dir.path());
        scores.push(reranker.rerank(query, &passages).await.unwrap()[0]);
        ids.push(reranker.profile().id.clone());
    }
    let [identity, sigmoid, older, oldest, unset] = scores[..] else { panic!("{scores:?}") };
    assert!((sigmoid - 1.0 / (1.0 + (-identity).exp())).abs() < 1e-6, "{scores:?}");
    assert_eq!((older, oldest, unset), (identity, identity, sigmoid));
    assert_ne!(ids[0], ids[1], "another activation gives another id");
    assert_eq!(ids[0], ids[3]);
}
