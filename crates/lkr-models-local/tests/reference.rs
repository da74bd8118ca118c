//! Vectors equal those of the reference library, which `fixtures/make.py` computed.

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

use common::{FAMILIES, assert_unit, cosine, fixture, minilm, open, open_with};
use lkr_models::{EmbedKind, Embedder, Precision};
use lkr_models_local::LocalEmbedder;
use serde::Deserialize;

#[derive(Deserialize)]
struct MiniLmCase {
    text: String,
    vector: Vec<f32>,
}

#[derive(Deserialize)]
struct Case {
    text: String,
    query: Vec<f32>,
    passage: Vec<f32>,
}

async fn check(embedder: &LocalEmbedder, kind: EmbedKind, texts: &[String], expected: &[&[f32]]) {
    let vectors = embedder.embed(kind, texts).await.unwrap();
    assert_eq!(vectors.len(), expected.len());
    for ((text, vector), expected) in texts.iter().zip(&vectors).zip(expected) {
        assert_unit(embedder, vector);
        let cosine = cosine(vector, expected);
        assert!(cosine >= 0.9999, "{kind:?} {text:?}: cosine {cosine}");
    }
}

async fn check_family(name: &str) {
    let folder = fixture(name);
    let cases: Vec<Case> = serde_json::from_slice(&fs::read(folder.join("expected.json")).unwrap()).unwrap();
    let texts: Vec<String> = cases.iter().map(|case| case.text.clone()).collect();
    let embedder = open(&folder);
    let queries: Vec<&[f32]> = cases.iter().map(|case| case.query.as_slice()).collect();
    let passages: Vec<&[f32]> = cases.iter().map(|case| case.passage.as_slice()).collect();
    check(&embedder, EmbedKind::Query, &texts, &queries).await;
    check(&embedder, EmbedKind::Passage, &texts, &passages).await;
    // The comparison is meaningful only if different texts are far apart.
    let [first, others @ ..] = passages.as_slice() else { panic!("no cases") };
    let nearest = others.iter().map(|other| cosine(first, other)).fold(-1.0, f64::max);
    assert!(nearest < 0.98, "{nearest}");
}

#[tokio::test]
async fn minilm_matches_the_reference_vectors() {
    let Some(dir) = minilm() else { return };
    let cases: Vec<MiniLmCase> =
        serde_json::from_slice(&fs::read(fixture("all-MiniLM-L6-v2.json")).unwrap()).unwrap();
    let texts: Vec<String> = cases.iter().map(|case| case.text.clone()).collect();
    let expected: Vec<&[f32]> = cases.iter().map(|case| case.vector.as_slice()).collect();
    let embedder = open(&dir);
    assert_eq!((embedder.profile().dims, embedder.profile().max_tokens), (384, 256));
    assert_eq!(embedder.profile().cosine_scale, Some(30.5));
    check(&embedder, EmbedKind::Passage, &texts, &expected).await;
    check(&embedder, EmbedKind::Query, &texts, &expected).await;
}

#[tokio::test]
async fn int8_is_close_to_the_reference_vectors_and_another_model() {
    check_precision(Precision::Int8, "int8", 0.98).await;
}

#[tokio::test]
async fn bf16_is_close_to_the_reference_vectors_and_another_model() {
    check_precision(Precision::Bf16, "bf16", 0.9995).await;
}

async fn check_precision(precision: Precision, name: &str, least: f64) {
    let Some(dir) = minilm() else { return };
    let cases: Vec<MiniLmCase> =
        serde_json::from_slice(&fs::read(fixture("all-MiniLM-L6-v2.json")).unwrap()).unwrap();
    let texts: Vec<String> = cases.iter().map(|case| case.text.clone()).collect();
    let embedder = open_with(&dir, precision);
    let (full, profile) = (open(&dir).profile().clone(), embedder.profile());
    assert_eq!((full.precision, profile.precision), (Some(Precision::Float32), Some(precision)));
    assert_eq!(
        (format!("{} ({name})", full.name), full.cosine_scale),
        (profile.name.clone(), profile.cosine_scale)
    );
    assert_ne!(full.id, profile.id);
    for kind in [EmbedKind::Passage, EmbedKind::Query] {
        let vectors = embedder.embed(kind, &texts).await.unwrap();
        for (case, vector) in cases.iter().zip(&vectors) {
            assert_unit(&embedder, vector);
            let cosine = cosine(vector, &case.vector);
            assert!(cosine >= least, "{kind:?} {:?}: cosine {cosine}", case.text);
        }
    }
}

