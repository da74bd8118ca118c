//! The state that webhooks and their deliverer share.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use lkr_outgoing::Outgoing;
use lkr_sealing::SealingKey;
use lkr_state::{StateStore, StateStoreExt, Write, retry_on_conflict};
use tokio::sync::{Mutex, Notify};

use crate::{
    DeliveryOptions, DeliveryOutcome, Error, ErrorKind, EventOutbox, Result,
    records::{WEBHOOKS, WebhookSet, WebhookV1},
    skip_damaged_scan::SkipDamagedScan,
};

/// What [`Webhooks`](crate::Webhooks) needs from the program.
pub struct Dependencies {
    /// Stores webhooks, events and deliveries.
    pub state: Arc<dyn StateStore>,
    /// Seals the webhooks' secrets.
    pub sealing: SealingKey,
    /// Sends deliveries.
    pub outgoing: Outgoing,
    /// The outbox of the knowledge base on the same store.
    pub outbox: EventOutbox,
    /// How deliveries are sent and retried.
    pub options: DeliveryOptions,
    /// Called with the outcome of each attempt, and of each dropped delivery.
    pub observe: Arc<dyn Fn(DeliveryOutcome) + Send + Sync>,
}

pub(crate) struct WebhooksShared {
    pub(crate) deps: Dependencies,
    /// Serialises the changes of this process.
    changing: Mutex<()>,
    /// Wakes the deliverer.
    pub(crate) wake: Notify,
    /// Whether the webhooks cannot be read.
    is_off: AtomicBool,
}

impl WebhooksShared {
    pub(crate) fn new(mut deps: Dependencies) -> Self {
        deps.state = Arc::new(SkipDamagedScan::new(deps.state));
        Self { deps, changing: Mutex::default(), wake: Notify::new(), is_off: AtomicBool::new(false) }
    }

    /// Reads the webhooks and updates the outbox's subscriptions.
    pub(crate) async fn load(&self) -> Result<WebhookSet> {
        let webhooks = self.read().await;
        match &webhooks {
            Ok(webhooks) => {
                self.deps.outbox.subscriptions.update(webhooks);
                self.is_off.store(false, Ordering::Relaxed);
            }
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                self.deps.outbox.subscriptions.clear();
                if !self.is_off.swap(true, Ordering::Relaxed) {
                    tracing::error!(key = WEBHOOKS, %error, "webhooks are off: their record is damaged");
                }
            }
            Err(_) => {}
        }
        webhooks
    }

    async fn read(&self) -> Result<WebhookSet> {
        WebhookSet::read(self.deps.state.get(WEBHOOKS).await?.as_ref())
    }

    /// Replaces the webhooks by the result of `next`. From before the step until the new webhooks are read, the outbox
    /// writes events of every kind, so that none is missed whose step is built in between.
    pub(crate) async fn change(
        &self,
        operation: &'static str,
        alongside: &[Write],
        next: impl Fn(&WebhookSet) -> Result<Vec<WebhookV1>>,
    ) -> Result<()> {
        let _guard = self.changing.lock().await;
        retry_on_conflict(&*self.deps.state, operation, || async {
            let webhooks = self.load().await?;
            let mut step = vec![webhooks.replace(next(&webhooks)?)?];
            step.extend_from_slice(alongside);
            self.deps.outbox.subscriptions.invalidate(&webhooks);
            Ok::<_, Error>(self.deps.state.apply(step).await?)
        })
        .await?;
        // If this read fails, the deliverer's next round reads them.
        let _ = self.load().await;
        Ok(())
    }
}

impl fmt::Debug for WebhooksShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhooks").field("options", &self.deps.options).finish_non_exhaustive()
    }
}

impl fmt::Debug for Dependencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dependencies").field("options", &self.options).finish_non_exhaustive()
    }
}
