//! A webhook, as its deliveries see it. Each has a lane of its own, so that none waits for another's receiver.

use std::collections::BTreeMap;

use lkr_domain::{EventId, WebhookId};

use crate::{DeliveryOutcome, attempt::Tried};

/// What waits for a webhook, by its id: counting or ending a delivery twice is the same as once. It bounds what is put
/// down; whether anything is due, the store alone knows.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    /// How many bytes each delivery is, as it is stored.
    waiting: BTreeMap<EventId, usize>,
    bytes: usize,
    /// Whether the last try failed.
    is_failing: bool,
}

impl Lane {
    /// How many deliveries wait.
    pub(crate) fn count(&self) -> usize {
        self.waiting.len()
    }

    /// How many bytes they are.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// What waits is this and nothing else.
    pub(crate) fn recount(&mut self, waiting: Vec<(EventId, usize)>) {
        self.waiting = waiting.into_iter().collect();
        self.bytes = self.waiting.values().sum();
    }

    pub(crate) fn add(&mut self, event: EventId, bytes: usize) {
        self.remove(event);
        self.waiting.insert(event, bytes);
        self.bytes += bytes;
    }

    fn remove(&mut self, event: EventId) {
        self.bytes -= self.waiting.remove(&event).unwrap_or(0);
    }

    /// Notes how a try ended, and says in the log what an admin should know. A receiver that is away for long is not
    /// told of with every delivery.
    pub(crate) fn note(&mut self, hook: WebhookId, tried: &Tried) {
        if tried.outcome != DeliveryOutcome::Retried {
            self.remove(tried.event);
        }
        let reason = tried.failure.as_deref().unwrap_or_default();
        match tried.outcome {
            DeliveryOutcome::Expired => {
                tracing::warn!(%hook, reason, "a delivery was tried for as long as it is, and is dropped");
            }
            DeliveryOutcome::Retried if !self.is_failing => {
                tracing::warn!(%hook, reason, "deliveries fail; they are tried again");
            }
            DeliveryOutcome::Delivered if self.is_failing => tracing::info!(%hook, "deliveries arrive again"),
            _ => tracing::debug!(%hook, reason, outcome = tried.outcome.name(), "a delivery was tried"),
        }
        self.is_failing = tried.outcome != DeliveryOutcome::Delivered;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A delivery ends in the store before its end is noted: what is counted in between is without it.
    #[test]
    fn an_end_that_is_noted_after_a_count_counts_once() {
        let (hook, events) = (WebhookId::new(), [(); 3].map(|()| EventId::new()));
        let mut lane = Lane::default();
        events.iter().for_each(|event| lane.add(*event, 10));
        lane.recount(vec![(events[1], 10), (events[2], 11)]);
        let ended = |event, outcome| Tried { event, outcome, failure: None };
        lane.note(hook, &ended(events[0], DeliveryOutcome::Delivered));
        assert_eq!((lane.count(), lane.bytes()), (2, 21));
        lane.note(hook, &ended(events[1], DeliveryOutcome::Retried));
        lane.add(events[1], 12);
        assert_eq!((lane.count(), lane.bytes()), (2, 23));
        for outcome in [DeliveryOutcome::Delivered, DeliveryOutcome::Expired] {
            lane.note(hook, &ended(events[1], outcome));
            assert_eq!((lane.count(), lane.bytes()), (1, 11));
        }
    }
}
