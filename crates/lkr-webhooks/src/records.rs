//! What is stored, and under which keys. Records carry their version.

use lkr_domain::{EventId, WebhookId};
use lkr_state::{Expect, Record, Write};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use time::OffsetDateTime;

use crate::{Error, ErrorKind, EventKind, Result, Webhook};

/// All webhooks: there are few, and a step that depends on them expects them as they were read.
pub(crate) const HOOKS: &str = "webhook/hooks";

/// Before the id of an event that nobody has put down for the webhooks yet.
pub(crate) const EVENTS: &str = "webhook/event/";

/// Before the id of the webhook that a delivery is for.
pub(crate) const DELIVERIES: &str = "webhook/delivery/";

pub(crate) fn event_key(id: EventId) -> String {
    format!("{EVENTS}{id}")
}

/// Before the deliveries of a webhook.
pub(crate) fn deliveries_of(hook: WebhookId) -> String {
    format!("{DELIVERIES}{hook}/")
}

/// The key of a delivery: those of a webhook stand in the order in which they are due.
pub(crate) fn delivery_key(hook: WebhookId, due_ms: u64, event: EventId) -> String {
    format!("{}{due_ms:015}/{event}", deliveries_of(hook))
}

/// The webhook, the moment and the event of a delivery's key.
pub(crate) fn parse_delivery(key: &str) -> Option<(WebhookId, u64, EventId)> {
    let mut parts = key.strip_prefix(DELIVERIES)?.split('/');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// The place that the secret of a webhook is sealed for.
pub(crate) fn secret_place(hook: WebhookId) -> String {
    format!("webhooks.{hook}.secret")
}

/// Version 1 of all webhooks.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct HooksV1 {
    pub(crate) hooks: Vec<HookV1>,
}

/// Version 1 of a webhook.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HookV1 {
    pub(crate) id: WebhookId,
    pub(crate) url: String,
    /// Sealed for the place [`secret_place`].
    pub(crate) secret: String,
    /// The names of kinds. One that this program does not know is told by another.
    pub(crate) events: Vec<String>,
    #[serde(with = "time::serde::rfc3339")]
    pub(crate) created_at: OffsetDateTime,
    pub(crate) created_by: String,
}

impl HookV1 {
    pub(crate) fn hears(&self, kind: &str) -> bool {
        self.events.iter().any(|event| event == kind)
    }

    pub(crate) fn shown(&self) -> Webhook {
        Webhook {
            id: self.id,
            url: self.url.clone(),
            events: EventKind::ALL.into_iter().filter(|kind| self.hears(kind.name())).collect(),
            created_at: self.created_at,
            created_by: self.created_by.clone(),
        }
    }
}

/// Version 1 of something that happened.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct EventV1 {
    pub(crate) kind: String,
    /// When it happened, in milliseconds since 1970.
    pub(crate) at_ms: u64,
    /// What is delivered.
    pub(crate) body: String,
}

/// Version 1 of a delivery.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DeliveryV1 {
    /// When what it tells happened, in milliseconds since 1970.
    pub(crate) at_ms: u64,
    /// How many tries failed.
    pub(crate) attempts: u32,
    /// Whether somebody is at it, until it is due.
    pub(crate) taken: bool,
    pub(crate) body: String,
}

/// The webhooks as they were read.
#[derive(Debug, Default)]
pub(crate) struct Hooks {
    /// `None` where there is no record.
    version: Option<u64>,
    pub(crate) all: Vec<HookV1>,
}

impl Hooks {
    pub(crate) fn read(record: Option<&Record>) -> Result<Self> {
        let Some(record) = record else { return Ok(Self::default()) };
        let HooksV1 { hooks } = decode(&record.value)?;
        Ok(Self { version: Some(record.version), all: hooks })
    }

    /// Grows with each change; 0 where there never was one.
    pub(crate) fn version(&self) -> u64 {
        self.version.unwrap_or(0)
    }

    pub(crate) fn has(&self, id: WebhookId) -> bool {
        self.all.iter().any(|hook| hook.id == id)
    }

    /// Only where they are still these.
    pub(crate) fn check(&self) -> Write {
        Write::check(HOOKS, self.expect())
    }

    /// Puts others in their place.
    pub(crate) fn put(&self, hooks: Vec<HookV1>) -> Result<Write> {
        Ok(Write::put(HOOKS, self.expect(), encode(HooksV1 { hooks })?))
    }

    fn expect(&self) -> Expect {
        self.version.map_or(Expect::Absent, Expect::Version)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "v")]
enum Versioned<T> {
    #[serde(rename = "1")]
    V1(T),
}

pub(crate) fn encode<T: Serialize>(record: T) -> Result<Vec<u8>> {
    let written = serde_json::to_vec(&Versioned::V1(record));
    written.map_err(|error| Error::new(ErrorKind::Internal, "write webhook record", error))
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    let Versioned::V1(record) = serde_json::from_slice(bytes).map_err(|_| Error::damaged())?;
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deliveries_stand_in_the_order_in_which_they_are_due() {
        let (hook, event) = (WebhookId::new(), EventId::new());
        let keys = [9, 10, 999_999_999_999, 1_000_000_000_000].map(|due| delivery_key(hook, due, event));
        assert!(keys.is_sorted());
        assert_eq!(parse_delivery(&keys[2]), Some((hook, 999_999_999_999, event)));
        for key in ["", "webhook/delivery/x/1/y", "webhook/delivery/", &deliveries_of(hook)] {
            assert_eq!(parse_delivery(key), None, "{key}");
        }
    }
}
