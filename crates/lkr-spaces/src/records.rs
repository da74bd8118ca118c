//! The stored records and their keys. Each record carries its format version.

use lkr_domain::{GroupId, SpaceName, TaskId};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use time::OffsetDateTime;

use crate::{
    Error, Group, GroupMember, GroupName, MemberId, ReadPolicy, Result, Space, SpaceRole, WritePolicy,
    directory::Membership,
};

/// Counts the changes of spaces, groups and members. Every change expects its version and increments it.
pub(crate) const VERSION: &str = "spaces/version";

/// The key prefix of spaces; the name follows.
pub(crate) const SPACES: &str = "spaces/space/";

/// The key prefix of names that no space may be given; the name follows. Such a record is never removed.
pub(crate) const CLOSED: &str = "spaces/closed/";

/// The key prefix of counters of admissions; the space's name follows.
pub(crate) const ADMISSIONS: &str = "spaces/admissions/";

/// The key prefix of memberships in spaces; the space's name, the member's kind and its id follow.
pub(crate) const MEMBERS: &str = "spaces/member/";

/// The key prefix of groups; the name follows.
pub(crate) const GROUPS: &str = "spaces/group/";

/// The key prefix of memberships in groups; the group's id and the account's id follow.
pub(crate) const GROUP_MEMBERS: &str = "spaces/group-member/";

pub(crate) fn space_key(name: &SpaceName) -> String {
    format!("{SPACES}{name}")
}

pub(crate) fn closed_key(name: &SpaceName) -> String {
    format!("{CLOSED}{name}")
}

/// Counts the steps that added documents to a space or moved them there.
pub(crate) fn admissions_key(name: &SpaceName) -> String {
    format!("{ADMISSIONS}{name}")
}

pub(crate) fn member_key(space: &SpaceName, member: &MemberId) -> String {
    format!("{MEMBERS}{space}/{}", member.key_part())
}

pub(crate) fn group_key(name: &GroupName) -> String {
    format!("{GROUPS}{name}")
}

pub(crate) fn group_member_key(group: GroupId, account_id: &str) -> String {
    format!("{GROUP_MEMBERS}{group}/{account_id}")
}

/// Version 1 of a space.
#[derive(Serialize, Deserialize)]
struct SpaceV1 {
    title: String,
    description: String,
    read: String,
    write: String,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    updated_at: OffsetDateTime,
    created_by: String,
    deleting: Option<TaskId>,
}

/// Version 1 of a name that no space may be given.
#[derive(Serialize, Deserialize)]
struct ClosedV1 {
    #[serde(with = "time::serde::rfc3339")]
    closed_at: OffsetDateTime,
}

/// Version 1 of a membership in a space.
#[derive(Serialize, Deserialize)]
struct MemberV1 {
    name: String,
    role: String,
}

/// Version 1 of a group.
#[derive(Serialize, Deserialize)]
struct GroupV1 {
    id: GroupId,
    title: String,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    created_by: String,
}

/// Version 1 of a membership in a group.
#[derive(Serialize, Deserialize)]
struct GroupMemberV1 {
    username: String,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "v")]
enum Versioned<T> {
    #[serde(rename = "1")]
    V1(T),
}

fn encode<T: Serialize>(record: T) -> Result<Vec<u8>> {
    serde_json::to_vec(&Versioned::V1(record)).map_err(|e| Error::internal("write space record", e))
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    let Versioned::V1(record) = serde_json::from_slice(bytes).map_err(Error::corrupt)?;
    Ok(record)
}

pub(crate) fn encode_space(space: &Space) -> Result<Vec<u8>> {
    encode(SpaceV1 {
        title: space.title.clone(),
        description: space.description.clone(),
        read: space.read.name().to_owned(),
        write: space.write.name().to_owned(),
        created_at: space.created_at,
        updated_at: space.updated_at,
        created_by: space.created_by.clone(),
        deleting: space.deleting,
    })
}

pub(crate) fn decode_space(key: &str, bytes: &[u8]) -> Result<Space> {
    let record: SpaceV1 = decode(bytes)?;
    Ok(Space {
        name: key_part(key, SPACES, SpaceName::new)?,
        title: record.title,
        description: record.description,
        read: ReadPolicy::from_name(&record.read).ok_or_else(damaged)?,
        write: WritePolicy::from_name(&record.write).ok_or_else(damaged)?,
        created_at: record.created_at,
        updated_at: record.updated_at,
        created_by: record.created_by,
        deleting: record.deleting,
    })
}

