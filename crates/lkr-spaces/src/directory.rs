use std::collections::{BTreeMap, BTreeSet, HashMap};

use lkr_domain::{GroupId, SpaceName};
use time::OffsetDateTime;

use crate::{Group, GroupMember, GroupName, Member, MemberId, Space, SpaceRole};

/// All spaces, groups and members at one time. It never changes; [`Spaces::directory`] returns the current one.
///
/// [`Spaces::directory`]: crate::Spaces::directory
#[derive(Debug, Clone)]
pub struct Directory {
    /// The version of the record that every change increments; `None` before the first change.
    pub(crate) version: Option<u64>,
    spaces: BTreeMap<SpaceName, Space>,
    /// The names that no space may be given: those of deleted spaces and of spaces that are being deleted.
    closed: BTreeSet<SpaceName>,
    members: BTreeMap<SpaceName, BTreeMap<MemberId, Membership>>,
    groups: BTreeMap<GroupName, Group>,
    group_names: HashMap<GroupId, GroupName>,
    /// The members of each group: account ids with usernames.
    group_members: HashMap<GroupId, BTreeMap<String, String>>,
    /// The groups of each account.
    groups_of: HashMap<String, BTreeSet<GroupId>>,
}

/// The part of a membership besides its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Membership {
    /// The username; empty for a group, whose name is looked up.
    pub(crate) name: String,
    pub(crate) role: SpaceRole,
}

/// What the store holds of spaces.
#[derive(Debug, Default)]
pub(crate) struct DirectoryParts {
    pub(crate) version: Option<u64>,
    pub(crate) spaces: Vec<Space>,
    pub(crate) closed: BTreeSet<SpaceName>,
    pub(crate) members: Vec<(SpaceName, MemberId, Membership)>,
    pub(crate) groups: Vec<Group>,
    pub(crate) group_members: Vec<(GroupId, GroupMember)>,
}

impl Default for Directory {
    /// The directory of an empty store: the default space alone.
    fn default() -> Self {
        DirectoryParts::default().into()
    }
}

impl From<DirectoryParts> for Directory {
    fn from(parts: DirectoryParts) -> Self {
        let mut spaces: BTreeMap<_, _> =
            parts.spaces.into_iter().map(|space| (space.name.clone(), space)).collect();
        spaces.entry(SpaceName::default()).or_insert_with(|| Space::built_in(OffsetDateTime::UNIX_EPOCH));
        let mut members = BTreeMap::<_, BTreeMap<_, _>>::new();
        for (space, id, membership) in parts.members {
            members.entry(space).or_default().insert(id, membership);
        }
        let (mut group_members, mut groups_of) =
            (HashMap::<_, BTreeMap<_, _>>::new(), HashMap::<_, BTreeSet<_>>::new());
        for (group, member) in parts.group_members {
            groups_of.entry(member.account_id.clone()).or_default().insert(group);
            group_members.entry(group).or_default().insert(member.account_id, member.username);
        }
        Self {
            version: parts.version,
            spaces,
            closed: parts.closed,
            members,
            group_names: parts.groups.iter().map(|group| (group.id, group.name.clone())).collect(),
            groups: parts.groups.into_iter().map(|group| (group.name.clone(), group)).collect(),
            group_members,
            groups_of,
        }
    }
}

impl Directory {
    /// The space with this name, also while it is being deleted.
    #[must_use]
    pub fn space(&self, name: &SpaceName) -> Option<&Space> {
        self.spaces.get(name)
    }

    /// All spaces by name, also those that are being deleted.
    pub fn spaces(&self) -> impl Iterator<Item = &Space> {
        self.spaces.values()
    }

    /// Whether a space has or had this name.
    #[must_use]
    pub fn is_used(&self, name: &SpaceName) -> bool {
        self.spaces.contains_key(name) || self.closed.contains(name)
    }

    /// The group with this name.
    #[must_use]
    pub fn group(&self, name: &GroupName) -> Option<&Group> {
        self.groups.get(name)
    }

    /// The group with this id.
    #[must_use]
    pub fn group_with_id(&self, id: GroupId) -> Option<&Group> {
        self.group_names.get(&id).and_then(|name| self.groups.get(name))
    }

    /// All groups by name.
    pub fn groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.values()
    }

    /// The members of a space, sorted by their labels; none if there is no such space. Accounts that no longer exist are
    /// among them: the caller must compare their ids with the accounts'.
    #[must_use]
    pub fn members(&self, space: &SpaceName) -> Vec<Member> {
        let mut members: Vec<_> = self
            .members
            .get(space)
            .into_iter()
            .flatten()
            .filter_map(|(id, membership)| self.member(id, membership))
            .collect();
        members.sort_by_cached_key(Member::label);
        members
    }

    fn member(&self, id: &MemberId, membership: &Membership) -> Option<Member> {
        let name = match id {
            MemberId::User(_) => membership.name.clone(),
            MemberId::Group(id) => self.group_with_id(*id)?.name.to_string(),
        };
        Some(Member { id: id.clone(), name, role: membership.role })
    }

    /// The accounts in a group, sorted by username; none if there is no such group. Accounts that no longer exist are
    /// among them: the caller must compare their ids with the accounts'.
    #[must_use]
    pub fn group_members(&self, group: &GroupName) -> Vec<GroupMember> {
        let accounts = self.groups.get(group).and_then(|group| self.group_members.get(&group.id));
        let to_member =
            |(id, name): (&String, &String)| GroupMember { account_id: id.clone(), username: name.clone() };
        let mut members: Vec<_> = accounts.into_iter().flatten().map(to_member).collect();
        members.sort_by_cached_key(|member| member.username.to_ascii_lowercase());
        members
    }

    pub(crate) fn membership(&self, space: &SpaceName, id: &MemberId) -> Option<&Membership> {
        self.members.get(space)?.get(id)
    }

    pub(crate) fn is_group_member(&self, group: GroupId, account_id: &str) -> bool {
        self.group_members.get(&group).is_some_and(|accounts| accounts.contains_key(account_id))
    }

    /// The ids of the members of a space, groups that no longer exist included.
    pub(crate) fn member_ids(&self, space: &SpaceName) -> impl Iterator<Item = &MemberId> {
        self.members.get(space).into_iter().flat_map(BTreeMap::keys)
    }

    /// The spaces of which this is a member.
    pub(crate) fn spaces_of<'a>(&'a self, id: &'a MemberId) -> impl Iterator<Item = &'a SpaceName> {
        self.members.iter().filter(move |(_, members)| members.contains_key(id)).map(|(space, _)| space)
    }

    /// The ids of the accounts in a group.
    pub(crate) fn accounts_in(&self, group: GroupId) -> impl Iterator<Item = &String> {
        self.group_members.get(&group).into_iter().flat_map(BTreeMap::keys)
    }

    /// The highest role that an account was given in a space, by itself and by its groups.
    pub(crate) fn granted_role(&self, space: &SpaceName, account_id: &str) -> Option<SpaceRole> {
        let members = self.members.get(space)?;
        let own = members.get(&MemberId::User(account_id.to_owned()));
        let groups = self.groups_of.get(account_id).into_iter().flatten();
        let by_groups = groups.filter_map(|group| members.get(&MemberId::Group(*group)));
        own.into_iter().chain(by_groups).map(|membership| membership.role).max()
    }
}
