use lkr_spaces::{Member, NewSpace, ReadPolicy, Space, SpaceChange, SpaceName, SpaceRole, WritePolicy};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{formats::SpaceText, timestamp::timestamp};
use crate::error::ApiError;

/// A new space.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SpaceInput {
    /// Its name, which never changes and is never used again.
    #[schema(min_length = 1, max_length = 64, pattern = "^[a-z0-9][a-z0-9._-]*$")]
    space: String,
    /// Its title, at most 200 characters and no control characters.
    #[schema(max_length = 200, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]*$")]
    title: Option<String>,
    /// What it is for, at most 2,000 characters.
    #[schema(max_length = 2000)]
    description: Option<String>,
    /// Who may read it; members by default.
    read: Option<ReadInput>,
    /// Who may add documents; members by default.
    write: Option<WriteInput>,
}

/// A change of a space. Keys that are absent or null stay as they are.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SpaceChangeInput {
    /// Its title, at most 200 characters and no control characters.
    #[schema(max_length = 200, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]*$")]
    title: Option<String>,
    /// What it is for, at most 2,000 characters.
    #[schema(max_length = 2000)]
    description: Option<String>,
    /// Who may read it.
    read: Option<ReadInput>,
    /// Who may add documents.
    write: Option<WriteInput>,
}

/// Who may read a space.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ReadInput {
    /// All accounts, and anonymous callers unless reads need a login.
    Everyone,
    /// Members alone.
    Members,
}

/// Who may add documents to a space.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WriteInput {
    /// Every account. Needs read: everyone.
    Accounts,
    /// Members of role writer or manager.
    Members,
}

impl From<ReadInput> for ReadPolicy {
    fn from(read: ReadInput) -> Self {
        match read {
            ReadInput::Everyone => Self::Everyone,
            ReadInput::Members => Self::Members,
        }
    }
}

impl From<WriteInput> for WritePolicy {
    fn from(write: WriteInput) -> Self {
        match write {
            WriteInput::Accounts => Self::Accounts,
            WriteInput::Members => Self::Members,
        }
    }
}

impl SpaceInput {
    /// The space to create.
    pub(crate) fn check(self, created_by: &str) -> Result<NewSpace, ApiError> {
        let Self { space, title, description, read, write } = self;
        let invalid = |error| ApiError::invalid(format!("space: {error}"));
        Ok(NewSpace {
            name: SpaceName::try_from(space).map_err(invalid)?,
            title: title.unwrap_or_default(),
            description: description.unwrap_or_default(),
            read: read.map_or(ReadPolicy::Members, ReadPolicy::from),
            write: write.map_or(WritePolicy::Members, WritePolicy::from),
            created_by: created_by.to_owned(),
        })
    }
}

impl SpaceChangeInput {
    /// The names of the keys that are given.
    pub(crate) fn changed_names(&self) -> Vec<&'static str> {
        let given = [
            ("title", self.title.is_some()),
            ("description", self.description.is_some()),
            ("read", self.read.is_some()),
            ("write", self.write.is_some()),
        ];
        given.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name).collect()
    }
}

impl From<SpaceChangeInput> for SpaceChange {
    fn from(input: SpaceChangeInput) -> Self {
        let SpaceChangeInput { title, description, read, write } = input;
        Self { title, description, read: read.map(ReadPolicy::from), write: write.map(WritePolicy::from) }
    }
}

/// A space.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SpaceItem {
    /// Its name.
    #[schema(value_type = SpaceText)]
    space: String,
    /// Its title; may be empty.
    title: String,
    /// What it is for; may be empty.
    description: String,
    /// Who may read it: everyone or members
    #[schema(value_type = ReadInput)]
    read: &'static str,
    /// Who may add documents: accounts or members
    #[schema(value_type = WriteInput)]
    write: &'static str,
    /// The number of its documents.
    documents: u64,
    /// The caller's role: reader, writer or manager. Null without a role.
    #[schema(required, value_type = Option<SpaceRoleInput>)]
    your_role: Option<&'static str>,
    /// When it was created.
    #[schema(format = DateTime)]
    created_at: String,
    /// When it was changed last.
    #[schema(format = DateTime)]
    updated_at: String,
    /// Who created it.
    created_by: String,
}

impl SpaceItem {
    pub(crate) fn new(space: Space, documents: u64, role: Option<SpaceRole>) -> Self {
        Self {
            space: space.name.into(),
            title: space.title,
            description: space.description,
            read: space.read.name(),
            write: space.write.name(),
            documents,
            your_role: role.map(SpaceRole::name),
            created_at: timestamp(space.created_at),
            updated_at: timestamp(space.updated_at),
            created_by: space.created_by,
        }
    }
}

/// A page of spaces, by name.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SpaceList {
    /// The spaces of the page.
    pub(crate) items: Vec<SpaceItem>,
    /// The cursor of the next page; null on the last page.
    #[schema(required)]
    pub(crate) next_offset: Option<String>,
}

/// The result of deleting a space.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeletedSpace {
    /// The name of the space.
    #[schema(value_type = SpaceText)]
    pub(crate) space: String,
    /// true
    pub(crate) deleted: bool,
}

/// The role of a member.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemberInput {
    /// The role in the space.
    pub(crate) role: SpaceRoleInput,
}

/// What a member of a space may do. A higher role includes the lower ones.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SpaceRoleInput {
    /// Reading.
    Reader,
    /// Adding documents, changing and deleting own ones.
    Writer,
    /// Changing and deleting all documents of the space; changing the space and its members.
    Manager,
}

impl From<SpaceRoleInput> for SpaceRole {
    fn from(role: SpaceRoleInput) -> Self {
        match role {
            SpaceRoleInput::Reader => Self::Reader,
            SpaceRoleInput::Writer => Self::Writer,
            SpaceRoleInput::Manager => Self::Manager,
        }
    }
}

/// A member of a space.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MemberItem {
    /// `user:` and a username, or `group:` and the name of a group.
    member: String,
    /// reader, writer or manager
    #[schema(value_type = SpaceRoleInput)]
    role: &'static str,
}

impl From<&Member> for MemberItem {
    fn from(member: &Member) -> Self {
        Self { member: member.label(), role: member.role.name() }
    }
}

/// A page of members.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MemberList {
    /// The members of the page.
    pub(crate) items: Vec<MemberItem>,
    /// The cursor of the next page; null on the last page.
    #[schema(required)]
    pub(crate) next_offset: Option<String>,
}

/// The result of removing a member.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeletedMember {
    /// The member, by the own name of the account or group; as in the path if there is none.
    pub(crate) member: String,
    /// Whether it was a member.
    pub(crate) deleted: bool,
}
