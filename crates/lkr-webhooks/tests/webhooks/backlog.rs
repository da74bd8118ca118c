use std::time::Duration;

use lkr_domain::WebhookId;
use lkr_state::{Expect, ScanOrder, Write};
use lkr_webhooks::{DeliveryOptions, DeliveryOutcome, ErrorKind};

use crate::support::{Fixture, OK, ReceivedDelivery, Receiver, fast_options, now_ms, put_delivery, until};

#[tokio::test]
async fn full_backlog_drops_new_deliveries_and_keeps_earlier_ones() {
    let fixture = Fixture::with_options(DeliveryOptions { max_backlog: 5, ..fast_options() }).await;
    let receiver = Receiver::start(|n| if n < 4 { "" } else { OK }).await;
    fixture.create_webhook(&receiver.url).await;
    let mut expected = Vec::new();
    for _ in 0..7 {
        expected.push(fixture.delete_document().await.to_string());
    }
    let deliverer = fixture.start();
    fixture.wait_for_outcomes(DeliveryOutcome::Dropped, 2).await;
    assert_eq!(fixture.count_records("webhook/delivery/").await, 5);
    drop(deliverer);
    let reopened = fixture.reopen(fast_options()).await;
    let _deliverer = reopened.start();
    reopened.wait_until_idle().await;
    let received: Vec<_> = receiver.received().iter().map(ReceivedDelivery::doc_id).collect();
    assert!(expected[..5].iter().all(|doc_id| received.contains(doc_id)), "{received:?}");
    assert!(!expected[5..].iter().any(|doc_id| received.contains(doc_id)), "{received:?}");
}

/// The bytes of the backlog are bounded, and not only the number of deliveries.
#[tokio::test]
async fn lesson_14_backlog_bytes_are_bounded_across_restarts() {
    let options = DeliveryOptions { max_backlog_bytes: 1000, ..fast_options() };
    let fixture = Fixture::with_options(options.clone()).await;
    let receiver = Receiver::start(|_| "").await;
    let webhook = fixture.create_webhook(&receiver.url).await;
    put_delivery(&*fixture.state, &webhook, now_ms(), now_ms(), &"x".repeat(300)).await;
    let deliverer = fixture.start();
    for _ in 0..10 {
        fixture.delete_document().await;
    }
    until(async || fixture.count_records("webhook/event/").await == 0).await;
    drop(deliverer);
    let stored = fixture.state.scan("webhook/delivery/", None, ScanOrder::Ascending, 100).await.unwrap();
    let count = stored.len();
    assert!(count > 1 && count < 10, "{count}");
    let bytes: usize = stored.iter().map(|(_, record)| record.value.len()).sum();
    assert!((600..1050).contains(&bytes), "{bytes}");
    let reopened = fixture.reopen(options).await;
    let _deliverer = reopened.start();
    for _ in 0..5 {
        reopened.delete_document().await;
    }
    reopened.wait_for_outcomes(DeliveryOutcome::Dropped, 5).await;
    assert_eq!(reopened.count_records("webhook/delivery/").await, count);
}

#[tokio::test]
async fn deleted_webhook_loses_its_backlog() {
    let (hanging, healthy) = (Receiver::start(|_| "").await, Receiver::start(|_| OK).await);
    let fixture = Fixture::new().await;
    let webhook = fixture.create_webhook(&hanging.url).await;
    let deliverer = fixture.start();
    for _ in 0..10 {
        fixture.delete_document().await;
    }
    hanging.wait(4).await;
    fixture.webhooks.delete(webhook.id, vec![]).await.unwrap();
    fixture.wait_until_idle().await;
    let refused = fixture.webhooks.delete(webhook.id, vec![]).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotFound);
    fixture.create_webhook(&healthy.url).await;
    let doc_id = fixture.delete_document().await;
    assert_eq!(healthy.wait(1).await[0].doc_id(), doc_id.to_string());
    assert_eq!(hanging.received().len(), 4);
    deliverer.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn deliveries_of_unknown_webhooks_are_removed() {
    let fixture = Fixture::new().await;
    let orphan = format!("webhook/delivery/{}/000000000000001/{}", WebhookId::new(), WebhookId::new());
    let torn = Write::put("webhook/event/torn", Expect::Absent, "torn");
    let unknown = Write::put(orphan, Expect::Absent, "whatever");
    fixture.state.apply(vec![unknown, torn]).await.unwrap();
    let _deliverer = fixture.start();
    fixture.wait_until_idle().await;
}
