use lkr_auth::AuditEntry;
use serde::Serialize;
use utoipa::ToSchema;

use super::moment;

/// A change that somebody made.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditItem {
    #[schema(format = DateTime)]
    at: String,
    /// The account that did it.
    actor: String,
    /// What was done, such as account.create.
    action: &'static str,
    /// The username or id of what it was done to.
    target: String,
    /// The request that asked for it.
    request_id: String,
    /// What changed, never a secret.
    #[schema(value_type = Object)]
    detail: serde_json::Map<String, serde_json::Value>,
}

impl From<AuditEntry> for AuditItem {
    fn from(entry: AuditEntry) -> Self {
        Self {
            at: moment(entry.at),
            actor: entry.actor,
            action: entry.action.name(),
            target: entry.target,
            request_id: entry.request_id,
            detail: entry.detail,
        }
    }
}

/// A page of changes, the newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditList {
    pub(crate) items: Vec<AuditItem>,
    /// Where the next page begins; null after the last.
    #[schema(required)]
    pub(crate) next_offset: Option<String>,
}
