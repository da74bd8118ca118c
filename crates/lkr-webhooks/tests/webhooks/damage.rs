use std::{sync::Arc, time::Duration};

use lkr_catalog::Outbox;
use lkr_domain::{DocId, EventId, SpaceName, WebhookId};
use lkr_sealing::SealingKey;
use lkr_state::{Expect, ScanOrder, StateStore, Write};
use lkr_webhooks::{DeliveryOutcome, ErrorKind};
use time::OffsetDateTime;

use crate::support::{
    DamagedState, Fixture, OK, ReceivedDelivery, Receiver, deleted_document_body, fast_options, new_webhook,
    now_ms, put_delivery,
};

#[tokio::test]
async fn undecodable_delivery_does_not_block_others() {
    let (fixture, receiver) = (Fixture::new().await, Receiver::start(|_| OK).await);
    let webhook = fixture.create_webhook(&receiver.url).await;
    let key = format!("webhook/delivery/{}/000000000000001/{}", webhook.id, WebhookId::new());
    let torn = Write::put(key, Expect::Absent, "torn");
    fixture.state.apply(vec![torn]).await.unwrap();
    let doc_id = fixture.delete_document().await;
    let _deliverer = fixture.start();
    assert_eq!(receiver.wait(1).await[0].doc_id(), doc_id.to_string());
    fixture.wait_until_idle().await;
}

#[tokio::test]
async fn lesson_14_damaged_record_does_not_block_others() {
    let (state, receiver) = (DamagedState::new(), Receiver::start(|_| OK).await);
    let sealing = SealingKey::generate();
    let fixture =
        Fixture::with_state(Arc::clone(&state) as Arc<dyn StateStore>, sealing, fast_options()).await;
    let webhook = fixture.create_webhook(&receiver.url).await;
    let mut expected = Vec::new();
    // The damaged ones include the first, the last, and two neighbours.
    for due in 1..=7 {
        let (body, doc_id) = deleted_document_body();
        let key = put_delivery(&*state, &webhook, due, now_ms(), &body).await;
        if [1, 3, 4, 7].contains(&due) {
            state.damage(key);
        } else {
            expected.push(doc_id);
        }
    }
    for n in 0..6 {
        let key = format!("webhook/event/{}", EventId::new());
        state.apply(vec![Write::put(&key, Expect::Absent, "torn")]).await.unwrap();
        if n % 2 == 0 {
            state.damage(key);
        }
        expected.push(fixture.delete_document().await.to_string());
    }
    let _deliverer = fixture.start();
    fixture.wait_for_outcomes(DeliveryOutcome::Delivered, expected.len()).await;
    let later = fixture.delete_document().await.to_string();
    expected.push(later);
    fixture.wait_for_outcomes(DeliveryOutcome::Delivered, expected.len()).await;
    let mut received: Vec<_> = receiver.received().iter().map(ReceivedDelivery::doc_id).collect();
    received.sort_unstable();
    expected.sort_unstable();
    assert_eq!(received, expected);
    assert_eq!(state.inner.scan("webhook/", None, ScanOrder::Ascending, 100).await.unwrap().len(), 4 + 3 + 1);
    // Damaged deliveries of a deleted webhook block nothing either.
    fixture.webhooks.delete(webhook.id, vec![]).await.unwrap();
    fixture.create_webhook(&receiver.url).await;
    fixture.delete_document().await;
    fixture.wait_for_outcomes(DeliveryOutcome::Delivered, expected.len() + 1).await;
}

#[tokio::test]
async fn lesson_14_damaged_webhooks_record_turns_webhooks_off() {
    let (state, receiver) = (DamagedState::new(), Receiver::start(|_| OK).await);
    let before = Fixture::with_state(
        Arc::clone(&state) as Arc<dyn StateStore>,
        SealingKey::generate(),
        fast_options(),
    )
    .await;
    before.create_webhook(&receiver.url).await;
    state.damage("webhook/hooks".to_owned());
    let fixture = before.reopen(fast_options()).await;
    let deliverer = fixture.start();
    assert_eq!(
        fixture.outbox.document_deleted(DocId::new(), &SpaceName::default(), OffsetDateTime::now_utc()),
        [],
        "no events pile up while webhooks are off"
    );
    assert_eq!(fixture.webhooks.list().await.unwrap_err().kind(), ErrorKind::Corrupt);
    let refused = fixture.webhooks.create(new_webhook(&receiver.url), vec![]).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Corrupt);
    // Webhooks are on again when their record can be read.
    state.repair();
    assert_eq!(fixture.webhooks.list().await.unwrap().len(), 1);
    let doc_id = fixture.delete_document().await;
    assert_eq!(receiver.wait(1).await[0].doc_id(), doc_id.to_string());
    deliverer.shutdown(Duration::from_secs(5)).await;
}
