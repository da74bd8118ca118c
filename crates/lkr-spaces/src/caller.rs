use lkr_domain::{KeyScope, SpaceName};

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

/// The role of a key whose owner has `role`. A restricted key is no manager.
pub(crate) fn key_role(key: &KeyScope, space: &SpaceName, role: Option<SpaceRole>) -> Option<SpaceRole> {
    let highest = match (key.write, &key.spaces) {
        (false, _) => SpaceRole::Reader,
        (true, Some(_)) => SpaceRole::Writer,
        (true, None) => SpaceRole::Manager,
    };
    role.filter(|_| key.includes(space)).map(|role| role.min(highest))
}

impl Caller {
    /// Whether the caller's API key sees the space. Other callers see what their rights admit.
    pub(crate) fn sees(&self, space: &SpaceName) -> bool {
        match self {
            Self::Account { key: Some(key), .. } => key.includes(space),
            _ => true,
        }
    }

    /// Whether the caller manages every space: an admin without a restricted key, or a program.
    #[must_use]
    pub const fn is_unrestricted_admin(&self) -> bool {
        match self {
            Self::Everything | Self::Account { is_admin: true, key: None, .. } => true,
            Self::Account { is_admin: true, key: Some(key), .. } => !key.is_restricted(),
            _ => false,
        }
    }
}
