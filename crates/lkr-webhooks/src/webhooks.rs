use std::sync::Arc;

use lkr_domain::WebhookId;
use lkr_state::Write;

use crate::{
    Deliverer, Error, ErrorKind, LoggedDelivery, NewWebhook, Result, Webhook, delivery_log,
    records::{WebhookSet, WebhookV1, secret_place},
    shared::{Dependencies, WebhooksShared},
};

/// The largest number of webhooks. Chosen, not measured: all webhooks are one record, which every delivery step expects.
pub const MAX_WEBHOOKS: usize = 20;

/// The webhooks in a state store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Webhooks {
    pub(crate) shared: Arc<WebhooksShared>,
}

impl Webhooks {
    /// Opens the webhooks of a store and tells the outbox which event kinds they subscribe to. If their record is
    /// damaged, webhooks are off, and the log says so: no events are written, and webhooks can be neither listed nor
    /// changed.
    pub async fn open(deps: Dependencies) -> Result<Self> {
        let shared = Arc::new(WebhooksShared::new(deps));
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

    /// The last [`MAX_LOGGED`](crate::MAX_LOGGED) deliveries of a webhook, by the time of their events, the newest first.
    ///
    /// # Errors
    /// `NotFound` if no webhook has this id.
    pub async fn deliveries(&self, id: WebhookId) -> Result<Vec<LoggedDelivery>> {
        if !self.shared.load().await?.has(id) {
            return Err(Error::new(ErrorKind::NotFound, "list deliveries", "no such webhook"));
        }
        delivery_log::read(&*self.shared.deps.state, id).await
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
            space: new.space,
            created_at: self.shared.deps.state.now(),
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
