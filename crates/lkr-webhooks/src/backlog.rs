//! The deliveries that wait for one webhook. Each webhook has its own backlog, so a slow receiver delays no other.

use std::collections::BTreeMap;

use lkr_domain::{EventId, WebhookId};

use crate::{DeliveryOutcome, attempt::DeliveryAttempt};

/// The size of each delivery that waits for one webhook. It only bounds how many are created: which deliveries are due
/// is always read from the store. Deliveries are held by event id, so adding or removing one twice has no effect.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    /// The stored bytes of each delivery.
    sizes: BTreeMap<EventId, usize>,
    bytes: usize,
    /// Whether the last attempt failed.
    is_failing: bool,
}

impl Backlog {
    /// The number of deliveries that wait.
    pub(crate) fn count(&self) -> usize {
        self.sizes.len()
    }

    /// The stored bytes of the deliveries that wait.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Replaces the content by what the store holds.
    pub(crate) fn recount(&mut self, stored: Vec<(EventId, usize)>) {
        self.sizes = stored.into_iter().collect();
        self.bytes = self.sizes.values().sum();
    }

    pub(crate) fn add(&mut self, event: EventId, bytes: usize) {
        self.remove(event);
        self.sizes.insert(event, bytes);
        self.bytes += bytes;
    }

    fn remove(&mut self, event: EventId) {
        self.bytes -= self.sizes.remove(&event).unwrap_or(0);
    }

    /// Records the result of an attempt, and logs it. If a receiver keeps failing, only the first failure is a warning.
    pub(crate) fn record(&mut self, webhook: WebhookId, attempt: &DeliveryAttempt) {
        if attempt.outcome != DeliveryOutcome::Retried {
            self.remove(attempt.event);
        }
        let event = attempt.event;
        let reason = attempt.failure.as_deref().unwrap_or_default();
        match attempt.outcome {
            DeliveryOutcome::Expired => {
                tracing::warn!(%webhook, %event, reason, "webhook delivery expired; dropped");
            }
            DeliveryOutcome::Retried if !self.is_failing => {
                tracing::warn!(%webhook, %event, reason, "webhook deliveries fail; retrying with backoff");
            }
            DeliveryOutcome::Delivered if self.is_failing => {
                tracing::info!(%webhook, "webhook deliveries succeed again");
            }
            outcome => {
                tracing::debug!(%webhook, %event, reason, outcome = outcome.name(), "webhook delivery attempted");
            }
        }
        self.is_failing = attempt.outcome != DeliveryOutcome::Delivered;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A delivery is removed from the store before its outcome is recorded, so a recount in between lacks it already.
    #[test]
    fn record_after_recount_removes_each_delivery_once() {
        let (webhook, events) = (WebhookId::new(), [(); 3].map(|()| EventId::new()));
        let mut backlog = Backlog::default();
        events.iter().for_each(|event| backlog.add(*event, 10));
        backlog.recount(vec![(events[1], 10), (events[2], 11)]);
        let ended = |event, outcome| DeliveryAttempt { event, outcome, failure: None };
        backlog.record(webhook, &ended(events[0], DeliveryOutcome::Delivered));
        assert_eq!((backlog.count(), backlog.bytes()), (2, 21));
        backlog.record(webhook, &ended(events[1], DeliveryOutcome::Retried));
        backlog.add(events[1], 12);
        assert_eq!((backlog.count(), backlog.bytes()), (2, 23));
        for outcome in [DeliveryOutcome::Delivered, DeliveryOutcome::Expired] {
            backlog.record(webhook, &ended(events[1], outcome));
            assert_eq!((backlog.count(), backlog.bytes()), (1, 11));
        }
    }
}
