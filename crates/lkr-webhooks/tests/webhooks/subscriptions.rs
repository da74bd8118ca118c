use std::{sync::Arc, time::Duration};

use lkr_catalog::Outbox;
use lkr_domain::DocId;
use lkr_webhooks::{EventKind, EventOutbox, NewWebhook};
use serde_json::Value;

use crate::support::{Fixture, OK, Receiver, fast_options, new_webhook, until};

#[tokio::test]
async fn outbox_without_subscribed_webhook_writes_no_event() {
    let fixture = Fixture::new().await;
    let unopened = EventOutbox::new(|_| Value::Null);
    assert_eq!(
        unopened.document_deleted(DocId::new()).len(),
        1,
        "before the webhooks were read, every event is written"
    );
    assert_eq!(fixture.outbox.document_deleted(DocId::new()), []);
    let tasks = NewWebhook { events: vec![EventKind::TaskDone], ..new_webhook("http://127.0.0.1:9/") };
    let tasks = fixture.webhooks.create(tasks, vec![]).await.unwrap();
    assert_eq!(fixture.outbox.document_deleted(DocId::new()), []);
    let all = fixture.create_webhook("http://127.0.0.1:9/").await;
    assert_eq!(fixture.outbox.document_deleted(DocId::new()).len(), 1);
    for webhook in [all, tasks] {
        fixture.webhooks.delete(webhook.id, vec![]).await.unwrap();
    }
    assert_eq!(fixture.outbox.document_deleted(DocId::new()), []);
    assert_eq!(fixture.outbox.clone().shared().document_deleted(DocId::new()).len(), 1);
    let reopened = fixture.reopen(fast_options()).await;
    assert_eq!(reopened.outbox.document_deleted(DocId::new()), [], "the subscriptions are read at a start");
}

/// Events are written while webhooks are created and deleted: a new webhook gets each event after its creation.
#[tokio::test(flavor = "multi_thread")]
async fn lesson_14_new_webhook_gets_every_later_event() {
    let (fixture, receiver) = (Arc::new(Fixture::new().await), Receiver::start(|_| OK).await);
    let _deliverer = fixture.start();
    let background = {
        let fixture = Arc::clone(&fixture);
        tokio::spawn(async move {
            loop {
                let webhook = fixture.create_webhook("http://127.0.0.1:9/").await;
                fixture.webhooks.delete(webhook.id, vec![]).await.unwrap();
                fixture.delete_document().await;
                // Without a pause, a busy machine makes events faster than it delivers them, and a full backlog drops some.
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
    };
    for _ in 0..20 {
        let webhook = fixture.create_webhook(&receiver.url).await;
        let expected = fixture.delete_document().await.to_string();
        until(async || receiver.received().iter().any(|delivery| delivery.doc_id() == expected)).await;
        fixture.webhooks.delete(webhook.id, vec![]).await.unwrap();
    }
    background.abort();
}
