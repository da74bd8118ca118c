use lkr::{DocId, SpaceName, TaskId};
use lkr_webhooks::{EventKind, LoggedDelivery, Webhook};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    formats::{Id, SpaceText},
    timestamp::timestamp,
};
use crate::http::SecretInput;

/// A new webhook.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WebhookInput {
    /// The URL to post events to: http or https, a host that outgoing requests may reach, no user; at most 2048
    /// characters. Redirects are not followed.
    #[schema(min_length = 1, max_length = 2048, pattern = "^https?://[^\\s@]+$")]
    pub(crate) url: String,
    /// The secret that signs deliveries, 1 to 256 characters. By default a random one is generated.
    #[schema(value_type = Option<String>, format = Password, min_length = 1, max_length = 256, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]*[^\\s\\x00-\\x1f\\x7f-\\x9f][^\\x00-\\x1f\\x7f-\\x9f]*$")]
    pub(crate) secret: Option<SecretInput>,
    /// The events to deliver, at least one.
    #[schema(min_items = 1)]
    pub(crate) events: Vec<EventInput>,
    /// The only space whose events to deliver; by default, those of all spaces and of tasks on all documents.
    #[schema(value_type = Option<SpaceText>)]
    pub(crate) space: Option<String>,
}

/// A kind of event.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
pub(crate) enum EventInput {
    /// A task succeeded.
    #[serde(rename = "task.done")]
    TaskDone,
    /// A task failed or was cancelled.
    #[serde(rename = "task.failed")]
    TaskFailed,
    /// A document was deleted.
    #[serde(rename = "document.deleted")]
    DocumentDeleted,
}

impl From<EventInput> for EventKind {
    fn from(event: EventInput) -> Self {
        match event {
            EventInput::TaskDone => Self::TaskDone,
            EventInput::TaskFailed => Self::TaskFailed,
            EventInput::DocumentDeleted => Self::DocumentDeleted,
        }
    }
}

/// A webhook without its secret.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WebhookItem {
    /// Its id.
    #[schema(value_type = Id)]
    id: String,
    /// Where events are posted.
    url: String,
    /// The events to deliver.
    #[schema(value_type = Vec<EventInput>)]
    events: Vec<&'static str>,
    /// The only space whose events are delivered; null for all.
    #[schema(required, value_type = Option<SpaceText>)]
    space: Option<SpaceName>,
    /// When it was created.
    #[schema(format = DateTime)]
    created_at: String,
    /// Who created it.
    created_by: String,
}

impl From<Webhook> for WebhookItem {
    fn from(webhook: Webhook) -> Self {
        Self {
            id: webhook.id.to_string(),
            url: webhook.url,
            events: webhook.events.into_iter().map(EventKind::name).collect(),
            space: webhook.space,
            created_at: timestamp(webhook.created_at),
            created_by: webhook.created_by,
        }
    }
}

/// A created webhook.
#[derive(Serialize, ToSchema)]
pub(crate) struct ShownWebhook {
    #[serde(flatten)]
    pub(crate) item: WebhookItem,
    /// The generated secret, shown only once; null if the client sent one.
    #[schema(required)]
    pub(crate) secret: Option<String>,
}

/// A page of webhooks, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WebhookList {
    /// The webhooks of the page.
    pub(crate) items: Vec<WebhookItem>,
    /// The cursor of the next page; null on the last page.
    #[schema(required)]
    pub(crate) next_offset: Option<String>,
}

/// The result of deleting a webhook.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeletedWebhook {
    /// The id of the webhook.
    #[schema(value_type = Id)]
    pub(crate) id: String,
    /// true
    pub(crate) deleted: bool,
}

/// A delivery of a webhook. The secret and the receiver's response are not shown.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeliveryItem {
    /// The id that each attempt sends as `X-Lkr-Delivery`.
    #[schema(value_type = Id)]
    delivery_id: String,
    /// The event.
    #[schema(value_type = EventInput)]
    event: String,
    /// The task that the event is about; null for the deletion of a document.
    #[schema(required, value_type = Option<Id>)]
    task_id: Option<TaskId>,
    /// The document that the event is about; null for a task over all documents.
    #[schema(required, value_type = Option<Id>)]
    doc_id: Option<DocId>,
    /// When the event happened.
    #[schema(format = DateTime)]
    at: String,
    /// `waiting` for its first or next attempt; `delivered`; `expired` after a day of attempts; `dropped` because too many
    /// deliveries waited
    #[schema(pattern = "^(waiting|delivered|expired|dropped)$")]
    state: &'static str,
    /// The number of attempts that have ended.
    attempts: u32,
    /// The HTTP status of the last attempt; null if there was no response.
    #[schema(required)]
    status: Option<u16>,
    /// Why the last attempt failed; null if it did not.
    #[schema(required)]
    error: Option<String>,
    /// When the last attempt ended; null before the first.
    #[schema(required, format = DateTime)]
    attempted_at: Option<String>,
    /// When the next attempt is due; null if there will be none.
    #[schema(required, format = DateTime)]
    next_attempt_at: Option<String>,
}

impl From<LoggedDelivery> for DeliveryItem {
    fn from(delivery: LoggedDelivery) -> Self {
        Self {
            delivery_id: delivery.id.to_string(),
            event: delivery.event,
            task_id: delivery.task_id,
            doc_id: delivery.doc_id,
            at: timestamp(delivery.at),
            state: delivery.state.name(),
            attempts: delivery.attempts,
            status: delivery.status,
            error: delivery.error,
            attempted_at: delivery.attempted_at.map(timestamp),
            next_attempt_at: delivery.next_attempt_at.map(timestamp),
        }
    }
}

/// A page of the last 100 deliveries of a webhook, the newest event first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeliveryList {
    /// The deliveries of the page.
    pub(crate) items: Vec<DeliveryItem>,
    /// The cursor of the next page; null on the last page.
    #[schema(required)]
    pub(crate) next_offset: Option<String>,
}
