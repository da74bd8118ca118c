use std::sync::Arc;

use lkr_sealing::SealingKey;
use lkr_state::{MemoryState, StateStore};
use lkr_webhooks::EventOutbox;
use serde_json::Value;

use crate::support::{Fixture, OK, ReceivedDelivery, Receiver, fast_options};

/// The process ends while some events have no deliveries yet, some attempts are in flight and some deliveries wait.
#[tokio::test]
async fn restart_delivers_what_was_left_exactly_once() {
    let receiver = Receiver::start(|n| if n < 4 { "" } else { OK }).await;
    let fixture = Fixture::new().await;
    fixture.create_webhook(&receiver.url).await;
    let deliverer = fixture.start();
    let mut expected = Vec::new();
    for _ in 0..8 {
        expected.push(fixture.delete_document().await.to_string());
    }
    receiver.wait(4).await;
    drop(deliverer);
    expected.push(fixture.delete_document().await.to_string());
    let reopened = fixture.reopen(fast_options()).await;
    let _deliverer = reopened.start();
    reopened.wait_until_idle().await;
    let received: Vec<_> = receiver.received().iter().skip(4).map(ReceivedDelivery::doc_id).collect();
    for doc_id in &expected {
        assert_eq!(received.iter().filter(|received| *received == doc_id).count(), 1, "{doc_id}");
    }
}

/// Several processes share a store: one of them sends each delivery, and a webhook that one process creates gets the
/// events of all.
#[tokio::test(flavor = "multi_thread")]
async fn several_processes_send_each_delivery_once() {
    let state: Arc<dyn StateStore> = Arc::new(MemoryState::new());
    let (sealing, receiver) = (SealingKey::generate(), Receiver::start(|_| OK).await);
    let mut processes = Vec::new();
    for _ in 0..3 {
        let outbox = EventOutbox::new(|_| Value::Null).shared();
        processes
            .push(Fixture::with_outbox(outbox, Arc::clone(&state), sealing.clone(), fast_options()).await);
    }
    let _deliverers: Vec<_> = processes.iter().map(Fixture::start).collect();
    processes[0].create_webhook(&receiver.url).await;
    let mut expected = Vec::new();
    for n in 0..60 {
        expected.push(processes[n % 3].delete_document().await.to_string());
    }
    processes[0].wait_until_idle().await;
    let mut received: Vec<_> = receiver.received().iter().map(ReceivedDelivery::doc_id).collect();
    received.sort_unstable();
    expected.sort_unstable();
    assert_eq!(received, expected);
}
