//! Embeddings.

use std::{
    num::NonZeroUsize,
    sync::Arc,
    time::{Duration, Instant},
};

use lkr_models::{
    AdaptiveBatch, AdaptiveBatchOptions, CircuitBreaker, CircuitBreakerOptions, ConcurrencyLimit, EmbedKind,
    Embedder, ErrorKind, Retry, RetryOptions,
};
use lkr_models_remote::{EmbedOptions, HttpEmbedder, RemoteOptions};
use lkr_test_provider::{Fault, ProviderBehavior, TestProvider};
use serde_json::{Value, json};

use crate::support::{KEY, embedder, outgoing, remote};

async fn remote_embedder() -> (Arc<dyn Embedder>, TestProvider) {
    let provider = TestProvider::start();
    (Arc::new(embedder(&provider, EmbedOptions::default()).await), provider)
}

mod conformance {
    lkr_models::embedder_suite!(super::remote_embedder());
}

/// An embedder whose provider accepts shorter texts and smaller batches than the options say.
async fn limited_embedder() -> (Arc<dyn Embedder>, TestProvider) {
    let provider = TestProvider::with(ProviderBehavior {
        most_texts: 3,
        most_text_tokens: 100,
        dims: 48,
        ..ProviderBehavior::default()
    });
    (Arc::new(embedder(&provider, EmbedOptions::default()).await), provider)
}

mod conformance_with_limited_provider {
    lkr_models::embedder_suite!(super::limited_embedder());
}

fn texts(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("text {n}")).collect()
}

/// The batch sizes of all requests after the first, which learned the dimensions.
fn batch_sizes(provider: &TestProvider) -> Vec<usize> {
    provider.seen()[1..].iter().map(|request| request.body["input"].as_array().unwrap().len()).collect()
}

#[tokio::test]
async fn embedding_request_has_the_openai_format_and_profile_is_stable() {
    let provider = TestProvider::with(ProviderBehavior { dims: 48, ..ProviderBehavior::default() });
    let options = EmbedOptions { query_prefix: "query: ".to_owned(), ..EmbedOptions::default() };
    let vectors = embedder(&provider, options.clone()).await;
    vectors.embed(EmbedKind::Query, &["a".to_owned(), String::new()]).await.unwrap();
    vectors.embed(EmbedKind::Passage, &["a".to_owned(), String::new()]).await.unwrap();
    let sent = provider.seen();
    assert_eq!(sent[1].line, "POST /v1/embeddings");
    assert_eq!(sent[1].authorization, Some(format!("Bearer {KEY}")));
    let body = |input: Value| json!({ "model": "thinker", "input": input });
    assert_eq!(sent[1].body, body(json!(["query: a", "query: "])));
    assert_eq!(sent[2].body, body(json!(["a", " "])));
    let profile = vectors.profile().clone();
    assert_eq!((profile.dims, profile.name.as_str(), profile.cosine_scale), (48, "thinker", None));
    // The id is the same after a restart, also without a request to the provider. Another model has another id.
    assert_eq!(embedder(&provider, options.clone()).await.profile(), &profile);
    let known = HttpEmbedder::with_dims(outgoing(), remote(&provider), options.clone(), 48).unwrap();
    assert_eq!(known.profile(), &profile);
    let slash = RemoteOptions { base_url: format!("{}/", provider.base_url()), ..remote(&provider) };
    assert_eq!(HttpEmbedder::with_dims(outgoing(), slash, options.clone(), 48).unwrap().profile(), &profile);
    let other = RemoteOptions { model: "dreamer".to_owned(), ..remote(&provider) };
    assert_ne!(HttpEmbedder::with_dims(outgoing(), other, options, 48).unwrap().profile().id, profile.id);
    assert!(!profile.id.contains(KEY));
    let plain = embedder(&provider, EmbedOptions::default()).await;
    assert_ne!(plain.profile().id, profile.id, "the id does not depend on the prefixes");
    provider.assert_well_asked();
}

#[tokio::test]
async fn batches_are_bounded_by_number_and_tokens() {
    let provider = TestProvider::start();
    let options = EmbedOptions { batch_texts: 4, batch_tokens: 100, ..EmbedOptions::default() };
    let vectors = embedder(&provider, options).await;
    assert_eq!(vectors.embed(EmbedKind::Passage, &texts(10)).await.unwrap().len(), 10);
    assert_eq!(batch_sizes(&provider), [4, 4, 2]);
    // 90 tokens and 1 share a batch. 200 tokens exceed a batch. 60 Chinese characters are 90 tokens.
    let long = vec!["abc".repeat(90), "a".to_owned(), "abc".repeat(200), "木".repeat(60), "木".repeat(60)];
    assert_eq!(vectors.embed(EmbedKind::Passage, &long).await.unwrap().len(), 5);
    assert_eq!(batch_sizes(&provider)[3..], [2, 1, 1, 1]);
    provider.assert_well_asked();
}

