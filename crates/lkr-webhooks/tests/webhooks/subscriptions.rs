use std::{sync::Arc, time::Duration};

use lkr_catalog::Outbox;
use lkr_domain::{DocId, EventId, SpaceName};
use lkr_state::{Expect, Write};
use lkr_webhooks::{EventKind, EventOutbox, NewWebhook};
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::support::{Fixture, OK, Receiver, fast_options, new_webhook, now_ms, until};

/// The writes that report a deletion.
fn deletion(outbox: &EventOutbox) -> Vec<Write> {
    outbox.document_deleted(DocId::new(), &SpaceName::default(), OffsetDateTime::now_utc())
}

#[tokio::test]
async fn outbox_without_subscribed_webhook_writes_no_event() {
    let fixture = Fixture::new().await;
    let unopened = EventOutbox::new(|_| Value::Null);
    assert_eq!(deletion(&unopened).len(), 1, "before the webhooks were read, every event is written");
    assert_eq!(deletion(&fixture.outbox), []);
    let tasks = NewWebhook { events: vec![EventKind::TaskDone], ..new_webhook("http://127.0.0.1:9/") };
    let tasks = fixture.webhooks.create(tasks, vec![]).await.unwrap();
    assert_eq!(deletion(&fixture.outbox), []);
    let all = fixture.create_webhook("http://127.0.0.1:9/").await;
    assert_eq!(deletion(&fixture.outbox).len(), 1);
    for webhook in [all, tasks] {
        fixture.webhooks.delete(webhook.id, vec![]).await.unwrap();
    }
    assert_eq!(deletion(&fixture.outbox), []);
    assert_eq!(deletion(&fixture.outbox.clone().shared()).len(), 1);
    let reopened = fixture.reopen(fast_options()).await;
    assert_eq!(deletion(&reopened.outbox), [], "the subscriptions are read at a start");
}

#[tokio::test]
async fn webhook_of_a_space_gets_the_events_of_this_space_alone() {
    let (fixture, receiver) = (Fixture::new().await, Receiver::start(|_| OK).await);
    let team = SpaceName::new("team").unwrap();
    let of_team = NewWebhook { space: Some(team.clone()), ..new_webhook(&receiver.url) };
    let of_team = fixture.webhooks.create(of_team, vec![]).await.unwrap();
    assert_eq!(of_team.space, Some(team.clone()));
    let (in_default, in_team) = (DocId::new(), DocId::new());
    for (doc_id, space) in [(in_default, &SpaceName::default()), (in_team, &team)] {
        fixture
            .state
            .apply(fixture.outbox.document_deleted(doc_id, space, OffsetDateTime::now_utc()))
            .await
            .unwrap();
    }
    // An event that an earlier release wrote has no space.
    let old = json!({ "v": "1", "kind": "document.deleted", "at_ms": now_ms(), "body": "{}" });
    let key = format!("webhook/event/{}", EventId::new());
    fixture.state.apply(vec![Write::put(key, Expect::Absent, old.to_string())]).await.unwrap();
    let _deliverer = fixture.start();
    fixture.wait_until_idle().await;
    let received: Vec<_> = receiver.received().iter().map(|delivery| delivery.doc_id()).collect();
    assert_eq!(received, [in_team.to_string()]);
    let [listed] = fixture.reopen(fast_options()).await.webhooks.list().await.unwrap().try_into().unwrap();
    assert_eq!(listed, of_team);
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
