use std::{fmt, sync::Arc, time::Duration};

use lkr_domain::DocId;
use lkr_state::{Expect, Record, ScanOrder, StateStore, Write};
use serde_json::{Map, Value};
use time::OffsetDateTime;

use crate::{
    Actor, AuditId, Page, Result,
    audit_record::{AUDIT, AuditV1, audit_id, audit_key, read_entry, write_entry},
    page::RecordListing,
    records::damaged,
};

/// How long an entry is kept: a year, and some days to look back over a complete one.
const RETENTION: Duration = Duration::from_secs(400 * 24 * 60 * 60);

macro_rules! actions {
    ($($(#[$doc:meta])* $action:ident = $name:literal,)*) => {
        /// The kind of a change.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum AuditAction {
            $($(#[$doc])* $action,)*
        }

        impl AuditAction {
            /// All actions.
            pub const ALL: &'static [Self] = &[$(Self::$action),*];

            /// The name in responses.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$action => $name,)*
                }
            }
        }
    };
}

actions! {
    /// An account was created.
    AccountCreate = "account.create",
    /// The role of an account was changed, or it was disabled or enabled.
    AccountChange = "account.change",
    /// The password of an account was changed.
    AccountPassword = "account.password",
    /// An account was deleted.
    AccountDelete = "account.delete",
    /// An API key was created.
    KeyCreate = "key.create",
    /// An API key was deleted.
    KeyDelete = "key.delete",
    /// A setting was changed.
    SettingsChange = "settings.change",
    /// The settings were reset to their defaults.
    SettingsReset = "settings.reset",
    /// A document was deleted.
    DocumentDelete = "document.delete",
    /// A document was replaced.
    DocumentReplace = "document.replace",
    /// The metadata of a document was changed.
    DocumentChange = "document.change",
    /// A space was created.
    SpaceCreate = "space.create",
    /// The title, description or policies of a space were changed.
    SpaceChange = "space.change",
    /// A space was deleted.
    SpaceDelete = "space.delete",
    /// A member was added to or removed from a space, or its role was changed.
    SpaceMember = "space.member",
    /// A group was created.
    GroupCreate = "group.create",
    /// A group was deleted.
    GroupDelete = "group.delete",
    /// An account was added to or removed from a group.
    GroupMember = "group.member",
    /// A backup was created.
    BackupCreate = "backup.create",
    /// A webhook was created.
    WebhookCreate = "webhook.create",
    /// A webhook was deleted.
    WebhookDelete = "webhook.delete",
}

impl AuditAction {
    /// The action with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|action| action.name() == name)
    }
}

impl fmt::Display for AuditAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A recorded change.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditEntry {
    /// Its id.
    pub id: AuditId,
    /// When the change was made.
    pub at: OffsetDateTime,
    /// Who made the change.
    pub actor: String,
    /// The kind of the change.
    pub action: AuditAction,
    /// What was changed: a username or an id.
    pub target: String,
    /// The id of the request.
    pub request_id: String,
    /// Further details.
    pub detail: Map<String, Value>,
}

/// Selects entries; a field that is `None` selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Entries of this actor, compared case-insensitively.
    pub actor: Option<String>,
    /// Entries of this action.
    pub action: Option<AuditAction>,
}

/// The record of changes: who, what, when. Cheap to clone.
#[derive(Debug, Clone)]
pub struct AuditLog {
    state: Arc<dyn StateStore>,
}

impl AuditLog {
    /// The log in `state`.
    #[must_use]
    pub fn new(state: Arc<dyn StateStore>) -> Self {
        Self { state }
    }

    /// The write that records a change. It must be part of the step that makes the change, so that both are applied or
    /// neither. `detail` must not contain secrets.
    pub fn entry(
        by: Actor<'_>,
        action: AuditAction,
        target: &str,
        detail: Map<String, Value>,
    ) -> Result<Write> {
        let entry = AuditV1 {
            at: OffsetDateTime::now_utc(),
            actor: by.actor.to_owned(),
            action: action.name().to_owned(),
            target: target.to_owned(),
            request_id: by.request_id.to_owned(),
            detail,
        };
        let id = AuditId::new();
        Ok(Write::put_for(audit_key(id), Expect::Absent, write_entry(id, entry)?, RETENTION))
    }

    /// Up to `limit` entries that match `filter`, newest first, after the entry `after`.
    pub async fn list(
        &self,
        filter: &AuditFilter,
        after: Option<AuditId>,
        limit: usize,
    ) -> Result<Page<AuditEntry, AuditId>> {
        let (prefix, order) = (AUDIT, ScanOrder::Descending);
        let listing = RecordListing { state: &*self.state, prefix, order, after: after.map(audit_key) };
        let pick =
            |key: &str, record: &Record| Ok(Some(read(key, record)?).filter(|entry| filter.matches(entry)));
        listing.page(limit, pick, |entry| entry.id).await
    }
}

impl AuditFilter {
    fn matches(&self, entry: &AuditEntry) -> bool {
        self.actor.as_ref().is_none_or(|actor| actor.eq_ignore_ascii_case(&entry.actor))
            && self.action.is_none_or(|action| action == entry.action)
    }
}

fn read(key: &str, record: &Record) -> Result<AuditEntry> {
    let id = audit_id(key)?;
    let AuditV1 { at, actor, action, target, request_id, detail } = read_entry(key, &record.value)?;
    let action = AuditAction::from_name(&action).ok_or_else(damaged)?;
    Ok(AuditEntry { id, at, actor, action, target, request_id, detail })
}

/// The document that an entry says was deleted, by the entry's key and value; `None` for every other record.
#[must_use]
pub fn deleted_document(key: &str, value: &[u8]) -> Option<DocId> {
    if !key.starts_with(AUDIT) {
        return None;
    }
    let entry = read_entry(key, value).ok()?;
    entry.target.parse().ok().filter(|_| entry.action == AuditAction::DocumentDelete.name())
}

/// The details of an entry.
pub(crate) fn detail<const N: usize>(pairs: [(&str, Value); N]) -> Map<String, Value> {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_of_a_deletion_names_the_document() {
        let (doc_id, by) = (DocId::new(), Actor { actor: "eva", account_id: None, request_id: "1" });
        for &action in AuditAction::ALL {
            let write = AuditLog::entry(by, action, &doc_id.to_string(), Map::new()).unwrap();
            let lkr_state::Op::Put { value, .. } = write.op else { panic!("an entry is stored") };
            let expected = (action == AuditAction::DocumentDelete).then_some(doc_id);
            assert_eq!(deleted_document(&write.key, &value), expected, "{action}");
            assert_eq!(deleted_document("auth/account/eva", &value), None);
        }
    }

    #[test]
    fn action_from_name_is_the_inverse_of_name() {
        for &action in AuditAction::ALL {
            assert_eq!(AuditAction::from_name(action.name()), Some(action));
        }
        assert_eq!(AuditAction::ALL.len(), 21);
        assert_eq!(AuditAction::from_name("account"), None);
    }
}
