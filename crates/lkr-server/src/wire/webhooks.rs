use lkr_webhooks::{EventKind, Webhook};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::moment;
use crate::http::Secret;

/// A webhook to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WebhookInput {
    /// http or https, a host that may be called, no user; at most 2048 characters. Redirects are not followed.
    #[schema(min_length = 1, max_length = 2048)]
    pub(crate) url: String,
    /// What deliveries are signed with, 1 to 256 characters; a random one when it is not said.
    #[schema(value_type = Option<String>, format = Password, min_length = 1, max_length = 256)]
    pub(crate) secret: Option<Secret>,
    /// What is told, at least one.
    #[schema(min_items = 1)]
    pub(crate) events: Vec<EventInput>,
}

/// A kind of what is told.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
pub(crate) enum EventInput {
    #[serde(rename = "task.done")]
    TaskDone,
    /// Cancelled ones are among them.
    #[serde(rename = "task.failed")]
    TaskFailed,
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

/// A webhook, without its secret.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WebhookItem {
    id: String,
    url: String,
    /// What is told.
    events: Vec<&'static str>,
    #[schema(format = DateTime)]
    created_at: String,
    created_by: String,
}

impl From<Webhook> for WebhookItem {
    fn from(hook: Webhook) -> Self {
        Self {
            id: hook.id.to_string(),
            url: hook.url,
            events: hook.events.into_iter().map(EventKind::name).collect(),
            created_at: moment(hook.created_at),
            created_by: hook.created_by,
        }
    }
}

/// A webhook that was made.
#[derive(Serialize, ToSchema)]
pub(crate) struct ShownWebhook {
    #[serde(flatten)]
    pub(crate) item: WebhookItem,
    /// The secret that was made for it, shown this once; null where one was sent.
    #[schema(required)]
    pub(crate) secret: Option<String>,
}

/// A page of webhooks, the newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WebhookList {
    pub(crate) items: Vec<WebhookItem>,
    /// Where the next page begins; null after the last.
    #[schema(required)]
    pub(crate) next_offset: Option<String>,
}

/// That a webhook is no more.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeletedWebhook {
    pub(crate) id: String,
    /// true
    pub(crate) deleted: bool,
}
