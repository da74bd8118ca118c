use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Waker},
};

use super::{TEXTS, texts};
use crate::{EmbedKind, Embedder};

/// Generates a `#[tokio::test]` for every case of the conformance suite of embedders.
///
/// The argument is an expression whose future returns a pair: the embedder as `Arc<dyn Embedder>`, and a guard that
/// lives as long as the test. It is evaluated once for each case.
///
/// The calling crate needs tokio with the features `macros` and `rt-multi-thread`.
///
/// ```text
/// async fn embedder() -> (Arc<dyn Embedder>, ()) { … }
///
/// lkr_models::embedder_suite!(embedder());
/// ```
#[macro_export]
macro_rules! embedder_suite {
    ($make:expr) => {
        $crate::embedder_suite!(@each $make;
            embedder_profile_is_plausible
            vectors_are_finite_and_normalized
            vectors_keep_the_order_of_the_texts
            equal_texts_have_equal_vectors
            no_texts_give_no_vectors
            texts_without_words_have_vectors
            long_texts_are_truncated_at_their_end
            query_is_nearest_to_the_passage_with_equal_text
            concurrent_embed_calls_are_independent
            embedder_answers_after_dropped_calls
            letters_per_piece_is_finite_or_unknown
        );
    };
    (@each $make:expr; $($case:ident)*) => { $(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $case() {
            let (embedder, _guard) = $make.await;
            $crate::conformance::$case(embedder).await;
        }
    )* };
}

type Subject = Arc<dyn Embedder>;

const KINDS: [EmbedKind; 2] = [EmbedKind::Query, EmbedKind::Passage];

