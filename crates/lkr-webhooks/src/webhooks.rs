use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use lkr_domain::WebhookId;
use lkr_outgoing::Outgoing;
use lkr_sealing::SealingKey;
use lkr_state::{StateStore, StateStoreExt, Write, retry_on_conflict};
use time::OffsetDateTime;
use tokio::sync::{Mutex, Notify};

use crate::{
    Deliverer, DeliveryOptions, DeliveryOutcome, Error, ErrorKind, EventOutbox, NewWebhook, Result, Webhook,
    records::{WEBHOOKS, WebhookSet, WebhookV1, secret_place},
    skip_damaged_scan::SkipDamagedScan,
};

/// The largest number of webhooks. See docs/studies.md#webhook-limits.
pub const MAX_WEBHOOKS: usize = 20;

/// What [`Webhooks`] needs from the program.
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

/// The webhooks in a state store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Webhooks {
    pub(crate) shared: Arc<WebhooksShared>,
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

impl Webhooks {
    /// Opens the webhooks of a store and tells the outbox which event kinds they subscribe to. If their record is
    /// damaged, webhooks are off, and the log says so: no events are written, and webhooks can be neither listed nor
    /// changed.
    pub async fn open(mut deps: Dependencies) -> Result<Self> {
        deps.state = Arc::new(SkipDamagedScan::new(deps.state));
        let (changing, wake, is_off) = (Mutex::default(), Notify::new(), AtomicBool::new(false));
        let shared = Arc::new(WebhooksShared { deps, changing, wake, is_off });
        match shared.load().await {
            Err(error) if error.kind() != ErrorKind::Corrupt => Err(error),
            _ => Ok(Self { shared }),
        }
    }

    /// Starts to send deliveries, until the returned [`Deliverer`] is shut down or dropped.
    #[must_use]
    pub fn start(&self) -> Deliverer {
        Deliverer::start(Arc::clone(&self.shared))
    }

    /// All webhooks, newest first.
    pub async fn list(&self) -> Result<Vec<Webhook>> {
        let mut webhooks: Vec<_> = self.shared.load().await?.all.iter().map(WebhookV1::to_webhook).collect();
        webhooks.sort_unstable_by_key(|webhook| std::cmp::Reverse(webhook.id));
        Ok(webhooks)
    }

    /// Creates a webhook and applies `alongside` in the same step. The webhook gets every event whose step is built
    /// after this call returns. It may miss an event whose step was built earlier, while no webhook subscribed to the
    /// event's kind, even if that step is applied after this call returns.
    ///
    /// # Errors
    /// `Invalid` if a value is not allowed or the address must not be called, `TooMany` if there are
    /// [`MAX_WEBHOOKS`] already.
    pub async fn create(&self, new: NewWebhook, alongside: Vec<Write>) -> Result<Webhook> {
        new.check()?;
        let Dependencies { outgoing, sealing, .. } = &self.shared.deps;
        outgoing
            .policy()
            .check(&new.url)
            .map_err(|error| Error::invalid(format!("url {}", error.reason())))?;
        let mut events: Vec<_> = new.events.iter().map(|kind| kind.name().to_owned()).collect();
        events.sort_unstable();
        events.dedup();
        let webhook = WebhookV1 {
            id: new.id,
            secret: sealing.seal(&new.secret, &secret_place(new.id))?,
            url: new.url,
            events,
            created_at: OffsetDateTime::now_utc(),
            created_by: new.created_by,
        };
        let created = webhook.to_webhook();
        let add = |webhooks: &WebhookSet| {
            if webhooks.all.len() >= MAX_WEBHOOKS {
                let reason = format!("there are {MAX_WEBHOOKS} webhooks already, which is the limit");
                return Err(Error::new(ErrorKind::TooMany, "create webhook", reason));
            }
            Ok(webhooks.all.iter().chain([&webhook]).cloned().collect())
        };
        self.shared.change("create webhook", &alongside, add).await?;
        Ok(created)
    }

    /// Deletes a webhook with its backlog, and applies `alongside` in the same step.
    ///
    /// # Errors
    /// `NotFound` if no webhook has this id.
    pub async fn delete(&self, id: WebhookId, alongside: Vec<Write>) -> Result<()> {
        let remove = |webhooks: &WebhookSet| {
            if !webhooks.has(id) {
                return Err(Error::new(ErrorKind::NotFound, "delete webhook", "no such webhook"));
            }
            Ok(webhooks.all.iter().filter(|webhook| webhook.id != id).cloned().collect())
        };
        self.shared.change("delete webhook", &alongside, remove).await?;
        self.shared.wake.notify_one();
        Ok(())
    }
}

impl WebhooksShared {
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
    async fn change(
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
