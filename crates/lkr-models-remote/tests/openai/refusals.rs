//! What providers refuse, and how that is told.

use std::time::Duration;

use lkr_models::{ChatModel, EmbedKind, Embedder, ErrorKind};
use lkr_models_remote::{ChatOptions, EmbedOptions, HttpChat, HttpEmbedder, RemoteOptions};
use lkr_test_provider::{Fault, ProviderBehavior, TestProvider};

use crate::support::{KEY, chat, embedder, outgoing, remote, request};

/// As much of the key as gives it away.
const KEY_PART: &str = "sk-plante";

const THROTTLED: ErrorKind = ErrorKind::Throttled { retry_after: None };

#[tokio::test]
async fn what_refusals_mean_and_no_key_in_any_of_it() {
    let text = |status: u16, body: &str| Fault::Answer { status, headers: Vec::new(), body: body.to_owned() };
    let provider = TestProvider::start();
    let (model, vectors) = (chat(&provider), embedder(&provider, EmbedOptions::default()).await);
    for (fault, kind, told) in [
        (Fault::status(401), ErrorKind::Config, "refuses the key (status 401)"),
        (Fault::status(403), ErrorKind::Config, "refuses the key"),
        (Fault::error(400, "API key not valid.", ""), ErrorKind::Config, "refuses the key (status 400)"),
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
            "longer than it takes",
        ),
        (Fault::status(413), ErrorKind::TooLarge, "takes less"),
        (
            Fault::error(429, "You exceeded your current quota", "insufficient_quota"),
            ErrorKind::Config,
            "quota is used up",
        ),
        (Fault::status(402), ErrorKind::Config, "quota is used up"),
        (Fault::status(429), THROTTLED, "asked less"),
        (Fault::status(500), ErrorKind::Unavailable, "it fails (status 500)"),
        (Fault::status(503), ErrorKind::Unavailable, "it fails"),
        (
            text(502, "<html>\n<b>Bad gateway</b>\u{7}"),
            ErrorKind::Unavailable,
            "it says: <html> <b>Bad gateway</b>",
        ),
        (
            Fault::error(500, &format!("no such key: {KEY}, nor {KEY_PART}"), KEY),
            ErrorKind::Unavailable,
            "no such key: ********",
        ),
        (Fault::error(400, &"no ".repeat(500), ""), ErrorKind::Input, "refuses the request"),
        (Fault::redirect("http://169.254.169.254/latest"), ErrorKind::Config, "leads elsewhere"),
    ] {
        provider.next([fault.clone()]);
        let error = model.complete(&request("x")).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        let said = error.to_string();
        assert!(said.contains(told), "{told} is not in {said}");
        assert!(said.chars().count() < 350 && !said.contains(char::is_control), "{said}");
        for shown in [said, format!("{error:?}"), format!("{model:?}"), format!("{vectors:?}")] {
            assert!(!shown.contains(KEY_PART), "{shown}");
        }
        provider.next([fault]);
        let stream = model.stream(&request("x")).await.err().map(|error| error.kind());
        // A refusal without a reason may be of what it costs.
        assert!(stream == Some(kind) || kind == ErrorKind::Input, "{stream:?}");
    }
    provider.assert_well_asked();
}

#[tokio::test]
async fn keys_models_and_lengths_that_the_provider_knows() {
    let quirks = ProviderBehavior {
        key: Some("another".to_owned()),
        model: Some("thinker".to_owned()),
        context_tokens: 50,
        ..ProviderBehavior::default()
    };
    let provider = TestProvider::with(quirks);
    let ask = async |remote: RemoteOptions, text: &str| {
        let model = HttpChat::new(outgoing(), remote, &ChatOptions::default()).unwrap();
        let asked = model.complete(&request(text)).await;
        asked.map(|answer| answer.text).map_err(|error| error.to_string())
    };
    let good = RemoteOptions { api_key: Some("another".into()), ..remote(&provider) };
    assert_eq!(ask(good.clone(), "hello").await.unwrap(), "hello");
    let said = ask(remote(&provider), "hello").await.unwrap_err();
    assert!(said.contains("refuses the key") && !said.contains(KEY), "{said}");
    let keyless = RemoteOptions { api_key: None, ..good.clone() };
    assert!(ask(keyless, "hello").await.unwrap_err().contains("wants a key"));
    let other = RemoteOptions { model: "dreamer".to_owned(), ..good.clone() };
    assert!(ask(other, "hello").await.unwrap_err().contains("no model \"dreamer\""));
    assert!(ask(good, &"word ".repeat(60)).await.unwrap_err().contains("longer than it takes"));
    provider.assert_well_asked();
}

#[tokio::test]
async fn lesson_04_a_time_to_wait_is_honoured() {
    let provider = TestProvider::start();
    let model = chat(&provider);
    provider.next([Fault::status(429).header("Retry-After: 120")]);
    for _ in 0..3 {
        let error = model.complete(&request("x")).await.unwrap_err();
        let ErrorKind::Throttled { retry_after: Some(left) } = error.kind() else { panic!("{error}") };
        assert!(left > Duration::from_secs(100) && left <= Duration::from_secs(120), "{left:?}");
        assert!(model.stream(&request("x")).await.is_err());
    }
    assert_eq!(provider.seen().len(), 1, "it is left alone");
}

#[tokio::test]
async fn who_does_not_answer_is_not_waited_for() {
    let provider = TestProvider::start();
    provider.always(Some(Fault::Hang));
    let impatient = RemoteOptions { timeout: Duration::from_millis(200), ..remote(&provider) };
    let model = HttpChat::new(outgoing(), impatient.clone(), &ChatOptions::default()).unwrap();
    assert_eq!(model.complete(&request("x")).await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(model.stream(&request("x")).await.err().unwrap().kind(), ErrorKind::Unavailable);
    let connected = HttpEmbedder::connect(outgoing(), impatient.clone(), EmbedOptions::default()).await;
    assert_eq!(connected.unwrap_err().kind(), ErrorKind::Unavailable);
    let nobody = RemoteOptions { base_url: "http://127.0.0.1:1".to_owned(), ..impatient };
    let model = HttpChat::new(outgoing(), nobody, &ChatOptions::default()).unwrap();
    assert_eq!(model.complete(&request("x")).await.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn lesson_26_redirects_are_not_followed_and_metadata_not_called() {
    let (provider, elsewhere) = (TestProvider::start(), TestProvider::start());
    let (model, vectors) = (chat(&provider), embedder(&provider, EmbedOptions::default()).await);
    let here = format!("{}/chat/completions", elsewhere.base_url());
    for address in ["http://169.254.169.254/latest/meta-data/", "http://metadata.google.internal/", &here] {
        provider.next([Fault::redirect(address), Fault::redirect(address), Fault::redirect(address)]);
        assert_eq!(model.complete(&request("x")).await.unwrap_err().kind(), ErrorKind::Config);
        assert_eq!(model.stream(&request("x")).await.err().unwrap().kind(), ErrorKind::Config);
        let texts = ["x".to_owned()];
        assert_eq!(vectors.embed(EmbedKind::Query, &texts).await.unwrap_err().kind(), ErrorKind::Config);
    }
    assert!(elsewhere.seen().is_empty(), "neither request nor key went there");
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
