use std::time::Duration;

use lkr_domain::EventId;
use lkr_state::{Expect, ScanOrder, Write};
use lkr_webhooks::{DeliveryOptions, DeliveryOutcome};
use serde_json::json;

use crate::support::{
    Fixture, OK, Receiver, SERVER_ERROR, YEAR_MS, deleted_document_body, fast_options, now_ms, put_delivery,
};

/// A delivery that was written while the clock was a year ahead is sent at once. One that a receiver postponed waits.
#[tokio::test]
async fn lesson_14_delivery_written_while_the_clock_was_ahead_is_sent_now() {
    let (fixture, receiver) = (Fixture::new().await, Receiver::start(|_| OK).await);
    let webhook = fixture.create_webhook(&receiver.url).await;
    let (body, doc_id) = deleted_document_body();
    let ahead = now_ms() + YEAR_MS;
    put_delivery(&*fixture.state, &webhook, ahead, ahead, &body).await;
    let tomorrow = now_ms() + YEAR_MS / 366;
    let postponed = put_delivery(&*fixture.state, &webhook, tomorrow, now_ms(), "postponed").await;
    let _deliverer = fixture.start();
    assert_eq!(receiver.wait(1).await[0].doc_id(), doc_id);
    fixture.wait_for_outcomes(DeliveryOutcome::Delivered, 1).await;
    let stored = fixture.state.scan("webhook/delivery/", None, ScanOrder::Ascending, 10).await.unwrap();
    assert_eq!(stored.iter().map(|(key, _)| key).collect::<Vec<_>>(), [&postponed]);
}

#[tokio::test]
async fn lesson_14_event_from_the_future_expires() {
    let fixture =
        Fixture::with_options(DeliveryOptions { max_age: Duration::from_millis(30), ..fast_options() }).await;
    let receiver = Receiver::start(|_| SERVER_ERROR).await;
    fixture.create_webhook(&receiver.url).await;
    let (body, _) = deleted_document_body();
    let event = json!({ "v": "1", "kind": "document.deleted", "at_ms": now_ms() + YEAR_MS, "body": body });
    let key = format!("webhook/event/{}", EventId::new());
    fixture.state.apply(vec![Write::put(key, Expect::Absent, event.to_string())]).await.unwrap();
    let _deliverer = fixture.start();
    fixture.wait_for_outcomes(DeliveryOutcome::Expired, 1).await;
    fixture.wait_until_idle().await;
}
