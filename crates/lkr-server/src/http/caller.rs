use lkr::Creator;
use lkr_auth::{Account, Actor, Credential, Role};

use super::request_id::RequestId;

/// The caller's account and credential.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) account: Account,
    pub(crate) credential: Credential,
    pub(crate) token: String,
    pub(crate) request_id: RequestId,
    /// Whether the credential is a session in a cookie.
    pub(crate) came_by_cookie: bool,
}

impl Caller {
    /// Whether the caller is an admin and uses no restricted API key.
    pub(crate) fn is_admin(&self) -> bool {
        self.account.role == Role::Admin && !self.credential.is_restricted()
    }

    /// The caller as the audit log records it.
    pub(crate) fn actor(&self) -> Actor<'_> {
        self.account.by(self.request_id.as_str())
    }

    /// The caller as the creator of a document or task.
    pub(crate) fn creator(&self) -> Creator {
        Creator { name: self.account.username.clone(), id: self.account.id.clone() }
    }

    /// The caller as the rights in spaces judge it. An account that must change its password first is served like anybody.
    pub(crate) fn in_spaces(&self) -> lkr_spaces::Caller {
        if self.account.must_change_password && !self.credential.is_restricted() {
            return lkr_spaces::Caller::Anonymous;
        }
        lkr_spaces::Caller::Account {
            id: self.account.id.clone(),
            is_admin: self.account.role == Role::Admin,
            key: self.credential.key_scope().cloned(),
        }
    }
}

/// An optional caller as the rights in spaces judge it.
pub(crate) fn in_spaces(caller: Option<&Caller>) -> lkr_spaces::Caller {
    caller.map_or(lkr_spaces::Caller::Anonymous, Caller::in_spaces)
}