#[tokio::test]
async fn lesson_04_batch_that_is_too_large_is_split() {
    let provider = TestProvider::with(ProviderBehavior { most_texts: 5, ..ProviderBehavior::default() });
    let vectors = embedder(&provider, EmbedOptions::default()).await;
    let expected = embedder(&TestProvider::start(), EmbedOptions::default()).await;
    let expected = expected.embed(EmbedKind::Passage, &texts(10)).await.unwrap();
    assert_eq!(vectors.embed(EmbedKind::Passage, &texts(10)).await.unwrap(), expected);
    assert_eq!(batch_sizes(&provider), [10, 5, 5]);
    vectors.embed(EmbedKind::Passage, &texts(10)).await.unwrap();
    assert_eq!(batch_sizes(&provider)[3..], [5, 5], "the batch size was not remembered");
}

/// Providers word the limit of a batch in many ways. This is Alibaba's DashScope.
#[tokio::test]
async fn batch_that_is_refused_in_unknown_words_is_split() {
    let provider = TestProvider::start();
    let vectors = embedder(&provider, EmbedOptions::default()).await;
    let expected = vectors.embed(EmbedKind::Passage, &texts(16)).await.unwrap();
    let message = "Value error, batch size is invalid, it should not be larger than 10.: input.contents";
    provider.next([Fault::error(400, message, "InvalidParameter")]);
    assert_eq!(vectors.embed(EmbedKind::Passage, &texts(16)).await.unwrap(), expected);
    vectors.embed(EmbedKind::Passage, &texts(16)).await.unwrap();
    assert_eq!(batch_sizes(&provider), [16, 16, 8, 8, 8, 8], "the batch size was not remembered");
    provider.always(Some(Fault::error(422, "the moon is in the wrong place", "")));
    let error = vectors.embed(EmbedKind::Passage, &texts(8)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input, "{error}");
    assert_eq!(batch_sizes(&provider)[6..], [8, 4, 2, 1], "a text that is refused alone was sent again");
    provider.always(None);
    vectors.embed(EmbedKind::Passage, &texts(8)).await.unwrap();
    assert_eq!(batch_sizes(&provider)[10..], [8], "a refused text reduced the batch size");
    provider.assert_well_asked();
}

#[tokio::test]
async fn vector_without_an_index_is_that_of_its_place() {
    let provider = TestProvider::start();
    provider.next([Fault::ZeroIndexOmitted]);
    let vectors = embedder(&provider, EmbedOptions::default()).await;
    let expected = vectors.embed(EmbedKind::Passage, &texts(3)).await.unwrap();
    provider.next([Fault::ZeroIndexOmitted]);
    assert_eq!(vectors.embed(EmbedKind::Passage, &texts(3)).await.unwrap(), expected);
}

#[tokio::test]
async fn lesson_04_passages_are_embedded_despite_refusals() {
    let provider = TestProvider::with(ProviderBehavior { most_texts: 20, ..ProviderBehavior::default() });
    let vectors: Arc<dyn Embedder> = Arc::new(embedder(&provider, EmbedOptions::default()).await);
    let expected = vectors.embed(EmbedKind::Passage, &texts(100)).await.unwrap();
    let vectors: Arc<dyn Embedder> = Arc::new(ConcurrencyLimit::new(vectors, NonZeroUsize::MIN));
    let vectors: Arc<dyn Embedder> = Arc::new(CircuitBreaker::new(vectors, CircuitBreakerOptions::default()));
    let vectors: Arc<dyn Embedder> = Arc::new(Retry::new(vectors, RetryOptions::default()));
    let initial_backoff = Duration::from_millis(10);
    let vectors = AdaptiveBatch::new(
        vectors,
        AdaptiveBatchOptions { initial_backoff, initial_size: 64, ..AdaptiveBatchOptions::default() },
    );
    provider.next([
        Fault::status(500),
        Fault::status(429).header("Retry-After: 1"),
        Fault::HangUp,
        Fault::CutAfter(100),
        Fault::status(413),
    ]);
    let (before, started) = (provider.seen().len(), Instant::now());
    assert_eq!(vectors.embed(EmbedKind::Passage, &texts(100)).await.unwrap(), expected);
    assert!(started.elapsed() >= Duration::from_secs(1), "Retry-After was not honoured");
    let requests = provider.seen().len() - before;
    assert!(requests < 100, "{requests} requests for 100 texts");
    provider.assert_well_asked();
}

