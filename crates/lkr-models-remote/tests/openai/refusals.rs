//! Refusals of providers and their error messages.

use std::time::Duration;

use lkr_models::{ChatModel, EmbedKind, Embedder, ErrorKind};
use lkr_models_remote::{ChatOptions, EmbedOptions, HttpChat, HttpEmbedder, RemoteOptions};
use lkr_test_provider::{Fault, ProviderBehavior, TestProvider};

use crate::support::{KEY, chat, embedder, outgoing, remote, request};

/// The part of the key that no message may contain.
const KEY_PART: &str = "sk-plante";

const THROTTLED: ErrorKind = ErrorKind::Throttled { retry_after: None };

#[tokio::test]
async fn refusals_have_the_right_kind_and_never_show_the_key() {
    let text = |status: u16, body: &str| Fault::Answer { status, headers: Vec::new(), body: body.to_owned() };
    let provider = TestProvider::start();
    let (model, vectors) = (chat(&provider), embedder(&provider, EmbedOptions::default()).await);
    for (fault, kind, expected) in [
        (Fault::status(401), ErrorKind::Config, "rejected the key (status 401)"),
        (Fault::status(403), ErrorKind::Config, "rejected the key"),
        (Fault::error(400, "API key not valid.", ""), ErrorKind::Config, "rejected the key (status 400)"),
        (Fault::status(404), ErrorKind::Config, "no such model or path"),
        (
            Fault::error(404, "The model does not exist", "model_not_found"),
            ErrorKind::Config,
            "no model \"thinker\"",
        ),
        (
            text(404, r#"{"error": "model \"thinker\" not found, try pulling it first"}"#),
            ErrorKind::Config,
            "no model \"thinker\"",
        ),
        (
            Fault::error(400, "too long", "context_length_exceeded"),
            ErrorKind::TooLarge,
            "longer than the model accepts",
        ),
        (Fault::status(413), ErrorKind::TooLarge, "larger than the provider accepts"),
        (
            Fault::error(429, "You exceeded your current quota", "insufficient_quota"),
            ErrorKind::Config,
            "quota is used up",
        ),
        (Fault::status(402), ErrorKind::Config, "quota is used up"),
        (Fault::status(429), THROTTLED, "limits the rate of requests"),
        (Fault::status(500), ErrorKind::Unavailable, "the provider failed (status 500)"),
        (Fault::status(503), ErrorKind::Unavailable, "the provider failed"),
        (
            text(502, &format!("<html>\n<b>{KEY_PART}</b>\u{7}")),
            ErrorKind::Unavailable,
            "the provider failed (status 502)",
        ),
        (
            text(502, r#"{"error": "Bad\n<b>gateway</b>\u0007"}"#),
            ErrorKind::Unavailable,
            "provider message: Bad <b>gateway</b>",
        ),
        (
            Fault::error(500, &format!("no such key: {KEY}, nor {KEY_PART}"), KEY),
            ErrorKind::Unavailable,
            "no such key: ********",
        ),
        (Fault::error(400, &"no ".repeat(500), ""), ErrorKind::Input, "refused the request"),
        (Fault::redirect("http://169.254.169.254/latest"), ErrorKind::Config, "redirects are not followed"),
    ] {
        provider.next([fault.clone()]);
        let error = model.complete(&request("x")).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        let message = error.to_string();
        assert!(message.contains(expected), "{expected} is not in {message}");
        assert!(message.chars().count() < 350 && !message.contains(char::is_control), "{message}");
        for shown in [message, format!("{error:?}"), format!("{model:?}"), format!("{vectors:?}")] {
            assert!(!shown.contains(KEY_PART), "{shown}");
        }
        provider.next([fault]);
        let stream = model.stream(&request("x")).await.err().map(|error| error.kind());
        // A refusal without a reason may concern the token usage of streams, so the stream may succeed without it.
        assert!(stream == Some(kind) || kind == ErrorKind::Input, "{stream:?}");
    }
    provider.assert_well_asked();
}

#[tokio::test]
async fn wrong_key_model_and_length_are_reported() {
    let behavior = ProviderBehavior {
        key: Some("another".to_owned()),
        model: Some("thinker".to_owned()),
        context_tokens: 50,
        ..ProviderBehavior::default()
    };
    let provider = TestProvider::with(behavior);
    let complete = async |remote: RemoteOptions, text: &str| {
        let model = HttpChat::new(outgoing(), remote, &ChatOptions::default()).unwrap();
        let answer = model.complete(&request(text)).await;
        answer.map(|answer| answer.text).map_err(|error| error.to_string())
    };
    let good = RemoteOptions { api_key: Some("another".into()), ..remote(&provider) };
    assert_eq!(complete(good.clone(), "hello").await.unwrap(), "hello");
    let message = complete(remote(&provider), "hello").await.unwrap_err();
    assert!(message.contains("rejected the key") && !message.contains(KEY), "{message}");
    let keyless = RemoteOptions { api_key: None, ..good.clone() };
    assert!(complete(keyless, "hello").await.unwrap_err().contains("requires a key"));
    let other = RemoteOptions { model: "dreamer".to_owned(), ..good.clone() };
    assert!(complete(other, "hello").await.unwrap_err().contains("no model \"dreamer\""));
    let message = complete(good, &"word ".repeat(60)).await.unwrap_err();
    assert!(message.contains("longer than the model accepts"), "{message}");
    provider.assert_well_asked();
}

#[tokio::test]
async fn lesson_04_calls_fail_at_once_until_retry_after_is_over() {
    let provider = TestProvider::start();
    let model = chat(&provider);
    provider.next([Fault::status(429).header("Retry-After: 120")]);
    for _ in 0..3 {
        let error = model.complete(&request("x")).await.unwrap_err();
        let ErrorKind::Throttled { retry_after: Some(wait) } = error.kind() else { panic!("{error}") };
        assert!(wait > Duration::from_secs(100) && wait <= Duration::from_secs(120), "{wait:?}");
        assert!(model.stream(&request("x")).await.is_err());
    }
    assert_eq!(provider.seen().len(), 1, "a request was sent before Retry-After was over");
}

#[tokio::test]
async fn provider_without_response_is_unavailable_after_the_timeout() {
    let provider = TestProvider::start();
    provider.always(Some(Fault::Hang));
    let remote = RemoteOptions { timeout: Duration::from_millis(200), ..remote(&provider) };
    let model = HttpChat::new(outgoing(), remote.clone(), &ChatOptions::default()).unwrap();
    assert_eq!(model.complete(&request("x")).await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(model.stream(&request("x")).await.err().unwrap().kind(), ErrorKind::Unavailable);
    let connected = HttpEmbedder::connect(outgoing(), remote.clone(), EmbedOptions::default()).await;
    assert_eq!(connected.unwrap_err().kind(), ErrorKind::Unavailable);
    let unreachable = RemoteOptions { base_url: "http://127.0.0.1:1".to_owned(), ..remote };
    let model = HttpChat::new(outgoing(), unreachable, &ChatOptions::default()).unwrap();
    assert_eq!(model.complete(&request("x")).await.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn lesson_26_redirects_and_metadata_addresses_are_refused() {
    let (provider, target) = (TestProvider::start(), TestProvider::start());
    let (model, vectors) = (chat(&provider), embedder(&provider, EmbedOptions::default()).await);
    let target_url = format!("{}/chat/completions", target.base_url());
    for address in
        ["http://169.254.169.254/latest/meta-data/", "http://metadata.google.internal/", &target_url]
    {
        provider.next([Fault::redirect(address), Fault::redirect(address), Fault::redirect(address)]);
        assert_eq!(model.complete(&request("x")).await.unwrap_err().kind(), ErrorKind::Config);
        assert_eq!(model.stream(&request("x")).await.err().unwrap().kind(), ErrorKind::Config);
        let texts = ["x".to_owned()];
        assert_eq!(vectors.embed(EmbedKind::Query, &texts).await.unwrap_err().kind(), ErrorKind::Config);
    }
    assert!(target.seen().is_empty(), "a redirect was followed");
    for base_url in ["http://169.254.169.254/v1", "http://[::ffff:169.254.169.254]/", "ftp://h", ""] {
        let remote = RemoteOptions { base_url: base_url.to_owned(), ..remote(&provider) };
        let refused = HttpChat::new(outgoing(), remote.clone(), &ChatOptions::default()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Config, "{base_url}");
        let refused = HttpEmbedder::connect(outgoing(), remote, EmbedOptions::default()).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Config, "{base_url}");
    }
    let header = RemoteOptions { api_key: Some("sk-planted\n4711".into()), ..remote(&provider) };
    let refused = HttpChat::new(outgoing(), header, &ChatOptions::default()).unwrap_err();
    assert!(refused.kind() == ErrorKind::Config && !refused.to_string().contains("planted"), "{refused}");
}
