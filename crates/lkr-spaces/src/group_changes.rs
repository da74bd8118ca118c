//! Creating and deleting groups, and changing who is in them.

use lkr_domain::GroupId;
use lkr_state::{Expect, Write};

use crate::{
    Directory, Error, Group, GroupMember, GroupName, MemberId, NewGroup, Result, Spaces,
    records::{encode_group, encode_group_member, group_key, group_member_key, member_key},
    space::check_title,
};

impl Spaces {
    /// Creates a group without members.
    ///
    /// # Errors
    /// `Invalid` if the title is not allowed, `Taken` if a group has the name.
    pub async fn create_group(&self, new: NewGroup, alongside: Vec<Write>) -> Result<Group> {
        check_title(&new.title)?;
        let NewGroup { name, title, created_by } = new;
        let (id, created_at) = (GroupId::new_by(&*self.clock), self.clock.now());
        let group = Group { name, id, title, created_at, created_by };
        let change = |directory: &Directory| {
            if directory.group(&group.name).is_some() {
                let reason = format!("a group has the name {:?}", group.name.as_str());
                return Err(Error::taken("create group", reason));
            }
            let write = Write::put(group_key(&group.name), Expect::Any, encode_group(&group)?);
            Ok((group.clone(), vec![write]))
        };
        self.update("create group", &alongside, change).await
    }

    /// Deletes a group and its memberships in spaces.
    ///
    /// # Errors
    /// `NotFound` if there is no such group.
    pub async fn delete_group(&self, name: &GroupName, alongside: Vec<Write>) -> Result<()> {
        let change = |directory: &Directory| {
            let group = existing_group(directory, name)?;
            let member = MemberId::Group(group.id);
            let in_spaces = directory.spaces_of(&member).map(|space| member_key(space, &member));
            let accounts = directory.accounts_in(group.id).map(|id| group_member_key(group.id, id));
            let keys = [group_key(name)].into_iter().chain(in_spaces).chain(accounts);
            Ok(((), keys.map(|key| Write::delete(key, Expect::Any)).collect()))
        };
        self.update("delete group", &alongside, change).await
    }

    /// Adds an account to a group; `false` if it was in the group.
    ///
    /// # Errors
    /// `NotFound` if there is no such group.
    pub async fn put_group_member(
        &self,
        group: &GroupName,
        member: GroupMember,
        alongside: Vec<Write>,
    ) -> Result<bool> {
        let change = |directory: &Directory| {
            let group = existing_group(directory, group)?;
            if directory.is_group_member(group.id, &member.account_id) {
                return Ok((false, Vec::new()));
            }
            let key = group_member_key(group.id, &member.account_id);
            Ok((true, vec![Write::put(key, Expect::Any, encode_group_member(&member)?)]))
        };
        self.update("add member of group", &alongside, change).await
    }

    /// Removes an account from a group; `false` if it was not in the group.
    ///
    /// # Errors
    /// `NotFound` if there is no such group.
    pub async fn remove_group_member(
        &self,
        group: &GroupName,
        account_id: &str,
        alongside: Vec<Write>,
    ) -> Result<bool> {
        let change = |directory: &Directory| {
            let group = existing_group(directory, group)?;
            let is_member = directory.is_group_member(group.id, account_id);
            let key = group_member_key(group.id, account_id);
            Ok((is_member, Vec::from_iter(is_member.then(|| Write::delete(key, Expect::Any)))))
        };
        self.update("remove member of group", &alongside, change).await
    }
}

fn existing_group<'a>(directory: &'a Directory, name: &GroupName) -> Result<&'a Group> {
    directory.group(name).ok_or_else(|| Error::no_group(name.as_str()))
}
