//! Adding and removing members of spaces.

use lkr_domain::SpaceName;
use lkr_state::{Expect, Write};

use crate::{
    Directory, Error, Member, MemberId, Result, SpaceRole, Spaces,
    directory::Membership,
    records::{encode_member, group_member_key, member_key},
    space_changes::open_space,
};

impl Spaces {
    /// Adds a member to a space, or changes its role. `username` is the name of the account, for display; that of a group
    /// is known.
    ///
    /// # Errors
    /// `NotFound` if there is no such space, or if it is being deleted; `Invalid` if there is no such group.
    pub async fn put_member(
        &self,
        space: &SpaceName,
        id: MemberId,
        username: &str,
        role: SpaceRole,
        alongside: Vec<Write>,
    ) -> Result<Member> {
        let change = |directory: &Directory| {
            open_space(directory, space)?;
            let name = display_name(directory, &id, username)?;
            let stored = match &id {
                MemberId::User(_) => name.clone(),
                MemberId::Group(_) => String::new(),
            };
            let membership = Membership { name: stored, role };
            let member = Member { id: id.clone(), name, role };
            if directory.membership(space, &id) == Some(&membership) {
                return Ok((member, Vec::new()));
            }
            let write = Write::put(member_key(space, &id), Expect::Any, encode_member(&membership)?);
            Ok((member, vec![write]))
        };
        self.update("change member of space", &alongside, change).await
    }

    /// Removes a member from a space; `false` if it was none.
    ///
    /// # Errors
    /// `NotFound` if there is no such space, or if it is being deleted.
    pub async fn remove_member(
        &self,
        space: &SpaceName,
        id: &MemberId,
        alongside: Vec<Write>,
    ) -> Result<bool> {
        let change = |directory: &Directory| {
            open_space(directory, space)?;
            let is_member = directory.membership(space, id).is_some();
            let removal = is_member.then(|| Write::delete(member_key(space, id), Expect::Any));
            Ok((is_member, Vec::from_iter(removal)))
        };
        self.update("remove member of space", &alongside, change).await
    }

    /// Removes the memberships of an account that was deleted. Without this they remain stored, and nobody has them.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn forget_account(&self, account_id: &str) -> Result<()> {
        let member = MemberId::User(account_id.to_owned());
        let change = |directory: &Directory| {
            let in_spaces = directory.spaces_of(&member).map(|space| member_key(space, &member));
            let groups = directory.groups().filter(|group| directory.is_group_member(group.id, account_id));
            let keys = in_spaces.chain(groups.map(|group| group_member_key(group.id, account_id)));
            Ok(((), keys.map(|key| Write::delete(key, Expect::Any)).collect()))
        };
        self.update("forget account", &[], change).await
    }
}

fn display_name(directory: &Directory, id: &MemberId, username: &str) -> Result<String> {
    match id {
        MemberId::User(_) => Ok(username.to_owned()),
        MemberId::Group(group) => {
            let group = directory.group_with_id(*group);
            let group = group.ok_or_else(|| Error::invalid("member", "the group does not exist"))?;
            Ok(group.name.to_string())
        }
    }
}
