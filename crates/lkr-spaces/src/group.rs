use std::{fmt, str::FromStr};

use lkr_domain::{GroupId, InvalidSpaceName, is_space_name};
use time::OffsetDateTime;

/// The name of a group: of the same form as a space's. A deleted group's name may be used again, by another group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupName(String);

/// A set of accounts that can be a member of spaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub name: GroupName,
    /// Its id, which distinguishes it from an earlier group of the same name.
    pub id: GroupId,
    /// Its title.
    pub title: String,
    /// When it was created.
    pub created_at: OffsetDateTime,
    /// The name of the account that created it.
    pub created_by: String,
}

/// A group to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewGroup {
    /// Its name.
    pub name: GroupName,
    /// Its title.
    pub title: String,
    /// The name of the account that creates it.
    pub created_by: String,
}

/// An account in a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupMember {
    /// The id of the account.
    pub account_id: String,
    /// The name of the account, for display.
    pub username: String,
}

impl GroupName {
    /// Validates a name; `None` if it is invalid.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Option<Self> {
        let name = name.into();
        is_space_name(&name).then_some(Self(name))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for GroupName {
    type Err = InvalidSpaceName;

    fn from_str(name: &str) -> Result<Self, InvalidSpaceName> {
        Self::new(name).ok_or(InvalidSpaceName)
    }
}
