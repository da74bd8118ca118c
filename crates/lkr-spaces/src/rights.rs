//! Who may do what in which space. Pure functions of a [`Directory`] and a [`Caller`].

use lkr_domain::{Scope, SpaceName};

use crate::{Caller, Directory, ReadPolicy, Space, SpaceRole, WriteAccess, WritePolicy, caller::key_role};

impl Directory {
    /// The caller's role in a space, also while the space is being deleted. `None` if the caller has no role: it may
    /// read the space nevertheless if everyone may.
    ///
    /// Admins are managers. Where every account may write, each is at least a writer. A restricted API key is no manager.
    #[must_use]
    pub fn role(&self, caller: &Caller, name: &SpaceName) -> Option<SpaceRole> {
        let space = self.space(name)?;
        match caller {
            Caller::Everything => Some(SpaceRole::Manager),
            Caller::Anonymous => None,
            Caller::Account { id, is_admin, key } => {
                let role = if *is_admin { Some(SpaceRole::Manager) } else { self.account_role(space, id) };
                key.as_ref().map_or(role, |key| key_role(key, name, role))
            }
        }
    }

    /// The role of an account that is no admin.
    fn account_role(&self, space: &Space, account_id: &str) -> Option<SpaceRole> {
        let by_policy = (space.write == WritePolicy::Accounts).then_some(SpaceRole::Writer);
        self.granted_role(&space.name, account_id).max(by_policy)
    }

    /// Whether the caller may read the space. To a caller that may not, the space does not exist.
    #[must_use]
    pub fn may_read(&self, caller: &Caller, name: &SpaceName) -> bool {
        self.space(name).is_some_and(|space| self.reads(caller, space))
    }

    fn reads(&self, caller: &Caller, space: &Space) -> bool {
        space.deleting.is_none()
            && caller.sees(&space.name)
            && (space.read == ReadPolicy::Everyone || self.role(caller, &space.name).is_some())
    }

    /// Whether the caller may add documents to the space.
    #[must_use]
    pub fn may_write(&self, caller: &Caller, name: &SpaceName) -> WriteAccess {
        let Some(space) = self.space(name) else { return WriteAccess::Unknown };
        let is_writer = self.role(caller, name) >= Some(SpaceRole::Writer);
        match (space.deleting.is_some(), is_writer) {
            (true, true) => WriteAccess::Deleting,
            (true, false) => WriteAccess::Unknown,
            (false, true) => WriteAccess::Allowed,
            (false, false) if self.reads(caller, space) => WriteAccess::Forbidden,
            (false, false) => WriteAccess::Unknown,
        }
    }

    /// Whether the caller may change the space, its members and all of its documents.
    #[must_use]
    pub fn may_manage(&self, caller: &Caller, name: &SpaceName) -> bool {
        let is_open = self.space(name).is_some_and(|space| space.deleting.is_none());
        is_open && self.role(caller, name) == Some(SpaceRole::Manager)
    }

    /// The spaces that the caller may read: an explicit set, except for [`Caller::Everything`].
    #[must_use]
    pub fn readable(&self, caller: &Caller) -> Scope {
        if *caller == Caller::Everything {
            return Scope::All;
        }
        self.spaces().filter(|space| self.reads(caller, space)).map(|space| space.name.clone()).collect()
    }

    /// The scope of a request that names spaces, or of one that names none: all that the caller may read.
    ///
    /// # Errors
    /// The first named space that the caller may not read.
    pub fn resolve(&self, caller: &Caller, named: Option<&[SpaceName]>) -> Result<Scope, SpaceName> {
        let Some(named) = named else { return Ok(self.readable(caller)) };
        match named.iter().find(|name| !self.may_read(caller, name)) {
            Some(unreadable) => Err(unreadable.clone()),
            None => Ok(named.iter().cloned().collect()),
        }
    }

    /// Whether the caller manages some space.
    #[must_use]
    pub fn is_manager_anywhere(&self, caller: &Caller) -> bool {
        caller.is_unrestricted_admin() || self.spaces().any(|space| self.may_manage(caller, &space.name))
    }
}
