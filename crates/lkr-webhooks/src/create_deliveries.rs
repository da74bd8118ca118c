//! Creates the deliveries of new events: one for each webhook that subscribes to the event's kind.

use std::collections::BTreeMap;

use lkr_domain::{EventId, WebhookId};
use lkr_state::{Expect, Record, ScanOrder, Write};

use crate::{
    DeliveryOutcome, DeliveryState, Result,
    clock::now_ms,
    deliverer::DeliveryLoop,
    delivery::apply_if_unchanged,
    delivery_log::{LogEntry, prune},
    records::{DeliveryV1, EVENTS, EventV1, WebhookSet, decode, delivery_key, encode},
};

/// The most events that one step turns into deliveries. Chosen, not measured, to keep steps short.
const BATCH: usize = 50;

/// The most bytes of events that one step turns into deliveries, but at least one event: each body is copied for every
/// webhook. Chosen, not measured.
const BATCH_BYTES: usize = 1024 * 1024;

/// The deliveries that one step creates for a webhook.
#[derive(Default)]
struct CreatedDeliveries {
    sizes: Vec<(EventId, usize)>,
    bytes: usize,
    dropped: usize,
}

impl DeliveryLoop {
    /// Turns all stored events into deliveries, batch by batch.
    pub(crate) async fn create_deliveries(&mut self, webhooks: &WebhookSet) -> Result<()> {
        loop {
            let state = &*self.shared.deps.state;
            let events = state.scan(EVENTS, None, ScanOrder::Ascending, BATCH).await?;
            if events.is_empty() {
                return Ok(());
            }
            let is_last = events.len() < BATCH;
            let (step, created) = self.delivery_step(webhooks, &first_batch(events))?;
            if !apply_if_unchanged(state, step).await? {
                // The webhooks were changed, or another process created the deliveries.
                return Ok(());
            }
            for webhook in created.keys() {
                prune(&*self.shared.deps.state, *webhook).await?;
            }
            self.record_created(created);
            if is_last {
                // Events beyond `BATCH_BYTES` are left for the next round.
                return Ok(());
            }
        }
    }

    /// The step that replaces events by their deliveries, and what it creates for each webhook.
    fn delivery_step(
        &self,
        webhooks: &WebhookSet,
        events: &[(String, Record)],
    ) -> Result<(Vec<Write>, BTreeMap<WebhookId, CreatedDeliveries>)> {
        let mut step = vec![webhooks.check()];
        let mut created: BTreeMap<WebhookId, CreatedDeliveries> = BTreeMap::new();
        for (key, record) in events {
            step.push(Write::delete(key, Expect::Version(record.version)));
            let id = key.strip_prefix(EVENTS).and_then(|id| id.parse::<EventId>().ok());
            let (Some(id), Ok(event)) = (id, decode::<EventV1>(&record.value)) else {
                tracing::error!(key, "webhook event is damaged; dropped");
                continue;
            };
            for webhook in webhooks.all.iter().filter(|webhook| webhook.gets(&event)) {
                let delivery = new_delivery(&event);
                let (record, due_ms) = (encode(&delivery)?, now_ms(&*self.shared.deps.state));
                let created = created.entry(webhook.id).or_default();
                let entry = if self.has_room(webhook.id, created, record.len()) {
                    created.add(id, record.len());
                    step.push(Write::put(delivery_key(webhook.id, due_ms, id), Expect::Absent, record));
                    LogEntry::new(DeliveryState::Waiting, Some(due_ms))
                } else {
                    created.dropped += 1;
                    LogEntry::new(DeliveryState::Dropped, None)
                };
                step.push(entry.put(webhook.id, id, &delivery)?);
            }
        }
        Ok((step, created))
    }

    /// Whether a webhook's backlog has room for `bytes` more, on top of what this step creates.
    fn has_room(&self, webhook: WebhookId, created: &CreatedDeliveries, bytes: usize) -> bool {
        let options = &self.shared.deps.options;
        let backlog = self.backlogs.get(&webhook);
        let (count, stored) = backlog.map_or((0, 0), |backlog| (backlog.count(), backlog.bytes()));
        count + created.sizes.len() < options.max_backlog
            && stored + created.bytes + bytes <= options.max_backlog_bytes
    }

    /// Adds created deliveries to the backlogs, and reports dropped ones.
    fn record_created(&mut self, created: BTreeMap<WebhookId, CreatedDeliveries>) {
        for (webhook, CreatedDeliveries { sizes, dropped, .. }) in created {
            let backlog = self.backlogs.entry(webhook).or_default();
            sizes.into_iter().for_each(|(event, bytes)| backlog.add(event, bytes));
            if dropped > 0 {
                let (waiting, bytes) = (backlog.count(), backlog.bytes());
                tracing::warn!(%webhook, dropped, waiting, bytes, "webhook backlog is full; new deliveries dropped");
            }
            (0..dropped).for_each(|_| (self.shared.deps.observe)(DeliveryOutcome::Dropped));
        }
    }
}

impl CreatedDeliveries {
    fn add(&mut self, event: EventId, bytes: usize) {
        self.sizes.push((event, bytes));
        self.bytes += bytes;
    }
}

/// The first events, as many as one step may copy.
fn first_batch(events: Vec<(String, Record)>) -> Vec<(String, Record)> {
    let mut bytes = 0;
    let fits = |(_, record): &(String, Record)| {
        let is_first = bytes == 0;
        bytes += record.value.len().max(1);
        is_first || bytes <= BATCH_BYTES
    };
    events.into_iter().take_while(fits).collect()
}

/// A delivery that was not attempted yet.
fn new_delivery(event: &EventV1) -> DeliveryV1 {
    let EventV1 { at_ms, body, .. } = event;
    DeliveryV1 { at_ms: *at_ms, attempts: 0, is_leased: false, body: body.clone() }
}
