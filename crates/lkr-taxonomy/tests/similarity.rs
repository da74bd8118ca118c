//! The similarity classifier with predictable vectors.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, missing_docs)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use lkr_models::{EmbedKind, Embedder, EmbedderProfile, MemoryEmbedder};
use lkr_taxonomy::{
    Classification, Classifier, ClassifierInput, ErrorKind, SimilarityClassifier, SimilarityOptions, Taxonomy,
};

const ANIMALS: &str = "
categories:
- {id: cats, name: Cats, description: purring felines chase mice, keywords: [whiskers, kitten]}
- {id: dogs, name: Dogs, description: barking hounds fetch sticks, keywords: [leash, puppy]}
";

/// Counts calls; the first `failures` of them fail.
#[derive(Debug)]
struct Counting {
    inner: MemoryEmbedder,
    calls: AtomicUsize,
    failures: usize,
    kind: lkr_models::ErrorKind,
}

#[async_trait]
impl Embedder for Counting {
    fn profile(&self) -> &EmbedderProfile {
        self.inner.profile()
    }

    async fn embed(&self, kind: EmbedKind, texts: &[String]) -> lkr_models::Result<Vec<Vec<f32>>> {
        if self.calls.fetch_add(1, Ordering::Relaxed) < self.failures {
            return Err(lkr_models::Error::new(self.kind, "embed", "unavailable"));
        }
        self.inner.embed(kind, texts).await
    }

    fn letters_per_piece(&self, _text: &str) -> Option<f32> {
        None
    }
}

fn counting(failures: usize, kind: lkr_models::ErrorKind) -> Arc<Counting> {
    Arc::new(Counting { inner: memory(), calls: AtomicUsize::new(0), failures, kind })
}

fn memory() -> MemoryEmbedder {
    MemoryEmbedder::with_dims(1_024)
}

fn classifier(text: &str, options: SimilarityOptions) -> SimilarityClassifier {
    SimilarityClassifier::new(Taxonomy::from_yaml(text).unwrap(), Arc::new(memory()), options)
}

async fn vector(text: &str) -> Vec<f32> {
    memory().embed(EmbedKind::Passage, &[text.to_owned()]).await.unwrap().remove(0)
}

fn input(vector: Option<&[f32]>) -> ClassifierInput<'_> {
    ClassifierInput { title: "", summary: "", keywords: &[], vector, model: None }
}

async fn name(classifier: &SimilarityClassifier, text: &str) -> Option<String> {
    let vector = vector(text).await;
    classifier
        .classify(&input(Some(&vector)))
        .await
        .unwrap()
        .classification
        .map(|classification| classification.name)
}

#[tokio::test]
async fn nearest_category_or_none_is_assigned() {
    let classifier = classifier(ANIMALS, SimilarityOptions::default());
    assert_eq!(name(&classifier, "a kitten with whiskers and mice").await.as_deref(), Some("Cats"));
    assert_eq!(name(&classifier, "a puppy on a leash fetch sticks").await.as_deref(), Some("Dogs"));
    assert_eq!(name(&classifier, "quartz basalt granite feldspar").await, None);
    let needs_vector = classifier.classify(&input(None)).await.unwrap();
    assert!(needs_vector.needs_vector && needs_vector.classification.is_none());
}

#[tokio::test]
async fn category_below_the_threshold_is_not_assigned() {
    let vector = vector("a kitten among many other words").await;
    let best = classifier(ANIMALS, SimilarityOptions::default()).rank(&vector).await.unwrap().remove(0);
    let at = |threshold| classifier(ANIMALS, SimilarityOptions::default().with_threshold(threshold));
    assert_eq!(
        at(best.score).classify(&input(Some(&vector))).await.unwrap().classification,
        Some(best.clone())
    );
    assert_eq!(at(best.score + 1e-4).classify(&input(Some(&vector))).await.unwrap().classification, None);
}

#[tokio::test]
async fn single_category_is_assigned_to_similar_text_only() {
    let one = "categories: [{id: cats, name: Cats, description: purring felines chase mice}]";
    let classifier = classifier(one, SimilarityOptions::default());
    assert_eq!(name(&classifier, "felines chase mice").await.as_deref(), Some("Cats"));
    assert_eq!(name(&classifier, "quartz basalt granite feldspar").await, None);
}

#[tokio::test]
async fn first_of_equally_similar_categories_wins() {
    // The embedder ignores the case and the order of words.
    let equal_categories = "
categories:
- {id: z, name: tin can, description: of metal}
- {id: a, name: can tin, description: metal of}
";
    let classifier = classifier(equal_categories, SimilarityOptions::default());
    for _ in 0..3 {
        assert_eq!(name(&classifier, "a tin of metal").await.as_deref(), Some("tin can"));
    }
}

#[tokio::test]
async fn categories_are_embedded_once_and_failures_are_not_cached() {
    let embedder = counting(1, lkr_models::ErrorKind::Unavailable);
    let taxonomy = Taxonomy::from_yaml(ANIMALS).unwrap();
    let classifier = SimilarityClassifier::new(taxonomy, embedder.clone(), SimilarityOptions::default());
    assert_eq!(embedder.calls.load(Ordering::Relaxed), 0);
    let vector = vector("a kitten with whiskers").await;
    let error = classifier.classify(&input(Some(&vector))).await.unwrap_err();
    assert!(error.kind() == ErrorKind::ModelUnavailable && error.is_retryable(), "{error}");
    for _ in 0..3 {
        let found = classifier.classify(&input(Some(&vector))).await.unwrap().classification;
        assert!(matches!(found, Some(Classification { name, .. }) if name == "Cats"));
    }
    assert_eq!(embedder.calls.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn built_in_taxonomy_is_embedded_once() {
    let embedder = counting(0, lkr_models::ErrorKind::Internal);
    let classifier =
        SimilarityClassifier::new(Taxonomy::built_in(), embedder.clone(), SimilarityOptions::default());
    let vector = vector("salary bands, bonuses, equity and stock options, insurance, pension").await;
    let found = classifier.classify(&input(Some(&vector))).await.unwrap().classification.unwrap();
    assert_eq!(found.name, "Compensation and Benefits");
    assert_eq!(embedder.calls.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn non_retryable_model_error_is_internal() {
    let embedder = counting(1, lkr_models::ErrorKind::Internal);
    let classifier = SimilarityClassifier::new(Taxonomy::built_in(), embedder, SimilarityOptions::default());
    let error = classifier.rank(&[1.0]).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Internal, false));
    let error = classifier.rank(&[1.0]).await.unwrap_err();
    assert!(error.to_string().contains("1 dimensions"), "{error}");
}

#[test]
fn id_changes_with_the_taxonomy_the_threshold_and_the_model() {
    let of = |text: &str, threshold, dims| {
        let options = SimilarityOptions::default().with_threshold(threshold);
        let embedder = Arc::new(MemoryEmbedder::with_dims(dims));
        SimilarityClassifier::new(Taxonomy::from_yaml(text).unwrap(), embedder, options).id()
    };
    let same = of(ANIMALS, 0.2, 8);
    assert_eq!(same, of(&format!("# remark\n{ANIMALS}"), 0.2, 8));
    assert_ne!(same, of(&ANIMALS.replace("kitten", "cat"), 0.2, 8));
    assert_ne!(same, of(ANIMALS, 0.3, 8));
    assert_ne!(same, of(ANIMALS, 0.2, 16));
}