/// Families of seeded weights, which suffer more from rounding than trained ones.
#[tokio::test]
async fn bf16_of_each_family_is_close_to_float32_and_another_model() {
    let texts = ["two weeks", "the council approved the budget of the next year"].map(String::from);
    for name in FAMILIES {
        let (full, rounded) = (open(&fixture(name)), open_with(&fixture(name), Precision::Bf16));
        let mut ids = Precision::ALL.map(|it| open_with(&fixture(name), it).profile().id.clone()).to_vec();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), Precision::ALL.len(), "{name}");
        let full = full.embed(EmbedKind::Passage, &texts).await.unwrap();
        let found = rounded.embed(EmbedKind::Passage, &texts).await.unwrap();
        assert_ne!(found, full, "{name}");
        for (found, full) in found.iter().zip(&full) {
            let cosine = cosine(found, full);
            assert!(cosine > 0.999, "{name}: cosine {cosine}");
        }
    }
}

#[tokio::test]
async fn bert_with_mean_pooling_matches_the_reference_vectors() {
    check_family("tiny-bert-mean").await;
}

#[tokio::test]
async fn bert_with_cls_pooling_and_prompts_matches_the_reference_vectors() {
    check_family("tiny-bert-cls").await;
}

#[tokio::test]
async fn xlm_roberta_matches_the_reference_vectors() {
    check_family("tiny-xlm-roberta-mean").await;
}

#[tokio::test]
async fn distilbert_matches_the_reference_vectors() {
    check_family("tiny-distilbert-mean").await;
}

#[tokio::test]
async fn modernbert_matches_the_reference_vectors() {
    check_family("tiny-modernbert-cls").await;
}

#[tokio::test]
async fn modernbert_with_older_settings_modules_and_a_cut_matches_the_reference_vectors() {
    check_family("tiny-modernbert-dense").await;
}

#[tokio::test]
async fn bert_with_a_linear_layer_matches_the_reference_vectors() {
    check_family("tiny-bert-dense").await;
}

#[tokio::test]
async fn int8_of_each_family_is_close_to_the_reference_vectors() {
    for name in FAMILIES {
        let folder = fixture(name);
        let bytes = fs::read(folder.join("expected.json")).unwrap();
        let cases: Vec<Case> = serde_json::from_slice(&bytes).unwrap();
        let texts: Vec<String> = cases.iter().map(|case| case.text.clone()).collect();
        let embedder = open_with(&folder, Precision::Int8);
        assert_ne!(embedder.profile().id, open(&folder).profile().id);
        let vectors = embedder.embed(EmbedKind::Passage, &texts).await.unwrap();
        for (case, vector) in cases.iter().zip(&vectors) {
            assert_unit(&embedder, vector);
            let cosine = cosine(vector, &case.passage);
            println!("{name} {:?}: {cosine}", case.text.get(..20));
            assert!(cosine >= 0.98, "{name} {:?}: cosine {cosine}", case.text);
        }
    }
}

#[test]
fn profiles_are_read_from_the_folders() {
    let profiles = ["tiny-bert-mean", "tiny-bert-cls", "tiny-xlm-roberta-mean"].map(|name| {
        let profile = open(&fixture(name)).profile().clone();
        assert_eq!((profile.name.as_str(), profile.dims), (name, 32));
        profile
    });
    // The limits are set in sentence_bert_config.json, tokenizer_config.json and sentence_bert_config.json.
    assert_eq!(profiles.each_ref().map(|profile| profile.max_tokens), [32, 40, 40]);
    let [a, b, c] = profiles.map(|profile| profile.id);
    assert!(a != b && b != c && a != c);
    assert_eq!(open(Path::new(&fixture("tiny-bert-mean"))).profile().id, a);
}

#[test]
fn letters_per_piece_is_low_for_unknown_languages() {
    let Some(dir) = minilm() else { return };
    let embedder = open(&dir);
    let of = |text: &str| embedder.letters_per_piece(text).unwrap();
    let english = of("How do I reset the password of my account, and who can help me with it?");
    assert!(english >= 2.4, "English {english}");
    let medical =
        of("Immunohistochemical analysis of glioblastoma xenografts after temozolomide chemotherapy");
    assert!(medical >= 1.6, "medical {medical}");
    let chinese = of("知识检索服务把文档分成四层,每一层都有自己的向量。");
    assert!((0.9..1.2).contains(&chinese), "Chinese {chinese}");
    let japanese = of("検索は文書を見つけます。東京は日本の首都です。");
    assert!((0.9..1.2).contains(&japanese), "Japanese {japanese}");
    // The tokenizer makes one unknown piece of a word of more than 100 characters. Such a word counts by its characters.
    let unknown = of(&"q".repeat(150));
    assert_eq!(unknown, 1.0);
    // Numbers and punctuation tell nothing of the language.
    for query in
        ["ISO 27001:2013", "what is 2+2?", "CVE-2021-44228", "“io”", "§ 12 Abs. 3 BGB", "INV-2024-0091"]
    {
        assert!(of(query) >= 1.5, "{query}: {}", of(query));
    }
    assert_eq!(of("2022年的4个城市"), of("年的个城市"));
    assert_eq!(embedder.letters_per_piece("12:30, 4 + 4 = 8 🙂"), None);
    assert_eq!(embedder.letters_per_piece(""), None);
}
