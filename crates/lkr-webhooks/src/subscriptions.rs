use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{EventKind, records::WebhookSet};

/// The event kinds that at least one webhook subscribes to, as this process last read them. Until they were read, every
/// kind counts as subscribed.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions(Mutex<SubscribedKinds>);

#[derive(Debug, Default)]
struct SubscribedKinds {
    /// `None` while they are unknown.
    kinds: Option<BTreeSet<EventKind>>,
    /// Reads of an earlier version are ignored, because a change may have overtaken them.
    min_version: u64,
}

impl Subscriptions {
    pub(crate) fn contains(&self, kind: EventKind) -> bool {
        self.lock().kinds.as_ref().is_none_or(|kinds| kinds.contains(&kind))
    }

    /// Treats every kind as subscribed until the successor of `webhooks`, which is about to be written, was read.
    pub(crate) fn invalidate(&self, webhooks: &WebhookSet) {
        let mut subscribed = self.lock();
        subscribed.kinds = None;
        subscribed.min_version = subscribed.min_version.max(webhooks.version() + 1);
    }

    pub(crate) fn update(&self, webhooks: &WebhookSet) {
        let mut subscribed = self.lock();
        if webhooks.version() < subscribed.min_version {
            return;
        }
        let kinds = EventKind::ALL
            .into_iter()
            .filter(|kind| webhooks.all.iter().any(|webhook| webhook.subscribes_to(kind.name())));
        *subscribed = SubscribedKinds { kinds: Some(kinds.collect()), min_version: webhooks.version() };
    }

    /// Treats no kind as subscribed, because the webhooks cannot be read.
    pub(crate) fn clear(&self) {
        self.lock().kinds = Some(BTreeSet::new());
    }

    fn lock(&self) -> MutexGuard<'_, SubscribedKinds> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
