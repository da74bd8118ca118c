//! A text's vector does not depend on the other texts of its batch.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "the helpers of tests may fail as the tests do"
)]

#[path = "support/common.rs"]
mod common;

use common::{FAMILIES, assert_unit, fixture, minilm, open, open_with};
use futures_util::FutureExt;
use lkr_models::{EmbedKind, Embedder, Precision};
use lkr_models_local::LocalEmbedder;
use proptest::prelude::*;
use tokio::runtime::Runtime;

const WORDS: [&str; 8] = ["council", "東京は", "Bücher", "symptoms", "?", "évidence", "zebra", "two weeks"];

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(WORDS.as_slice()), 0..60).prop_map(|words| words.join(" "))
}

fn assert_close(a: &[f32], b: &[f32]) {
    let worst = a.iter().zip(b).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max);
    assert!(a.len() == b.len() && worst < 1e-5, "differ by {worst}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn vectors_are_independent_of_the_batch(
        texts in prop::collection::vec(text(), 0..140),
        name in prop::sample::select(FAMILIES.as_slice()),
    ) {
        let embedder = open(&fixture(name));
        let runtime = Runtime::new().unwrap();
        let embed = |texts: &[String]| runtime.block_on(embedder.embed(EmbedKind::Passage, texts)).unwrap();
        let together = embed(&texts);
        prop_assert_eq!(together.len(), texts.len());
        let reversed: Vec<String> = texts.iter().rev().cloned().collect();
        for (a, b) in together.iter().zip(embed(&reversed).iter().rev()) {
            assert_close(a, b);
        }
        for (text, vector) in texts.iter().zip(&together).take(5) {
            assert_unit(&embedder, vector);
            assert_close(&embed(std::slice::from_ref(text))[0], vector);
        }
    }
}

#[tokio::test]
async fn equal_texts_have_equal_vectors() {
    let embedder = open(&fixture("tiny-bert-mean"));
    let texts = ["a", "two weeks", "a", "", "a", ""].map(String::from);
    let vectors = embedder.embed(EmbedKind::Passage, &texts).await.unwrap();
    assert_eq!(vectors[0], vectors[2]);
    assert_eq!(vectors[0], vectors[4]);
    assert_eq!(vectors[3], vectors[5]);
    assert_ne!(vectors[0], vectors[1]);
}

#[tokio::test]
async fn no_texts_give_no_vectors() {
    let embedder = open(&fixture("tiny-bert-cls"));
    assert!(embedder.embed(EmbedKind::Query, &[]).await.unwrap().is_empty());
}

#[tokio::test]
async fn text_beyond_the_limit_does_not_change_the_vector() {
    for name in FAMILIES {
        let embedder = open(&fixture(name));
        let start = "the council approved the budget ".repeat(400);
        let texts = [start.clone(), format!("{start} zebra"), format!("{start}{}", "zebra ".repeat(200_000))];
        let vectors = embedder.embed(EmbedKind::Passage, &texts).await.unwrap();
        assert_close(&vectors[0], &vectors[1]);
        assert_close(&vectors[0], &vectors[2]);
    }
}

#[tokio::test]
async fn blank_text_and_endless_word_are_embedded() {
    for name in FAMILIES {
        let embedder = open(&fixture(name));
        let texts =
            [" ".repeat(3_000_000), "x".repeat(3_000_000), "京".repeat(1_000_000), "\u{0}\u{301}".into()];
        for vector in embedder.embed(EmbedKind::Passage, &texts).await.unwrap() {
            assert_unit(&embedder, &vector);
        }
    }
}

#[test]
fn call_needs_no_runtime() {
    let embedder = open(&fixture("tiny-bert-mean"));
    let texts = ["a".to_owned(), "a longer text, ".repeat(50)];
    let mut embedding = embedder.embed(EmbedKind::Query, &texts);
    let vectors = loop {
        match (&mut embedding).now_or_never() {
            Some(vectors) => break vectors.unwrap(),
            None => std::thread::yield_now(),
        }
    };
    vectors.iter().for_each(|vector| assert_unit(&embedder, vector));
    assert_eq!(vectors.len(), 2);
}

/// Bit for bit: otherwise, documents that a caller may not read, which are embedded in the same batches, would change the
/// scores of others in their last digits.
#[tokio::test]
async fn lesson_37_vector_is_the_same_in_every_batch() {
    let Some(dir) = minilm() else { return };
    for embedder in Precision::ALL.map(|precision| open_with(&dir, precision)) {
        check_batches(&embedder).await;
        // A query is a batch of its own, beside passages.
        let texts = ["two weeks".to_owned()];
        let query = embedder.embed(EmbedKind::Query, &texts).await.unwrap();
        assert_eq!(query, embedder.embed(EmbedKind::Passage, &texts).await.unwrap());
    }
}

/// The same for each family of models, and for texts that are longer than what a token of a local layer sees.
#[tokio::test]
async fn vector_of_each_family_is_the_same_in_every_batch() {
    for name in FAMILIES {
        for embedder in Precision::ALL.map(|precision| open_with(&fixture(name), precision)) {
            check_batches(&embedder).await;
        }
    }
}

async fn check_batches(embedder: &LocalEmbedder) {
    let text = |n: usize| {
        (0..1 + n * n % 97).map(|at| WORDS[(n + at * at) % WORDS.len()]).collect::<Vec<_>>().join(" ")
    };
    let texts: Vec<String> = (0..24).map(text).collect();
    let mut alone = Vec::new();
    for text in &texts {
        alone.extend(embedder.embed(EmbedKind::Passage, std::slice::from_ref(text)).await.unwrap());
    }
    for size in [2, 3, 7, 24] {
        for (texts, expected) in texts.chunks(size).zip(alone.chunks(size)) {
            let together = embedder.embed(EmbedKind::Passage, texts).await.unwrap();
            let bits = |vectors: &[Vec<f32>]| -> Vec<Vec<u32>> {
                vectors.iter().map(|vector| vector.iter().map(|value| value.to_bits()).collect()).collect()
            };
            assert!(bits(&together) == bits(expected), "batches of {size}");
        }
    }
}
