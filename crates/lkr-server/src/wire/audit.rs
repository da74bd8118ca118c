use lkr_auth::AuditEntry;
use serde::Serialize;
use utoipa::ToSchema;

use super::timestamp::timestamp;

/// An entry of the audit log.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditItem {
    /// When it was made.
    #[schema(format = DateTime)]
    at: String,
    /// The account that made the change.
    actor: String,
    /// The action, such as account.create.
    #[schema(pattern = "^[a-z]+(\\.[a-z_]+)+$")]
    action: &'static str,
    /// The username or id of the changed object.
    target: String,
    /// The request that made the change.
    request_id: String,
    /// What changed; never contains a secret.
    #[schema(value_type = Object)]
    detail: serde_json::Map<String, serde_json::Value>,
}

impl From<AuditEntry> for AuditItem {
    fn from(entry: AuditEntry) -> Self {
        Self {
            at: timestamp(entry.at),
            actor: entry.actor,
            action: entry.action.name(),
            target: entry.target,
            request_id: entry.request_id,
            detail: entry.detail,
        }
    }
}

/// A page of audit entries, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditList {
    /// The entries of the page.
    pub(crate) items: Vec<AuditItem>,
    /// The cursor of the next page; null on the last page.
    #[schema(required)]
    pub(crate) next_offset: Option<String>,
}
