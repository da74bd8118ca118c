use std::collections::BTreeSet;

use lkr_domain::SpaceName;

use crate::SpaceRole;

/// Whose rights are judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// A program that embeds the library: it may do everything.
    Everything,
    /// Somebody without a login.
    Anonymous,
    /// An account.
    Account {
        /// Its id.
        id: String,
        /// Whether it is an admin, who manages every space.
        is_admin: bool,
        /// The limits of the API key that it uses; `None` with a session.
        key: Option<KeyScope>,
    },
}

/// The limits of an API key. It sees and does no more, whatever its owner may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyScope {
    /// The spaces that it sees; `None` for those of its owner.
    pub spaces: Option<BTreeSet<SpaceName>>,
    /// Whether it may write.
    pub write: bool,
}

/// Whether a caller may write to a space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteAccess {
    /// The caller is a writer.
    Allowed,
    /// The caller may read the space and is no writer.
    Forbidden,
    /// The caller was a writer of a space that is being deleted.
    Deleting,
    /// To the caller, the space does not exist.
    Unknown,
}

impl KeyScope {
    /// Whether the key may do less than its owner. Such a key manages nothing.
    #[must_use]
    pub const fn is_restricted(&self) -> bool {
        self.spaces.is_some() || !self.write
    }

    /// Whether the key sees the space.
    #[must_use]
    pub fn includes(&self, space: &SpaceName) -> bool {
        self.spaces.as_ref().is_none_or(|spaces| spaces.contains(space))
    }

    /// The role of a key whose owner has `role`.
    pub(crate) fn limit(&self, space: &SpaceName, role: Option<SpaceRole>) -> Option<SpaceRole> {
        let highest = match (self.write, &self.spaces) {
            (false, _) => SpaceRole::Reader,
            (true, Some(_)) => SpaceRole::Writer,
            (true, None) => SpaceRole::Manager,
        };
        role.filter(|_| self.includes(space)).map(|role| role.min(highest))
    }
}

impl Caller {
    /// Whether the caller's API key sees the space. Other callers see what their rights admit.
    pub(crate) fn sees(&self, space: &SpaceName) -> bool {
        match self {
            Self::Account { key: Some(key), .. } => key.includes(space),
            _ => true,
        }
    }

    /// Whether the caller manages every space.
    pub(crate) const fn is_unrestricted_admin(&self) -> bool {
        match self {
            Self::Everything | Self::Account { is_admin: true, key: None, .. } => true,
            Self::Account { is_admin: true, key: Some(key), .. } => !key.is_restricted(),
            _ => false,
        }
    }
}
