use std::{sync::Arc, time::Duration};

use lkr_sealing::SealingKey;
use lkr_state::{ErrorKind as StateErrorKind, FailingState, MemoryState, ScanOrder};
use lkr_webhooks::{DeliveryOutcome, ErrorKind, EventKind, MAX_WEBHOOKS, NewWebhook};

use crate::support::{Fixture, OK, Receiver, SECRET, fast_options, new_webhook};

#[tokio::test]
async fn create_with_invalid_values_is_refused() {
    let fixture = Fixture::new().await;
    let good = new_webhook("http://127.0.0.1:9/");
    let secret = |text: String| NewWebhook { secret: text.into(), ..good.clone() };
    for (new, reason) in [
        (new_webhook("http://169.254.169.254/x"), "url has the host 169.254.169.254"),
        (new_webhook("ftp://a.example/"), "url begins with ftp:"),
        (new_webhook("http://u:planted@a.example/"), "url has a user"),
        (new_webhook("nonsense"), "url is not an address"),
        (new_webhook(&format!("http://a.example/{}", "x".repeat(2048))), "url has 2065 characters"),
        (secret(String::new()), "secret"),
        (secret("  ".to_owned()), "secret"),
        (secret("planted\n".to_owned()), "secret"),
        (secret("planted".repeat(40)), "secret"),
        (NewWebhook { events: vec![], ..good.clone() }, "events is empty"),
    ] {
        let error = fixture.webhooks.create(new, vec![]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.reason().starts_with(reason) && !error.reason().contains("planted"), "{error}");
    }
    assert_eq!(fixture.count_records("").await, 0);
    let twice = NewWebhook { events: vec![EventKind::TaskDone, EventKind::TaskDone], ..good };
    assert_eq!(fixture.webhooks.create(twice, vec![]).await.unwrap().events, [EventKind::TaskDone]);
    for _ in 1..MAX_WEBHOOKS {
        fixture.create_webhook("http://127.0.0.1:9/").await;
    }
    let error = fixture.webhooks.create(new_webhook("http://127.0.0.1:9/"), vec![]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooMany);
    let listed = fixture.webhooks.list().await.unwrap();
    assert!(listed.len() == MAX_WEBHOOKS && listed.is_sorted_by(|a, b| a.id > b.id), "newest first");
}

#[tokio::test]
async fn secrets_are_sealed_and_another_key_sends_nothing() {
    let (fixture, receiver) = (Fixture::new().await, Receiver::start(|_| OK).await);
    fixture.create_webhook(&receiver.url).await;
    let records = fixture.state.scan("", None, ScanOrder::Ascending, 10).await.unwrap();
    assert!(records.iter().all(|(_, record)| !String::from_utf8_lossy(&record.value).contains(SECRET)));
    let other = Fixture::with_state(Arc::clone(&fixture.state), SealingKey::generate(), fast_options()).await;
    let deliverer = other.start();
    other.delete_document().await;
    other.wait_for_outcomes(DeliveryOutcome::Retried, 1).await;
    deliverer.shutdown(Duration::from_secs(5)).await;
    assert_eq!(receiver.received().len(), 0, "nothing is sent unsigned");
    let _deliverer = fixture.start();
    receiver.wait(1).await;
}

#[tokio::test]
async fn create_with_endless_conflicts_ends_as_contention() {
    let conflicting = FailingState::new(Arc::new(MemoryState::new()), |operation| {
        (operation == "apply").then_some(StateErrorKind::Conflict)
    });
    let fixture = Fixture::with_state(Arc::new(conflicting), SealingKey::generate(), fast_options()).await;
    let error = fixture.webhooks.create(new_webhook("http://127.0.0.1:9/"), vec![]).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Contention && error.is_retryable(), "{error}");
}
