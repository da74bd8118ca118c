//! Webhooks over a store, ready for tests.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use lkr_catalog::Outbox;
use lkr_domain::{DocId, EventId, SpaceName, WebhookId};
use lkr_outgoing::{Outgoing, Policy};
use lkr_sealing::{SealingKey, Secret};
use lkr_state::{Expect, Key, MemoryState, ScanOrder, StateStore, Write};
use lkr_webhooks::{
    Deliverer, DeliveryOptions, DeliveryOutcome, Dependencies, EventKind, EventOutbox, NewWebhook, Webhook,
    Webhooks,
};
use serde_json::{Value, json};
use time::OffsetDateTime;

pub(crate) use self::{
    damaged_state::DamagedState,
    receiver::{OK, ReceivedDelivery, Receiver, SERVER_ERROR},
};

mod damaged_state;
mod receiver;

/// The time limit of every wait.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) const SECRET: &str = "a secret of the test's";

pub(crate) const YEAR_MS: u64 = 365 * 24 * 60 * 60 * 1000;

/// Waits until a condition holds.
pub(crate) async fn until(mut condition: impl AsyncFnMut() -> bool) {
    let poll = tokio::time::timeout(TIMEOUT, async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    poll.await.expect("the condition holds in time");
}

/// Webhooks over a store.
pub(crate) struct Fixture {
    pub(crate) state: Arc<dyn StateStore>,
    pub(crate) outbox: EventOutbox,
    pub(crate) webhooks: Webhooks,
    pub(crate) outcomes: Arc<Mutex<Vec<DeliveryOutcome>>>,
    sealing: SealingKey,
}

/// Options with short waits, and a lease that does not end during a test.
pub(crate) fn fast_options() -> DeliveryOptions {
    DeliveryOptions {
        initial_backoff: Duration::from_millis(1),
        poll_interval: Duration::from_millis(2),
        lease: Duration::from_secs(3600),
        ..DeliveryOptions::default()
    }
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        Self::with_options(fast_options()).await
    }

    pub(crate) async fn with_options(options: DeliveryOptions) -> Self {
        Self::with_state(Arc::new(MemoryState::new()), SealingKey::generate(), options).await
    }

    pub(crate) async fn with_state(
        state: Arc<dyn StateStore>,
        sealing: SealingKey,
        options: DeliveryOptions,
    ) -> Self {
        Self::with_outbox(EventOutbox::new(|_| Value::Null), state, sealing, options).await
    }

    pub(crate) async fn with_outbox(
        outbox: EventOutbox,
        state: Arc<dyn StateStore>,
        sealing: SealingKey,
        options: DeliveryOptions,
    ) -> Self {
        let outcomes: Arc<Mutex<Vec<DeliveryOutcome>>> = Arc::default();
        let observed = Arc::clone(&outcomes);
        let deps = Dependencies {
            state: Arc::clone(&state),
            sealing: sealing.clone(),
            outgoing: Outgoing::new(Policy::any()).unwrap(),
            outbox: outbox.clone(),
            options,
            observe: Arc::new(move |outcome| observed.lock().unwrap().push(outcome)),
        };
        let webhooks = Webhooks::open(deps).await.unwrap();
        Self { state, outbox, webhooks, outcomes, sealing }
    }

    /// Opens the same store as a new process would.
    pub(crate) async fn reopen(&self, options: DeliveryOptions) -> Self {
        Self::with_state(Arc::clone(&self.state), self.sealing.clone(), options).await
    }

    pub(crate) async fn create_webhook(&self, url: &str) -> Webhook {
        self.webhooks.create(new_webhook(url), vec![]).await.unwrap()
    }

    /// Writes the event of a deleted document.
    pub(crate) async fn delete_document(&self) -> DocId {
        let doc_id = DocId::new();
        self.state
            .apply(self.outbox.document_deleted(doc_id, &SpaceName::default(), OffsetDateTime::now_utc()))
            .await
            .unwrap();
        doc_id
    }

    pub(crate) async fn count_records(&self, prefix: &str) -> usize {
        self.state.scan(prefix, None, ScanOrder::Ascending, 100_000).await.unwrap().len()
    }

    /// Waits until no event and no delivery is left.
    pub(crate) async fn wait_until_idle(&self) {
        until(async || {
            self.count_records("webhook/event/").await + self.count_records("webhook/delivery/").await == 0
        })
        .await;
    }

    /// Waits until `outcome` was observed `count` times.
    pub(crate) async fn wait_for_outcomes(&self, outcome: DeliveryOutcome, count: usize) {
        let observed =
            || self.outcomes.lock().unwrap().iter().filter(|observed| **observed == outcome).count();
        until(async || observed() >= count).await;
    }

    pub(crate) fn start(&self) -> Deliverer {
        self.webhooks.start()
    }
}

pub(crate) fn new_webhook(url: &str) -> NewWebhook {
    NewWebhook {
        id: WebhookId::new(),
        url: url.to_owned(),
        secret: Secret::new(SECRET),
        events: vec![EventKind::DocumentDeleted],
        space: None,
        created_by: "admin".to_owned(),
    }
}

pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis().try_into().unwrap()
}

/// The body of a deleted document's event, and the document's id.
pub(crate) fn deleted_document_body() -> (String, String) {
    let doc_id = DocId::new().to_string();
    (json!({ "event": "document.deleted", "data": { "doc_id": doc_id } }).to_string(), doc_id)
}

/// Stores a delivery and returns its key.
pub(crate) async fn put_delivery(
    state: &dyn StateStore,
    webhook: &Webhook,
    due_ms: u64,
    at_ms: u64,
    body: &str,
) -> Key {
    let key = format!("webhook/delivery/{}/{due_ms:015}/{}", webhook.id, EventId::new());
    let record = json!({ "v": "1", "at_ms": at_ms, "attempts": 0, "taken": false, "body": body });
    state.apply(vec![Write::put(&key, Expect::Absent, record.to_string())]).await.unwrap();
    key
}
