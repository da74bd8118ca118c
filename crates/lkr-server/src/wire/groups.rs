use lkr_spaces::{Group, GroupMember, GroupName, NewGroup};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::timestamp::timestamp;
use crate::error::ApiError;

/// A new group.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GroupInput {
    /// Its name.
    #[schema(min_length = 1, max_length = 64, pattern = "^[a-z0-9][a-z0-9._-]*$")]
    group: String,
    /// Its title, at most 200 characters and no control characters.
    #[schema(max_length = 200, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]*$")]
    title: Option<String>,
}

impl GroupInput {
    /// The group to create.
    pub(crate) fn check(self, created_by: &str) -> Result<NewGroup, ApiError> {
        let name =
            self.group.parse::<GroupName>().map_err(|error| ApiError::invalid(format!("group: {error}")))?;
        Ok(NewGroup { name, title: self.title.unwrap_or_default(), created_by: created_by.to_owned() })
    }
}

/// A group of accounts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GroupItem {
    /// Its name.
    group: String,
    /// Its title; may be empty.
    title: String,
    /// When it was created.
    #[schema(format = DateTime)]
    created_at: String,
    /// Who created it.
    created_by: String,
}

impl From<&Group> for GroupItem {
    fn from(group: &Group) -> Self {
        Self {
            group: group.name.to_string(),
            title: group.title.clone(),
            created_at: timestamp(group.created_at),
            created_by: group.created_by.clone(),
        }
    }
}

/// A page of groups, by name.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GroupList {
    /// The groups of the page.
    pub(crate) items: Vec<GroupItem>,
    /// The cursor of the next page; null on the last page.
    #[schema(required)]
    pub(crate) next_offset: Option<String>,
}

/// The result of deleting a group.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeletedGroup {
    /// The name of the group.
    pub(crate) group: String,
    /// true
    pub(crate) deleted: bool,
}

/// An account in a group.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GroupMemberItem {
    /// The name of the account.
    username: String,
}

impl From<&GroupMember> for GroupMemberItem {
    fn from(member: &GroupMember) -> Self {
        Self { username: member.username.clone() }
    }
}

/// A page of the accounts in a group, by name.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GroupMemberList {
    /// The members of the page.
    pub(crate) items: Vec<GroupMemberItem>,
    /// The cursor of the next page; null on the last page.
    #[schema(required)]
    pub(crate) next_offset: Option<String>,
}

/// The result of removing an account from a group.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeletedGroupMember {
    /// The name of the account.
    pub(crate) username: String,
    /// Whether the account was in the group.
    pub(crate) deleted: bool,
}
