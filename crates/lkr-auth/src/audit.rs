use std::{fmt, sync::Arc, time::Duration};

use lkr_state::{Expect, Record, ScanOrder, StateStore, Write};
use serde_json::{Map, Value};
use time::OffsetDateTime;

use crate::{
    AuditId, Error, Page, Result,
    page::Listing,
    records::{AUDIT, AccountV1, AuditV1, audit_key, damaged, decode, encode},
};

/// How long an entry is kept: a year, and some days for whoever looks back over one.
const KEPT: Duration = Duration::from_secs(400 * 24 * 60 * 60);

/// Who asked for a change, in which request.
#[derive(Debug, Clone, Copy)]
pub struct Actor<'a> {
    /// The name of an account, or any other word for who is none.
    pub actor: &'a str,
    /// The id of the account, where it is one: should another account of that name have come in its place, it has no
    /// say.
    pub account_id: Option<&'a str>,
    /// The request.
    pub request_id: &'a str,
}

impl<'a> Actor<'a> {
    /// The program itself, or whoever is at its controls.
    #[must_use]
    pub const fn program(word: &'a str) -> Self {
        Self { actor: word, account_id: None, request_id: "" }
    }

    /// Refuses where it is an account of this one's name, and not this one.
    pub(crate) fn check_same(self, account: &AccountV1) -> Result<()> {
        let another = self.account_id.is_some_and(|id| id != account.id);
        if another && self.actor.eq_ignore_ascii_case(&account.username) {
            return Err(Error::unauthenticated("the account is not there any more"));
        }
        Ok(())
    }
}

macro_rules! actions {
    ($($(#[$doc:meta])* $action:ident = $name:literal,)*) => {
        /// What was done.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum AuditAction {
            $($(#[$doc])* $action,)*
        }

        impl AuditAction {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$action),*];

            /// The name in answers.
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
    /// An account was made.
    AccountCreate = "account.create",
    /// The role of an account was changed, or it was disabled or enabled.
    AccountChange = "account.change",
    /// The password of an account was changed.
    AccountPassword = "account.password",
    /// An account was deleted.
    AccountDelete = "account.delete",
    /// An API key was made.
    KeyCreate = "key.create",
    /// An API key was ended.
    KeyDelete = "key.delete",
    /// A setting was changed.
    SettingsChange = "settings.change",
    /// A setting was put back to its default.
    SettingsReset = "settings.reset",
    /// A document was deleted.
    DocumentDelete = "document.delete",
    /// A document was replaced by another.
    DocumentReplace = "document.replace",
    /// What is known of a document was changed.
    DocumentChange = "document.change",
    /// A backup of everything was made.
    BackupCreate = "backup.create",
    /// A webhook was made.
    WebhookCreate = "webhook.create",
    /// A webhook was deleted.
    WebhookDelete = "webhook.delete",
}

impl AuditAction {
    /// The action of this name.
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

/// A change that was made.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditEntry {
    /// Its id.
    pub id: AuditId,
    /// When it was.
    pub at: OffsetDateTime,
    /// Who asked for it.
    pub actor: String,
    /// What was done.
    pub action: AuditAction,
    /// To what: a username or an id.
    pub target: String,
    /// In which request.
    pub request_id: String,
    /// What else there is to know of it.
    pub detail: Map<String, Value>,
}

/// Which entries to list; `None` stands for all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Those of this actor; compared without case.
    pub actor: Option<String>,
    /// Those of this action.
    pub action: Option<AuditAction>,
}

/// The changes that were made: who, what, when. Cheap to clone.
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

    /// The write that notes a change. It belongs into the very step that makes the change, so that neither is
    /// without the other. `detail` must hold no secret.
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
        Ok(Write::put_for(audit_key(AuditId::new()), Expect::Absent, encode(entry)?, KEPT))
    }

    /// Up to `limit` entries that pass `filter`, the newest first, beyond `after`.
    pub async fn list(
        &self,
        filter: &AuditFilter,
        after: Option<AuditId>,
        limit: usize,
    ) -> Result<Page<AuditEntry, AuditId>> {
        let (prefix, order) = (AUDIT, ScanOrder::Descending);
        let listing = Listing { state: &*self.state, prefix, order, after: after.map(audit_key) };
        let pick =
            |key: &str, record: &Record| Ok(Some(read(key, record)?).filter(|entry| filter.admits(entry)));
        listing.page(limit, pick, |entry| entry.id).await
    }
}

impl AuditFilter {
    fn admits(&self, entry: &AuditEntry) -> bool {
        self.actor.as_ref().is_none_or(|actor| actor.eq_ignore_ascii_case(&entry.actor))
            && self.action.is_none_or(|action| action == entry.action)
    }
}

fn read(key: &str, record: &Record) -> Result<AuditEntry> {
    let id = key.strip_prefix(AUDIT).and_then(|id| id.parse().ok()).ok_or_else(damaged)?;
    let AuditV1 { at, actor, action, target, request_id, detail } = decode(&record.value)?;
    let action = AuditAction::from_name(&action).ok_or_else(damaged)?;
    Ok(AuditEntry { id, at, actor, action, target, request_id, detail })
}

/// The detail of an entry.
pub(crate) fn detail<const N: usize>(pairs: [(&str, Value); N]) -> Map<String, Value> {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_have_names() {
        for &action in AuditAction::ALL {
            assert_eq!(AuditAction::from_name(action.name()), Some(action));
        }
        assert_eq!(AuditAction::ALL.len(), 14);
        assert_eq!(AuditAction::from_name("account"), None);
    }
}
