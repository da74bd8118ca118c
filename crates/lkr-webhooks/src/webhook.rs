use lkr_domain::{WebhookId, hex};
use lkr_sealing::Secret;
use time::OffsetDateTime;

use crate::{Error, EventKind, Result};

const ADDRESS_CHARS: usize = 2048;
const SECRET_CHARS: usize = 256;

/// Who is told of what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// Its id.
    pub id: WebhookId,
    /// The address that deliveries are sent to.
    pub url: String,
    /// What is told, each kind once.
    pub events: Vec<EventKind>,
    /// When it was made.
    pub created_at: OffsetDateTime,
    /// The name of the account that made it.
    pub created_by: String,
}

/// A webhook to be made.
#[derive(Debug, Clone)]
pub struct NewWebhook {
    /// Its id: a new one.
    pub id: WebhookId,
    /// The address that deliveries are sent to.
    pub url: String,
    /// What deliveries are signed with.
    pub secret: Secret,
    /// What is told.
    pub events: Vec<EventKind>,
    /// The name of the account that makes it.
    pub created_by: String,
}

impl NewWebhook {
    /// Refuses what cannot be one, whoever may be called.
    pub(crate) fn check(&self) -> Result<()> {
        let (address, secret) = (self.url.chars().count(), self.secret.expose().chars().count());
        if address > ADDRESS_CHARS {
            return Err(Error::invalid(format!("url has {address} characters; allowed are {ADDRESS_CHARS}")));
        }
        let is_blank = self.secret.expose().trim().is_empty();
        if is_blank || secret > SECRET_CHARS || self.secret.expose().chars().any(char::is_control) {
            let reason = "secret is not 1 to 256 characters that are neither blank nor control characters";
            return Err(Error::invalid(reason));
        }
        if self.events.is_empty() {
            let names = EventKind::ALL.map(EventKind::name).join(", ");
            return Err(Error::invalid(format!("events is empty; there are {names}")));
        }
        Ok(())
    }
}

/// A secret that nobody can guess: 256 random bits.
#[must_use]
pub fn generate_secret() -> Secret {
    let bits: [u8; 32] = rand::random();
    Secret::new(format!("lkr_hook_{}", hex(&bits)))
}
