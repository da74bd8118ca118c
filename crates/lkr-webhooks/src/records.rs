//! The stored records and their keys. Each record carries its format version.

use lkr_domain::{EventId, SpaceName, WebhookId};
use lkr_state::{Expect, Record, Write};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use time::OffsetDateTime;

use crate::{Error, ErrorKind, EventKind, Result, Webhook};

/// The key of the record of all webhooks. They are few, and a step that depends on them expects the record unchanged.
pub(crate) const WEBHOOKS: &str = "webhook/hooks";

/// The key prefix of events whose deliveries were not created yet; the event id follows.
pub(crate) const EVENTS: &str = "webhook/event/";

/// The key prefix of deliveries; the webhook id follows.
pub(crate) const DELIVERIES: &str = "webhook/delivery/";

/// The key prefix of the logs of deliveries; the webhook id and the event id follow.
pub(crate) const LOG: &str = "webhook-log/";

pub(crate) fn event_key(id: EventId) -> String {
    format!("{EVENTS}{id}")
}

/// The key prefix of the deliveries of one webhook.
pub(crate) fn delivery_prefix(webhook: WebhookId) -> String {
    format!("{DELIVERIES}{webhook}/")
}

/// The key of a delivery. The keys of one webhook sort by due time.
pub(crate) fn delivery_key(webhook: WebhookId, due_ms: u64, event: EventId) -> String {
    format!("{}{due_ms:015}/{event}", delivery_prefix(webhook))
}

/// The webhook, the due time and the event in a delivery's key.
pub(crate) fn parse_delivery_key(key: &str) -> Option<(WebhookId, u64, EventId)> {
    let mut parts = key.strip_prefix(DELIVERIES)?.split('/');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// The place that the secret of a webhook is sealed for.
pub(crate) fn secret_place(webhook: WebhookId) -> String {
    format!("webhooks.{webhook}.secret")
}

/// Version 1 of the record of all webhooks.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct WebhooksV1 {
    #[serde(rename = "hooks")]
    pub(crate) webhooks: Vec<WebhookV1>,
}

/// Version 1 of a webhook.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct WebhookV1 {
    pub(crate) id: WebhookId,
    pub(crate) url: String,
    /// Sealed for the place [`secret_place`].
    pub(crate) secret: String,
    /// The names of event kinds. A name that this version of the program does not know is kept for a later version.
    pub(crate) events: Vec<String>,
    /// The only space whose events it gets; `None` for all events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) space: Option<SpaceName>,
    #[serde(with = "time::serde::rfc3339")]
    pub(crate) created_at: OffsetDateTime,
    pub(crate) created_by: String,
}

impl WebhookV1 {
    pub(crate) fn subscribes_to(&self, kind: &str) -> bool {
        self.events.iter().any(|event| event == kind)
    }

    pub(crate) fn gets(&self, event: &EventV1) -> bool {
        self.subscribes_to(&event.kind)
            && self.space.as_ref().is_none_or(|space| event.space.as_ref() == Some(space))
    }

    pub(crate) fn to_webhook(&self) -> Webhook {
        Webhook {
            id: self.id,
            url: self.url.clone(),
            events: EventKind::ALL.into_iter().filter(|kind| self.subscribes_to(kind.name())).collect(),
            space: self.space.clone(),
            created_at: self.created_at,
            created_by: self.created_by.clone(),
        }
    }
}

/// Version 1 of an event.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct EventV1 {
    pub(crate) kind: String,
    /// The time of the event, in milliseconds since 1970.
    pub(crate) at_ms: u64,
    /// `None` if it concerns all spaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) space: Option<SpaceName>,
    /// The body of its deliveries.
    pub(crate) body: String,
}

/// Version 1 of a delivery.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DeliveryV1 {
    /// The time of the event, in milliseconds since 1970.
    pub(crate) at_ms: u64,
    /// The number of failed attempts.
    pub(crate) attempts: u32,
    /// Whether a process owns the delivery until its due time.
    #[serde(rename = "taken")]
    pub(crate) is_leased: bool,
    pub(crate) body: String,
}

/// The webhooks at one version of their record.
#[derive(Debug, Default)]
pub(crate) struct WebhookSet {
    /// `None` if there is no record.
    version: Option<u64>,
    pub(crate) all: Vec<WebhookV1>,
}

impl WebhookSet {
    pub(crate) fn read(record: Option<&Record>) -> Result<Self> {
        let Some(record) = record else { return Ok(Self::default()) };
        let WebhooksV1 { webhooks } = decode(&record.value)?;
        Ok(Self { version: Some(record.version), all: webhooks })
    }

    /// Grows with each change; 0 if no webhook was ever created.
    pub(crate) fn version(&self) -> u64 {
        self.version.unwrap_or(0)
    }

    pub(crate) fn has(&self, id: WebhookId) -> bool {
        self.all.iter().any(|webhook| webhook.id == id)
    }

    /// Makes a step fail if the webhooks have changed.
    pub(crate) fn check(&self) -> Write {
        Write::check(WEBHOOKS, self.expect())
    }

    /// Replaces the webhooks, if they are unchanged.
    pub(crate) fn replace(&self, webhooks: Vec<WebhookV1>) -> Result<Write> {
        Ok(Write::put(WEBHOOKS, self.expect(), encode(WebhooksV1 { webhooks })?))
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
    let bytes = serde_json::to_vec(&Versioned::V1(record));
    bytes.map_err(|error| Error::new(ErrorKind::Internal, "write webhook record", error))
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    let Versioned::V1(record) = serde_json::from_slice(bytes).map_err(|_| Error::damaged())?;
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delivery_keys_sort_by_due_time() {
        let (webhook, event) = (WebhookId::new(), EventId::new());
        let keys = [9, 10, 999_999_999_999, 1_000_000_000_000].map(|due| delivery_key(webhook, due, event));
        assert!(keys.is_sorted());
    }

    #[test]
    fn parse_delivery_key_reads_valid_keys_and_refuses_others() {
        let (webhook, event) = (WebhookId::new(), EventId::new());
        let key = delivery_key(webhook, 999_999_999_999, event);
        assert_eq!(parse_delivery_key(&key), Some((webhook, 999_999_999_999, event)));
        for key in ["", "webhook/delivery/x/1/y", "webhook/delivery/", &delivery_prefix(webhook)] {
            assert_eq!(parse_delivery_key(key), None, "{key}");
        }
    }
}