pub(crate) fn encode_closed(closed_at: OffsetDateTime) -> Result<Vec<u8>> {
    encode(ClosedV1 { closed_at })
}

pub(crate) fn decode_closed(key: &str, bytes: &[u8]) -> Result<SpaceName> {
    decode::<ClosedV1>(bytes)?;
    key_part(key, CLOSED, SpaceName::new)
}

pub(crate) fn encode_member(membership: &Membership) -> Result<Vec<u8>> {
    encode(MemberV1 { name: membership.name.clone(), role: membership.role.name().to_owned() })
}

pub(crate) fn decode_member(key: &str, bytes: &[u8]) -> Result<(SpaceName, MemberId, Membership)> {
    let record: MemberV1 = decode(bytes)?;
    let parse = |key: &str| {
        let (space, member) = key.split_once('/')?;
        Some((SpaceName::new(space)?, MemberId::from_key_part(member)?))
    };
    let (space, id) = key_part(key, MEMBERS, parse)?;
    let role = SpaceRole::from_name(&record.role).ok_or_else(damaged)?;
    Ok((space, id, Membership { name: record.name, role }))
}

pub(crate) fn encode_group(group: &Group) -> Result<Vec<u8>> {
    let (title, created_by) = (group.title.clone(), group.created_by.clone());
    encode(GroupV1 { id: group.id, title, created_at: group.created_at, created_by })
}

pub(crate) fn decode_group(key: &str, bytes: &[u8]) -> Result<Group> {
    let GroupV1 { id, title, created_at, created_by } = decode(bytes)?;
    Ok(Group { name: key_part(key, GROUPS, GroupName::new)?, id, title, created_at, created_by })
}

pub(crate) fn encode_group_member(member: &GroupMember) -> Result<Vec<u8>> {
    encode(GroupMemberV1 { username: member.username.clone() })
}

pub(crate) fn decode_group_member(key: &str, bytes: &[u8]) -> Result<(GroupId, GroupMember)> {
    let GroupMemberV1 { username } = decode(bytes)?;
    let parse = |key: &str| {
        let (group, account_id) = key.split_once('/')?;
        Some((group.parse().ok()?, account_id.to_owned()))
    };
    let (group, account_id) = key_part(key, GROUP_MEMBERS, parse)?;
    Ok((group, GroupMember { account_id, username }))
}

/// The part of a key after its prefix.
fn key_part<'a, T>(key: &'a str, prefix: &str, parse: impl Fn(&'a str) -> Option<T>) -> Result<T> {
    key.strip_prefix(prefix).and_then(parse).ok_or_else(damaged)
}

fn damaged() -> Error {
    Error::corrupt("the record is damaged")
}

/// Whether a record can be decoded; `None` if the key is not of this crate.
#[must_use]
pub fn is_readable(key: &str, value: &[u8]) -> Option<bool> {
    Some(match key {
        VERSION => true,
        _ if key.starts_with(SPACES) => decode_space(key, value).is_ok(),
        _ if key.starts_with(CLOSED) => decode_closed(key, value).is_ok(),
        _ if key.starts_with(MEMBERS) => decode_member(key, value).is_ok(),
        _ if key.starts_with(GROUPS) => decode_group(key, value).is_ok(),
        _ if key.starts_with(GROUP_MEMBERS) => decode_group_member(key, value).is_ok(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_other_crates_are_not_judged_and_damaged_ones_are_unreadable() {
        assert_eq!(is_readable("auth/account/x", b""), None);
        assert_eq!(is_readable(VERSION, b"7"), Some(true));
        let space = encode_space(&Space::built_in(OffsetDateTime::UNIX_EPOCH)).unwrap();
        assert_eq!(is_readable("spaces/space/default", &space), Some(true));
        assert_eq!(is_readable("spaces/space/Default", &space), Some(false), "the name is not valid");
        for prefix in [SPACES, CLOSED, MEMBERS, GROUPS, GROUP_MEMBERS] {
            assert_eq!(is_readable(&format!("{prefix}a"), b"{}"), Some(false), "{prefix}");
        }
    }
}
