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
use lkr_state::{StateStore, StateStoreExt, Write};
use time::OffsetDateTime;
use tokio::sync::{Mutex, Notify};

use crate::{
    Deliverer, DeliveryOptions, DeliveryOutcome, Error, ErrorKind, EventOutbox, NewWebhook, Result, Webhook,
    records::{HOOKS, HookV1, Hooks, secret_place},
    skip_damaged::SkipDamagedScan,
};

/// How many webhooks there may be.
pub const MOST_HOOKS: usize = 20;

/// How often a change is tried anew that one of another process overtook.
const TRIES: usize = 32;

/// What webhooks stand on.
pub struct Parts {
    /// Where they are stored, with what happened.
    pub state: Arc<dyn StateStore>,
    /// Seals their secrets.
    pub sealing: SealingKey,
    /// Sends deliveries.
    pub outgoing: Outgoing,
    /// What the knowledge base on the same store tells.
    pub outbox: EventOutbox,
    /// How deliveries go.
    pub options: DeliveryOptions,
    /// Is told of what comes of each.
    pub observe: Arc<dyn Fn(DeliveryOutcome) + Send + Sync>,
}

/// The webhooks over a state store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Webhooks {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) parts: Parts,
    /// Changes of this process wait for each other.
    changing: Mutex<()>,
    /// There may be something to do for the deliverer.
    pub(crate) wake: Notify,
    /// Whether the webhooks cannot be read.
    is_off: AtomicBool,
}

impl Webhooks {
    /// The webhooks of a store. From here on their outbox knows what they want to hear. Where they cannot be read, they
    /// are off, and the log says so: nothing is told, and they can be neither listed nor changed.
    pub async fn open(mut parts: Parts) -> Result<Self> {
        parts.state = Arc::new(SkipDamagedScan::new(parts.state));
        let (changing, wake, is_off) = (Mutex::default(), Notify::new(), AtomicBool::new(false));
        let inner = Arc::new(Inner { parts, changing, wake, is_off });
        match inner.hooks().await {
            Err(error) if error.kind() != ErrorKind::Corrupt => Err(error),
            _ => Ok(Self { inner }),
        }
    }

    /// Starts to deliver, until what this answers is shut down or dropped.
    #[must_use]
    pub fn start(&self) -> Deliverer {
        Deliverer::start(Arc::clone(&self.inner))
    }

    /// All webhooks, the newest first.
    pub async fn list(&self) -> Result<Vec<Webhook>> {
        let mut hooks: Vec<_> = self.inner.hooks().await?.all.iter().map(HookV1::shown).collect();
        hooks.sort_unstable_by_key(|hook| std::cmp::Reverse(hook.id));
        Ok(hooks)
    }

    /// Makes a webhook, and does `alongside` in the same step. What begins to be written after this answers is told to
    /// it. What was being written meanwhile may or may not be: an end whose step was made before, when nobody wanted to
    /// hear of its kind, goes untold even where that step is done after this answers.
    ///
    /// # Errors
    /// `Invalid` where it cannot be one or may not be called, `TooMany` where there are as many as there may be.
    pub async fn create(&self, new: NewWebhook, alongside: Vec<Write>) -> Result<Webhook> {
        new.check()?;
        let Parts { outgoing, sealing, .. } = &self.inner.parts;
        outgoing
            .policy()
            .check(&new.url)
            .map_err(|error| Error::invalid(format!("url {}", error.reason())))?;
        let mut events: Vec<_> = new.events.iter().map(|kind| kind.name().to_owned()).collect();
        events.sort_unstable();
        events.dedup();
        let hook = HookV1 {
            id: new.id,
            secret: sealing.seal(&new.secret, &secret_place(new.id))?,
            url: new.url,
            events,
            created_at: OffsetDateTime::now_utc(),
            created_by: new.created_by,
        };
        let shown = hook.shown();
        let with = |hooks: &Hooks| {
            if hooks.all.len() >= MOST_HOOKS {
                let reason = format!("there are {MOST_HOOKS} already, and no more may be made");
                return Err(Error::new(ErrorKind::TooMany, "create webhook", reason));
            }
            Ok(hooks.all.iter().chain([&hook]).cloned().collect())
        };
        self.inner.replace("create webhook", &alongside, with).await?;
        Ok(shown)
    }

    /// Deletes a webhook with all that waits for it, and does `alongside` in the same step.
    ///
    /// # Errors
    /// `NotFound` where there is none of this id.
    pub async fn delete(&self, id: WebhookId, alongside: Vec<Write>) -> Result<()> {
        let without = |hooks: &Hooks| {
            if !hooks.has(id) {
                return Err(Error::new(ErrorKind::NotFound, "delete webhook", "no such webhook"));
            }
            Ok(hooks.all.iter().filter(|hook| hook.id != id).cloned().collect())
        };
        self.inner.replace("delete webhook", &alongside, without).await?;
        self.inner.wake.notify_one();
        Ok(())
    }
}

impl Inner {
    /// The webhooks as they are now. The outbox learns of them.
    pub(crate) async fn hooks(&self) -> Result<Hooks> {
        let read = self.read().await;
        match &read {
            Ok(hooks) => {
                self.parts.outbox.known.learn(hooks);
                self.is_off.store(false, Ordering::Relaxed);
            }
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                self.parts.outbox.known.mute();
                if !self.is_off.swap(true, Ordering::Relaxed) {
                    tracing::error!(key = HOOKS, %error, "webhooks are off, because they cannot be read");
                }
            }
            Err(_) => {}
        }
        read
    }

    async fn read(&self) -> Result<Hooks> {
        Hooks::read(self.parts.state.get(HOOKS).await?.as_ref())
    }

    /// Puts what `next` makes of the webhooks in their place. The outbox tells everything from before the step until
    /// the new ones are read, so that nothing is missed whose step is made in between.
    async fn replace(
        &self,
        operation: &'static str,
        alongside: &[Write],
        next: impl Fn(&Hooks) -> Result<Vec<HookV1>>,
    ) -> Result<()> {
        let _turn = self.changing.lock().await;
        for _ in 0..TRIES {
            let hooks = self.hooks().await?;
            let mut step = vec![hooks.put(next(&hooks)?)?];
            step.extend_from_slice(alongside);
            self.parts.outbox.known.forget(&hooks);
            match self.parts.state.apply(step).await {
                Ok(()) => {
                    // Where they cannot be read now, the deliverer reads them soon.
                    let _ = self.hooks().await;
                    return Ok(());
                }
                Err(error) if error.kind() == lkr_state::ErrorKind::Conflict => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::new(ErrorKind::Unavailable, operation, "webhooks keep being changed elsewhere"))
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhooks").field("options", &self.parts.options).finish_non_exhaustive()
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").field("options", &self.options).finish_non_exhaustive()
    }
}
