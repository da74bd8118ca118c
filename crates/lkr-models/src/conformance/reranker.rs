use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Waker},
};

use super::{TEXTS, texts};
use crate::Reranker;

/// Generates a `#[tokio::test]` for every case of the conformance suite of rerankers.
///
/// The argument is an expression whose future returns a pair: the reranker as `Arc<dyn Reranker>`, and a guard that
/// lives as long as the test. It is evaluated once for each case.
///
/// The calling crate needs tokio with the features `macros` and `rt-multi-thread`.
///
/// ```text
/// async fn reranker() -> (Arc<dyn Reranker>, ()) { … }
///
/// lkr_models::reranker_suite!(reranker());
/// ```
#[macro_export]
macro_rules! reranker_suite {
    ($make:expr) => {
        $crate::reranker_suite!(@each $make;
            reranker_profile_is_plausible
            every_passage_has_a_finite_score
            scores_keep_the_order_of_the_passages
            equal_passages_have_equal_scores
            no_passages_give_no_scores
            passages_without_words_have_scores
            long_passages_leave_other_scores_unchanged
            concurrent_rerank_calls_are_independent
            reranker_answers_after_dropped_calls
        );
    };
    (@each $make:expr; $($case:ident)*) => { $(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $case() {
            let (reranker, _guard) = $make.await;
            $crate::conformance::$case(reranker).await;
        }
    )* };
}

type Subject = Arc<dyn Reranker>;

const QUERY: &str = "what does the heart pump through the arteries";

async fn rerank(reranker: &Subject, query: &str, passages: &[&str]) -> Vec<f32> {
    let scores = reranker.rerank(query, &texts(passages)).await.unwrap();
    assert_eq!(scores.len(), passages.len(), "a score for each passage");
    assert!(scores.iter().all(|score| score.is_finite()), "{scores:?}");
    scores
}

/// Asserts that scores are equal up to rounding, which may differ with the order of summation.
#[track_caller]
fn assert_equal(a: f32, b: f32, about: &str) {
    assert!((a - b).abs() <= 1e-4 * a.abs().max(1.0), "{about}: {a} {b}");
}

/// The id and the name are not empty, and the number of candidates is positive.
pub async fn reranker_profile_is_plausible(reranker: Subject) {
    let profile = reranker.profile();
    assert!(!profile.id.is_empty() && !profile.name.is_empty(), "{profile:?}");
    assert!(profile.candidates > 0, "{profile:?}");
    assert!(!format!("{reranker:?}").is_empty());
}

/// Each passage has a finite score, and the scores are not all equal.
pub async fn every_passage_has_a_finite_score(reranker: Subject) {
    let scores = rerank(&reranker, QUERY, &TEXTS).await;
    assert!(scores.iter().any(|score| (score - scores[0]).abs() > 1e-6), "{scores:?}");
}

/// Scores have the order of their passages. A score depends neither on the other passages nor on their order.
pub async fn scores_keep_the_order_of_the_passages(reranker: Subject) {
    let together = rerank(&reranker, QUERY, &TEXTS).await;
    let mut reversed_texts = TEXTS;
    reversed_texts.reverse();
    let mut reversed = rerank(&reranker, QUERY, &reversed_texts).await;
    reversed.reverse();
    for (n, text) in TEXTS.iter().enumerate() {
        let alone = rerank(&reranker, QUERY, &[text]).await;
        assert_equal(together[n], alone[0], text);
        assert_equal(together[n], reversed[n], text);
    }
}

/// Equal passages have equal scores, within one call and between calls.
pub async fn equal_passages_have_equal_scores(reranker: Subject) {
    let of = ["one text", "another one", "one text", TEXTS[0], "one text"];
    let (first, second) = (rerank(&reranker, QUERY, &of).await, rerank(&reranker, QUERY, &of).await);
    for (a, b) in first.iter().zip(&second) {
        assert_equal(*a, *b, "between calls");
    }
    assert_equal(first[0], first[2], "within a call");
    assert_equal(first[0], first[4], "within a call");
}

/// A call without passages returns no scores.
pub async fn no_passages_give_no_scores(reranker: Subject) {
    assert!(rerank(&reranker, QUERY, &[]).await.is_empty());
}

/// Texts without words, and the empty text, are accepted as passage and as query.
pub async fn passages_without_words_have_scores(reranker: Subject) {
    let of = ["", " ", "\n\t ", "\u{0}", "…!?", "\u{200b}", "🦉🦉", "\u{fffd}"];
    for query in of.into_iter().chain([QUERY]) {
        rerank(&reranker, query, &of).await;
    }
}

/// Passages and queries of any length have scores, and a long passage does not affect the other scores of the call.
pub async fn long_passages_leave_other_scores_unchanged(reranker: Subject) {
    let (long, unbroken) = ("river stone ".repeat(20_000), "x".repeat(100_000));
    let scores = rerank(&reranker, QUERY, &[&long, "short", &unbroken]).await;
    assert_equal(scores[1], rerank(&reranker, QUERY, &["short"]).await[0], "the neighbour of long passages");
    rerank(&reranker, &long, &[&long, "short"]).await;
}

/// Concurrent calls return the same scores as single calls.
pub async fn concurrent_rerank_calls_are_independent(reranker: Subject) {
    let mut calls = tokio::task::JoinSet::new();
    for query in TEXTS {
        let reranker = Arc::clone(&reranker);
        calls.spawn(async move { (query, rerank(&reranker, query, &TEXTS).await) });
    }
    while let Some(done) = calls.join_next().await {
        let (query, scores) = done.unwrap();
        let alone = rerank(&reranker, query, &TEXTS).await;
        for ((score, expected), text) in scores.iter().zip(&alone).zip(TEXTS) {
            assert_equal(*score, *expected, text);
        }
    }
}

/// The reranker still answers after futures were dropped before their first await point and at it.
pub async fn reranker_answers_after_dropped_calls(reranker: Subject) {
    let alone = rerank(&reranker, QUERY, &TEXTS).await;
    let of = texts(&TEXTS);
    for n in 0..20 {
        drop(reranker.rerank(QUERY, &of));
        let _ready = pin!(reranker.rerank(QUERY, &of)).poll(&mut Context::from_waker(Waker::noop()));
        let pause = std::time::Duration::from_micros(n * 200);
        let _done = tokio::time::timeout(pause, reranker.rerank(QUERY, &of)).await;
    }
    for (score, expected) in rerank(&reranker, QUERY, &TEXTS).await.iter().zip(&alone) {
        assert_equal(*score, *expected, "after dropped calls");
    }
}