async fn embed(embedder: &Subject, kind: EmbedKind, of: &[&str]) -> Vec<Vec<f32>> {
    let vectors = embedder.embed(kind, &texts(of)).await.unwrap();
    assert_eq!(vectors.len(), of.len(), "a vector for each text");
    vectors
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

/// Asserts that vectors are equal up to rounding, which may differ with the order of summation.
#[track_caller]
fn assert_equal(a: &[f32], b: &[f32], about: &str) {
    let cosine = cosine(a, b);
    assert!(cosine > 0.9999, "{about}: the cosine is {cosine}");
}

#[track_caller]
fn assert_unit(embedder: &Subject, vector: &[f32], about: &str) {
    assert_eq!(vector.len(), embedder.profile().dims, "{about}");
    assert!(vector.iter().all(|value| value.is_finite()), "{about}: {vector:?}");
    let length = cosine(vector, vector).sqrt();
    assert!((length - 1.0).abs() < 1e-3, "{about}: the length is {length}");
}

/// The id and the name are not empty, and every number is positive.
pub async fn embedder_profile_is_plausible(embedder: Subject) {
    let profile = embedder.profile();
    assert!(!profile.id.is_empty() && !profile.name.is_empty(), "{profile:?}");
    assert!(profile.dims > 0 && profile.max_tokens > 0, "{profile:?}");
    assert!(profile.cosine_scale.is_none_or(|scale| scale.is_finite() && scale > 0.0), "{profile:?}");
    assert!(!format!("{embedder:?}").is_empty());
}

/// Each vector has the profile's dimensions, finite numbers, and length 1.
pub async fn vectors_are_finite_and_normalized(embedder: Subject) {
    for kind in KINDS {
        for (text, vector) in TEXTS.iter().zip(embed(&embedder, kind, &TEXTS).await) {
            assert_unit(&embedder, &vector, text);
        }
    }
}

/// Vectors have the order of their texts. A vector depends neither on the other texts nor on their order.
pub async fn vectors_keep_the_order_of_the_texts(embedder: Subject) {
    let together = embed(&embedder, EmbedKind::Passage, &TEXTS).await;
    let mut reversed_texts = TEXTS;
    reversed_texts.reverse();
    let mut reversed = embed(&embedder, EmbedKind::Passage, &reversed_texts).await;
    reversed.reverse();
    for (n, text) in TEXTS.iter().enumerate() {
        let alone = embed(&embedder, EmbedKind::Passage, &[text]).await;
        assert_equal(&together[n], &alone[0], text);
        assert_equal(&together[n], &reversed[n], text);
    }
    assert!(cosine(&together[0], &together[1]) < 0.999, "different texts have equal vectors");
}

/// Equal texts have equal vectors, within one call and between calls.
pub async fn equal_texts_have_equal_vectors(embedder: Subject) {
    for kind in KINDS {
        let of = ["one text", "another one", "one text", TEXTS[0], "one text"];
        let first = embed(&embedder, kind, &of).await;
        let second = embed(&embedder, kind, &of).await;
        for (a, b) in first.iter().zip(&second) {
            assert_equal(a, b, "between calls");
        }
        assert_equal(&first[0], &first[2], "within a call");
        assert_equal(&first[0], &first[4], "within a call");
    }
}

/// A call without texts returns no vectors.
pub async fn no_texts_give_no_vectors(embedder: Subject) {
    for kind in KINDS {
        assert!(embed(&embedder, kind, &[]).await.is_empty());
    }
}

/// Texts without words, and the empty text, have a vector of length 1.
pub async fn texts_without_words_have_vectors(embedder: Subject) {
    let of = ["", " ", "\n\t ", "\u{0}", "…!?", "\u{200b}", "🦉🦉", "\u{fffd}"];
    for kind in KINDS {
        for (text, vector) in of.iter().zip(embed(&embedder, kind, &of).await) {
            assert_unit(&embedder, &vector, &format!("{text:?}"));
        }
        let alone = embed(&embedder, kind, &[""]).await;
        assert_unit(&embedder, &alone[0], "the empty text alone");
    }
}

/// Text far beyond the longest input is ignored, and a long text does not affect the other texts of the call.
pub async fn long_texts_are_truncated_at_their_end(embedder: Subject) {
    // A word is at least one token, so these words exceed the longest input.
    let head = "river stone ".repeat(embedder.profile().max_tokens.min(20_000));
    let one = format!("{head} the end is a fox");
    let two = format!("{head} but here it is a telescope, and more of it");
    let unbroken = "x".repeat(100_000);
    let of = [one.as_str(), "short", two.as_str(), unbroken.as_str()];
    let vectors = embed(&embedder, EmbedKind::Passage, &of).await;
    for (vector, about) in vectors.iter().zip(["one", "short", "two", "unbroken"]) {
        assert_unit(&embedder, vector, about);
    }
    assert_equal(&vectors[0], &vectors[2], "texts that differ beyond the longest input");
    let alone = embed(&embedder, EmbedKind::Passage, &["short"]).await;
    assert_equal(&vectors[1], &alone[0], "the neighbour of long texts");
}

/// A query is nearest to the passage with the same text.
pub async fn query_is_nearest_to_the_passage_with_equal_text(embedder: Subject) {
    let passages = embed(&embedder, EmbedKind::Passage, &TEXTS).await;
    for (n, text) in TEXTS.iter().enumerate().take(3) {
        let query = &embed(&embedder, EmbedKind::Query, &[text]).await[0];
        let cosines: Vec<f64> = passages.iter().map(|passage| cosine(query, passage)).collect();
        let best = cosines.iter().copied().fold(f64::MIN, f64::max);
        assert!((cosines[n] - best).abs() < 1e-9, "{text}: {cosines:?}");
    }
}

/// Concurrent calls of both kinds return the same vectors as single calls.
pub async fn concurrent_embed_calls_are_independent(embedder: Subject) {
    let passages = embed(&embedder, EmbedKind::Passage, &TEXTS).await;
    let queries = embed(&embedder, EmbedKind::Query, &TEXTS).await;
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..8 {
        let embedder = Arc::clone(&embedder);
        calls.spawn(async move {
            let kind = KINDS[n % 2];
            (kind, embed(&embedder, kind, &TEXTS).await)
        });
    }
    while let Some(done) = calls.join_next().await {
        let (kind, vectors) = done.unwrap();
        let expected = if kind == EmbedKind::Query { &queries } else { &passages };
        for ((vector, expected), text) in vectors.iter().zip(expected).zip(TEXTS) {
            assert_equal(vector, expected, text);
        }
    }
}

/// The embedder still answers after futures were dropped before their first await point and at it.
pub async fn embedder_answers_after_dropped_calls(embedder: Subject) {
    let alone = embed(&embedder, EmbedKind::Query, &TEXTS).await;
    let of = texts(&TEXTS);
    for n in 0..20 {
        let kind = KINDS[n % 2];
        drop(embedder.embed(kind, &of));
        let _ready = pin!(embedder.embed(kind, &of)).poll(&mut Context::from_waker(Waker::noop()));
        let pause = std::time::Duration::from_micros(n as u64 * 200);
        let _done = tokio::time::timeout(pause, embedder.embed(kind, &of)).await;
    }
    for (vector, expected) in embed(&embedder, EmbedKind::Query, &TEXTS).await.iter().zip(&alone) {
        assert_equal(vector, expected, "after dropped calls");
    }
}

/// If known, the number is finite and not negative for any text.
pub async fn letters_per_piece_is_finite_or_unknown(embedder: Subject) {
    for text in TEXTS.into_iter().chain(["", " ", "…"]) {
        if let Some(letters) = embedder.letters_per_piece(text) {
            assert!(letters.is_finite() && letters >= 0.0, "{text:?}: {letters}");
        }
    }
}
