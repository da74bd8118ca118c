use std::time::Duration;

use lkr_domain::WebhookId;
use lkr_state::{Expect, ScanOrder, Write};
use lkr_webhooks::{DeliveryOptions, DeliveryOutcome, DeliveryState, ErrorKind, MAX_LOGGED};

use crate::support::{Fixture, OK, Receiver, SERVER_ERROR, fast_options, until};

#[tokio::test]
async fn log_shows_a_delivery_from_waiting_to_its_end() {
    let later = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 3600\r\nContent-Length: 6\r\n\r\nhidden";
    let receiver = Receiver::start(move |n| if n == 0 { later } else { OK }).await;
    let fixture = Fixture::new().await;
    let webhook = fixture.create_webhook(&receiver.url).await;
    assert_eq!(fixture.webhooks.deliveries(webhook.id).await.unwrap(), []);
    let deliverer = fixture.start();
    let doc_id = fixture.delete_document().await;
    fixture.wait_for_outcomes(DeliveryOutcome::Retried, 1).await;
    let waiting = fixture.webhooks.deliveries(webhook.id).await.unwrap().remove(0);
    assert_eq!(
        (waiting.event.as_str(), waiting.task_id, waiting.doc_id),
        ("document.deleted", None, Some(doc_id))
    );
    assert_eq!((waiting.state, waiting.attempts, waiting.status), (DeliveryState::Waiting, 1, Some(503)));
    assert_eq!(waiting.error.as_deref(), Some("the receiver responded with status 503"));
    let (attempted, next) = (waiting.attempted_at.unwrap(), waiting.next_attempt_at.unwrap());
    assert!(attempted >= waiting.at && next > attempted + Duration::from_secs(3_500), "{waiting:?}");
    assert_eq!(waiting.id.to_string(), receiver.received()[0].header("x-lkr-delivery"));
    // The delivery becomes due, as by its time.
    drop(deliverer);
    let reopened = fixture.reopen(fast_options()).await;
    let prefix = format!("webhook/delivery/{}/", webhook.id);
    let (key, record) = fixture.state.scan(&prefix, None, ScanOrder::Ascending, 2).await.unwrap().remove(0);
    let due_now = format!("{prefix}{:015}/{}", 1, waiting.id);
    let writes = vec![Write::delete(key, Expect::Any), Write::put(due_now, Expect::Absent, record.value)];
    fixture.state.apply(writes).await.unwrap();
    let _deliverer = reopened.start();
    reopened.wait_for_outcomes(DeliveryOutcome::Delivered, 1).await;
    let delivered = reopened.webhooks.deliveries(webhook.id).await.unwrap();
    let [delivered] = &*delivered else { panic!("one delivery is one entry: {delivered:?}") };
    assert_eq!((delivered.id, delivered.at), (waiting.id, waiting.at));
    assert_eq!(
        (delivered.state, delivered.attempts, delivered.status),
        (DeliveryState::Delivered, 2, Some(204))
    );
    assert_eq!((&delivered.error, delivered.next_attempt_at), (&None, None));
}

#[tokio::test]
async fn log_tells_expired_dropped_and_unanswered_deliveries() {
    let options = DeliveryOptions { max_age: Duration::ZERO, ..fast_options() };
    let fixture = Fixture::with_options(options).await;
    // Nobody listens on this port.
    let webhook = fixture.create_webhook("http://127.0.0.1:9/hook").await;
    let deliverer = fixture.start();
    fixture.delete_document().await;
    fixture.wait_for_outcomes(DeliveryOutcome::Expired, 1).await;
    let expired = fixture.webhooks.deliveries(webhook.id).await.unwrap().remove(0);
    assert_eq!((expired.state, expired.attempts, expired.status), (DeliveryState::Expired, 1, None));
    assert!(expired.error.is_some() && expired.next_attempt_at.is_none(), "{expired:?}");
    drop(deliverer);
    let full = fixture.reopen(DeliveryOptions { max_backlog: 0, ..fast_options() }).await;
    let _deliverer = full.start();
    full.delete_document().await;
    full.wait_for_outcomes(DeliveryOutcome::Dropped, 1).await;
    let dropped = full.webhooks.deliveries(webhook.id).await.unwrap().remove(0);
    assert_eq!((dropped.state, dropped.attempts, dropped.attempted_at), (DeliveryState::Dropped, 0, None));
}

#[tokio::test]
async fn log_keeps_the_newest_deliveries_alone() {
    let receiver = Receiver::start(|n| if n % 3 == 0 { SERVER_ERROR } else { OK }).await;
    let fixture = Fixture::new().await;
    let webhook = fixture.create_webhook(&receiver.url).await;
    let _deliverer = fixture.start();
    let mut expected = Vec::new();
    for _ in 0..MAX_LOGGED + 30 {
        expected.push(Some(fixture.delete_document().await));
    }
    fixture.wait_for_outcomes(DeliveryOutcome::Delivered, MAX_LOGGED + 30).await;
    let logged = fixture.webhooks.deliveries(webhook.id).await.unwrap();
    let doc_ids: Vec<_> = logged.iter().map(|delivery| delivery.doc_id).collect();
    expected.reverse();
    assert_eq!(doc_ids, expected[..MAX_LOGGED]);
    assert!(logged.iter().all(|delivery| delivery.state == DeliveryState::Delivered));
    // What is beyond is removed when the next delivery is created.
    fixture.delete_document().await;
    until(async || fixture.count_records("webhook-log/").await == MAX_LOGGED).await;
}

#[tokio::test]
async fn log_is_removed_with_its_webhook() {
    let (fixture, receiver) = (Fixture::new().await, Receiver::start(|_| OK).await);
    let (one, two) =
        (fixture.create_webhook(&receiver.url).await, fixture.create_webhook(&receiver.url).await);
    let _deliverer = fixture.start();
    fixture.delete_document().await;
    fixture.wait_for_outcomes(DeliveryOutcome::Delivered, 2).await;
    fixture.webhooks.delete(one.id, vec![]).await.unwrap();
    until(async || fixture.count_records(&format!("webhook-log/{}/", one.id)).await == 0).await;
    assert_eq!(fixture.webhooks.deliveries(two.id).await.unwrap().len(), 1);
    for id in [one.id, WebhookId::new()] {
        assert_eq!(fixture.webhooks.deliveries(id).await.unwrap_err().kind(), ErrorKind::NotFound);
    }
}
