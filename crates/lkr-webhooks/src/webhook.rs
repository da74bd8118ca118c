use lkr_domain::{SpaceName, WebhookId, hex};
use lkr_sealing::Secret;
use time::OffsetDateTime;

use crate::{Error, EventKind, Result};

/// The longest address, in characters. Chosen, not measured.
const MAX_URL_CHARS: usize = 2048;

/// The longest secret, in characters. Chosen, not measured.
const MAX_SECRET_CHARS: usize = 256;

/// A subscription of an address to events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// Its id.
    pub id: WebhookId,
    /// The address that deliveries are sent to.
    pub url: String,
    /// The event kinds that it subscribes to, without duplicates.
    pub events: Vec<EventKind>,
    /// The only space whose events it gets; `None` for all events.
    pub space: Option<SpaceName>,
    /// When it was created.
    pub created_at: OffsetDateTime,
    /// The name of the account that created it.
    pub created_by: String,
}

/// A webhook to create.
#[derive(Debug, Clone)]
pub struct NewWebhook {
    /// Its id, which must be new.
    pub id: WebhookId,
    /// The address that deliveries are sent to.
    pub url: String,
    /// The key of the deliveries' signatures.
    pub secret: Secret,
    /// The event kinds that it subscribes to.
    pub events: Vec<EventKind>,
    /// The only space whose events it gets; `None` for all events, those that concern no single space included.
    pub space: Option<SpaceName>,
    /// The name of the account that creates it.
    pub created_by: String,
}

impl NewWebhook {
    /// Checks everything except whether the address may be called.
    pub(crate) fn check(&self) -> Result<()> {
        let (url, secret) = (self.url.chars().count(), self.secret.expose().chars().count());
        if url > MAX_URL_CHARS {
            return Err(Error::invalid(format!("url has {url} characters; allowed are {MAX_URL_CHARS}")));
        }
        let is_blank = self.secret.expose().trim().is_empty();
        if is_blank || secret > MAX_SECRET_CHARS || self.secret.expose().chars().any(char::is_control) {
            let reason = "secret must have 1 to 256 characters, not all blank, and no control characters";
            return Err(Error::invalid(reason));
        }
        if self.events.is_empty() {
            let names = EventKind::ALL.map(EventKind::name).join(", ");
            return Err(Error::invalid(format!("events is empty; allowed are {names}")));
        }
        Ok(())
    }
}

/// A new random secret of 256 bits.
#[must_use]
pub fn generate_secret() -> Secret {
    let bits: [u8; 32] = rand::random();
    Secret::new(format!("lkr_hook_{}", hex(&bits)))
}
