use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use lkr_sealing::SealingKey;
use lkr_state::{FailingState, MemoryState, ScanOrder};
use lkr_webhooks::{DeliveryOptions, DeliveryOutcome, signature};
use serde_json::json;

use crate::support::{
    Fixture, OK, Receiver, SECRET, SERVER_ERROR, deleted_document_body, fast_options, now_ms, put_delivery,
};

#[tokio::test]
async fn lesson_14_delivery_has_signature_id_and_body() {
    let (fixture, receiver) = (Fixture::new().await, Receiver::start(|_| OK).await);
    fixture.create_webhook(&receiver.url).await;
    let _deliverer = fixture.start();
    let doc_id = fixture.delete_document().await;
    let delivery = receiver.wait(1).await.remove(0);
    assert!(delivery.head.starts_with("post /hook http/1.1"), "{}", delivery.head);
    assert_eq!(delivery.header("content-type"), "application/json");
    let json = delivery.json();
    assert_eq!(json["event"], "document.deleted");
    assert_eq!(json["data"], json!({ "doc_id": doc_id }));
    assert!(json["at"].as_str().unwrap().ends_with('Z'));
    let header = delivery.header("x-lkr-signature");
    let seconds = header.strip_prefix("t=").unwrap().split_once(',').unwrap().0.parse().unwrap();
    assert_eq!(header, signature(SECRET, seconds, &delivery.body));
    assert_eq!(delivery.header("x-lkr-delivery").len(), 32);
    fixture.wait_until_idle().await;
    fixture.wait_for_outcomes(DeliveryOutcome::Delivered, 1).await;
}

#[tokio::test]
async fn failed_delivery_is_retried_with_the_same_id_and_body() {
    let redirect = "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n";
    let responses = move |n| [SERVER_ERROR, redirect, "nonsense", OK].into_iter().nth(n).unwrap_or(OK);
    let (fixture, receiver) = (Fixture::new().await, Receiver::start(responses).await);
    fixture.create_webhook(&receiver.url).await;
    let _deliverer = fixture.start();
    fixture.delete_document().await;
    let attempts = receiver.wait(4).await;
    for attempt in &attempts {
        assert_eq!(attempt.body, attempts[0].body);
        assert_eq!(attempt.header("x-lkr-delivery"), attempts[0].header("x-lkr-delivery"));
    }
    fixture.wait_until_idle().await;
    fixture.wait_for_outcomes(DeliveryOutcome::Delivered, 1).await;
    assert_eq!(
        *fixture.outcomes.lock().unwrap(),
        [vec![DeliveryOutcome::Retried; 3], vec![DeliveryOutcome::Delivered]].concat()
    );
    assert_eq!(receiver.received().len(), 4);
}

#[tokio::test]
async fn retry_after_makes_a_pause_longer() {
    let pause = pause_after(
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n",
        fast_options(),
    );
    assert!((3_500_000..3_700_000).contains(&pause.await));
}

/// A receiver that asks for no pause would be called every second.
#[tokio::test]
async fn retry_after_makes_no_pause_shorter() {
    let hour = Duration::from_secs(3_600);
    let options = DeliveryOptions { initial_backoff: hour, max_backoff: hour, ..fast_options() };
    let pause = pause_after(
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n",
        options,
    )
    .await;
    assert!((2_600_000..4_600_000).contains(&pause), "{pause}");
}

/// The milliseconds until a delivery that was answered once is due again.
async fn pause_after(answer: &'static str, options: DeliveryOptions) -> u64 {
    let (fixture, receiver) = (Fixture::with_options(options).await, Receiver::start(move |_| answer).await);
    let webhook = fixture.create_webhook(&receiver.url).await;
    let _deliverer = fixture.start();
    fixture.delete_document().await;
    receiver.wait(1).await;
    fixture.wait_for_outcomes(DeliveryOutcome::Retried, 1).await;
    let prefix = format!("webhook/delivery/{}/", webhook.id);
    let (key, _) = fixture.state.scan(&prefix, None, ScanOrder::Ascending, 2).await.unwrap().remove(0);
    let due: u64 = key.strip_prefix(&prefix).unwrap().split('/').next().unwrap().parse().unwrap();
    due.saturating_sub(now_ms())
}