#[tokio::test]
async fn text_that_the_provider_finds_too_long_is_halved() {
    let provider =
        TestProvider::with(ProviderBehavior { most_text_tokens: 20, ..ProviderBehavior::default() });
    let vectors = embedder(&provider, EmbedOptions::default()).await;
    let of = ["before".to_owned(), "word ".repeat(70), "behind".to_owned()];
    let together = vectors.embed(EmbedKind::Passage, &of).await.unwrap();
    for (text, vector) in of.iter().zip(&together) {
        let alone = vectors.embed(EmbedKind::Passage, std::slice::from_ref(text)).await.unwrap();
        assert_eq!(&alone[0], vector, "the vector depends on the other texts");
    }
    let before = provider.seen().len();
    vectors.embed(EmbedKind::Passage, &texts(3)).await.unwrap();
    assert_eq!(provider.seen().len(), before + 1, "a long text reduced the batch size");
    // A provider that accepts no text.
    let provider =
        TestProvider::with(ProviderBehavior { most_text_tokens: 20, ..ProviderBehavior::default() });
    let vectors = embedder(&provider, EmbedOptions::default()).await;
    provider.always(Some(Fault::status(413)));
    assert_eq!(vectors.embed(EmbedKind::Passage, &texts(1)).await.unwrap_err().kind(), ErrorKind::Input);
    let long = ["x".repeat(100_000)];
    provider.always(None);
    vectors.embed(EmbedKind::Passage, &long).await.unwrap();
    let sent = provider.seen().pop().unwrap().body["input"][0].as_str().unwrap().len();
    assert_eq!(sent, 512 * 3, "a token is estimated as three letters");
    provider.assert_well_asked();
}

#[tokio::test]
async fn invalid_embedding_responses_are_errors() {
    let provider = TestProvider::start();
    let vectors = embedder(&provider, EmbedOptions::default()).await;
    for (fault, kind) in [
        (Fault::WrongDims(63), ErrorKind::Internal),
        (Fault::WrongDims(128), ErrorKind::Internal),
        (Fault::MissingVector, ErrorKind::Internal),
        (Fault::RepeatedIndex, ErrorKind::Internal),
        (Fault::NotFinite, ErrorKind::Internal),
        (Fault::Zero, ErrorKind::Internal),
        (Fault::InvalidJson, ErrorKind::Internal),
        (Fault::CutAfter(100), ErrorKind::Unavailable),
        (Fault::HangUp, ErrorKind::Unavailable),
        (Fault::ErrorWithin("no memory".to_owned()), ErrorKind::Unavailable),
        (Fault::status(500), ErrorKind::Unavailable),
        (Fault::status(401), ErrorKind::Config),
    ] {
        provider.next([fault.clone()]);
        let error = vectors.embed(EmbedKind::Passage, &texts(3)).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{fault:?}: {error}");
    }
    let expected = vectors.embed(EmbedKind::Passage, &texts(3)).await.unwrap();
    provider.next([Fault::Shuffled]);
    assert_eq!(
        vectors.embed(EmbedKind::Passage, &texts(3)).await.unwrap(),
        expected,
        "the vectors are not in the order of their indices"
    );
    provider.next([Fault::Zero]);
    let connected = HttpEmbedder::connect(outgoing(), remote(&provider), EmbedOptions::default()).await;
    assert_eq!(connected.unwrap_err().kind(), ErrorKind::Internal);
    provider.assert_well_asked();
}

#[tokio::test]
async fn response_limit_grows_with_dimensions_and_batch() {
    let provider = TestProvider::with(ProviderBehavior { dims: 4096, ..ProviderBehavior::default() });
    let vectors = embedder(&provider, EmbedOptions::default()).await;
    assert_eq!(vectors.embed(EmbedKind::Passage, &texts(64)).await.unwrap().len(), 64);
}

#[tokio::test]
async fn no_request_is_sent_without_texts() {
    let provider = TestProvider::start();
    let vectors = embedder(&provider, EmbedOptions::default()).await;
    assert_eq!(vectors.embed(EmbedKind::Passage, &[]).await.unwrap(), Vec::<Vec<f32>>::new());
    assert!(batch_sizes(&provider).is_empty());
}