#[tokio::test]
async fn lesson_14_status_410_is_retried() {
    let gone = "HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n";
    let respond = move |n| if n < 2 { gone } else { OK };
    let (fixture, receiver) = (Fixture::new().await, Receiver::start(respond).await);
    fixture.create_webhook(&receiver.url).await;
    let _deliverer = fixture.start();
    fixture.delete_document().await;
    fixture.wait_until_idle().await;
    fixture.wait_for_outcomes(DeliveryOutcome::Delivered, 1).await;
    assert_eq!(receiver.received().len(), 3);
}

#[tokio::test]
async fn hanging_receiver_does_not_delay_other_webhooks() {
    let (hanging, healthy) = (Receiver::start(|_| "").await, Receiver::start(|_| OK).await);
    let fixture = Fixture::new().await;
    fixture.create_webhook(&hanging.url).await;
    fixture.create_webhook(&healthy.url).await;
    let deliverer = fixture.start();
    for _ in 0..20 {
        fixture.delete_document().await;
    }
    assert_eq!(healthy.wait(20).await.len(), 20);
    hanging.wait(4).await;
    assert_eq!(hanging.received().len(), 4, "the concurrency limit holds");
    deliverer.shutdown(Duration::ZERO).await;
}

/// Each step waits for the disk. If every delivery began with a step of its own, one after another, a bulk delete would fill the
/// backlogs of healthy receivers.
#[tokio::test]
async fn deliveries_that_begin_together_are_leased_in_one_step_for_each_webhook() {
    let steps = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&steps);
    let state = FailingState::new(Arc::new(MemoryState::new()), move |operation| {
        counted.fetch_add(usize::from(operation == "apply"), Ordering::SeqCst);
        None
    });
    let fixture = Fixture::with_state(Arc::new(state), SealingKey::generate(), fast_options()).await;
    let receivers = [Receiver::start(|_| "").await, Receiver::start(|_| "").await];
    for receiver in &receivers {
        fixture.create_webhook(&receiver.url).await;
    }
    for _ in 0..20 {
        fixture.delete_document().await;
    }
    steps.store(0, Ordering::SeqCst);
    let deliverer = fixture.start();
    for receiver in &receivers {
        receiver.wait(4).await;
    }
    assert_eq!(steps.load(Ordering::SeqCst), 1 + receivers.len(), "one creates the deliveries");
    deliverer.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn delivery_past_its_maximum_age_expires_after_a_last_attempt() {
    let fixture =
        Fixture::with_options(DeliveryOptions { max_age: Duration::from_millis(30), ..fast_options() }).await;
    let receiver = Receiver::start(|_| SERVER_ERROR).await;
    fixture.create_webhook(&receiver.url).await;
    let _deliverer = fixture.start();
    fixture.delete_document().await;
    fixture.wait_for_outcomes(DeliveryOutcome::Expired, 1).await;
    fixture.wait_until_idle().await;
    assert!(receiver.received().len() >= 2, "the last attempt comes when the delivery expires");
}

/// Due deliveries are read from the store; the backlog counted in memory does not matter.
#[tokio::test]
async fn due_delivery_is_found_even_if_the_backlog_count_is_zero() {
    let (fixture, receiver) = (Fixture::new().await, Receiver::start(|_| OK).await);
    let webhook = fixture.create_webhook(&receiver.url).await;
    let _deliverer = fixture.start();
    fixture.delete_document().await;
    fixture.wait_for_outcomes(DeliveryOutcome::Delivered, 1).await;
    let (body, doc_id) = deleted_document_body();
    put_delivery(&*fixture.state, &webhook, now_ms(), now_ms(), &body).await;
    let received = tokio::time::timeout(Duration::from_secs(20), receiver.wait(2)).await.unwrap();
    assert_eq!(received[1].doc_id(), doc_id);
}
