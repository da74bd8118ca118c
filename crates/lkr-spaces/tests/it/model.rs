//! Random changes, after each of which every right is compared with a naive reading of the rules.

use std::collections::BTreeSet;

use lkr_domain::TaskId;
use lkr_spaces::{
    Caller, Directory, GroupMember, KeyScope, MemberId, ReadPolicy, Scope, SpaceChange, SpaceRole, Spaces,
    WriteAccess, WritePolicy,
};
use proptest::{prelude::*, sample::select};

use crate::support::{group_name, name, new_group, new_space, spaces};

const SPACES: [&str; 4] = ["default", "a", "b", "c"];
const GROUPS: [&str; 2] = ["g", "h"];
const ACCOUNTS: [&str; 3] = ["1", "2", "3"];

#[derive(Debug, Clone)]
enum Change {
    Create(&'static str, ReadPolicy, WritePolicy),
    Policies(&'static str, Option<ReadPolicy>, Option<WritePolicy>),
    DeleteEmpty(&'static str),
    BeginDelete(&'static str),
    FinishDelete(&'static str),
    PutUser(&'static str, &'static str, SpaceRole),
    PutGroup(&'static str, &'static str, SpaceRole),
    RemoveUser(&'static str, &'static str),
    CreateGroup(&'static str),
    DeleteGroup(&'static str),
    Join(&'static str, &'static str),
    Leave(&'static str, &'static str),
}

/// The state as lists, without ids: what was deleted is removed everywhere.
#[derive(Debug, Clone, Default)]
struct Model {
    /// Name, policies, and whether it is being deleted.
    spaces: Vec<(&'static str, ReadPolicy, WritePolicy, bool)>,
    used: BTreeSet<&'static str>,
    users: Vec<(&'static str, &'static str, SpaceRole)>,
    by_group: Vec<(&'static str, &'static str, SpaceRole)>,
    groups: BTreeSet<&'static str>,
    in_groups: BTreeSet<(&'static str, &'static str)>,
}

impl Model {
    fn new() -> Self {
        Self {
            spaces: vec![("default", ReadPolicy::Everyone, WritePolicy::Accounts, false)],
            used: BTreeSet::from(["default"]),
            ..Self::default()
        }
    }

    fn find(&self, space: &str) -> Option<(ReadPolicy, WritePolicy, bool)> {
        let found = self.spaces.iter().find(|known| known.0 == space);
        found.map(|known| (known.1, known.2, known.3))
    }

    fn is_open(&self, space: &str) -> bool {
        self.find(space).is_some_and(|(_, _, is_deleting)| !is_deleting)
    }

    fn forget(&mut self, space: &str) {
        self.spaces.retain(|known| known.0 != space);
        self.users.retain(|known| known.0 != space);
        self.by_group.retain(|known| known.0 != space);
    }

    /// Applies a change; whether it is allowed.
    fn apply(&mut self, change: &Change) -> bool {
        let contradicts = |read, write| read == ReadPolicy::Members && write == WritePolicy::Accounts;
        match *change {
            Change::Create(space, read, write) => {
                let is_allowed = !self.used.contains(space) && !contradicts(read, write);
                if is_allowed {
                    self.used.insert(space);
                    self.spaces.push((space, read, write, false));
                }
                is_allowed
            }
            Change::Policies(space, read, write) => {
                let Some(found) = self.spaces.iter_mut().find(|known| known.0 == space && !known.3) else {
                    return false;
                };
                let after = (read.unwrap_or(found.1), write.unwrap_or(found.2));
                let is_allowed = !contradicts(after.0, after.1);
                if is_allowed {
                    (found.1, found.2) = after;
                }
                is_allowed
            }
            Change::DeleteEmpty(space) => {
                let is_allowed = space != "default" && self.is_open(space);
                if is_allowed {
                    self.forget(space);
                }
                is_allowed
            }
            Change::BeginDelete(space) => {
                let is_allowed = space != "default" && self.is_open(space);
                self.spaces
                    .iter_mut()
                    .filter(|known| is_allowed && known.0 == space)
                    .for_each(|s| s.3 = true);
                is_allowed
            }
            Change::FinishDelete(space) => {
                if self.find(space).is_some_and(|(_, _, is_deleting)| is_deleting) {
                    self.forget(space);
                }
                true
            }
            Change::PutUser(space, account, role) => {
                let is_allowed = self.is_open(space);
                if is_allowed {
                    self.users.retain(|known| (known.0, known.1) != (space, account));
                    self.users.push((space, account, role));
                }
                is_allowed
            }
            Change::PutGroup(space, group, role) => {
                let is_allowed = self.is_open(space) && self.groups.contains(group);
                if is_allowed {
                    self.by_group.retain(|known| (known.0, known.1) != (space, group));
                    self.by_group.push((space, group, role));
                }
                is_allowed
            }
            Change::RemoveUser(space, account) => {
                let is_allowed = self.is_open(space);
                if is_allowed {
                    self.users.retain(|known| (known.0, known.1) != (space, account));
                }
                is_allowed
            }
            Change::CreateGroup(group) => self.groups.insert(group),
            Change::DeleteGroup(group) => {
                self.by_group.retain(|known| known.1 != group);
                self.in_groups.retain(|known| known.0 != group);
                self.groups.remove(group)
            }
            Change::Join(group, account) => {
                let is_allowed = self.groups.contains(group);
                if is_allowed {
                    self.in_groups.insert((group, account));
                }
                is_allowed
            }
            Change::Leave(group, account) => {
                self.in_groups.remove(&(group, account));
                self.groups.contains(group)
            }
        }
    }

    /// Every role that a caller has in a space by the rules.
    fn roles(&self, caller: &Caller, space: &str) -> Vec<SpaceRole> {
        let Some((_, write, _)) = self.find(space) else { return Vec::new() };
        let Caller::Account { id, is_admin, key } = caller else {
            return Vec::from_iter((*caller == Caller::Everything).then_some(SpaceRole::Manager));
        };
        let mut roles = Vec::new();
        roles.extend(is_admin.then_some(SpaceRole::Manager));
        roles.extend((write == WritePolicy::Accounts).then_some(SpaceRole::Writer));
        roles.extend(self.users.iter().filter(|m| m.0 == space && m.1 == id).map(|m| m.2));
        let in_group = |group| self.in_groups.iter().any(|known| known.0 == group && known.1 == id);
        roles.extend(self.by_group.iter().filter(|m| m.0 == space && in_group(m.1)).map(|m| m.2));
        if let Some(KeyScope { spaces, write }) = key {
            if spaces.as_ref().is_some_and(|spaces| !spaces.contains(&name(space))) {
                roles.clear();
            }
            if !write && !roles.is_empty() {
                roles = vec![SpaceRole::Reader];
            }
            if spaces.is_some() {
                roles.iter_mut().for_each(|role| *role = (*role).min(SpaceRole::Writer));
            }
        }
        roles
    }

    fn reads(&self, caller: &Caller, space: &str) -> bool {
        let Some((read, _, is_deleting)) = self.find(space) else { return false };
        let is_outside_of_key = matches!(
            caller,
            Caller::Account { key: Some(KeyScope { spaces: Some(spaces), .. }), .. }
                if !spaces.contains(&name(space))
        );
        let may = read == ReadPolicy::Everyone || !self.roles(caller, space).is_empty();
        may && !is_deleting && !is_outside_of_key
    }

    fn write_access(&self, caller: &Caller, space: &str) -> WriteAccess {
        let is_writer = self.roles(caller, space).iter().any(|role| *role != SpaceRole::Reader);
        let is_deleting = self.find(space).is_some_and(|found| found.2);
        if is_writer {
            return if is_deleting { WriteAccess::Deleting } else { WriteAccess::Allowed };
        }
        if self.reads(caller, space) { WriteAccess::Forbidden } else { WriteAccess::Unknown }
    }
}

fn callers() -> Vec<Caller> {
    let mut callers = vec![Caller::Everything, Caller::Anonymous];
    let some = Some(BTreeSet::from([name("a"), name("default")]));
    for id in ACCOUNTS {
        for is_admin in [false, true] {
            for key in [
                None,
                Some(KeyScope { spaces: None, write: true }),
                Some(KeyScope { spaces: None, write: false }),
                Some(KeyScope { spaces: some.clone(), write: true }),
                Some(KeyScope { spaces: some.clone(), write: false }),
                Some(KeyScope { spaces: Some(BTreeSet::new()), write: true }),
            ] {
                callers.push(Caller::Account { id: id.to_owned(), is_admin, key });
            }
        }
    }
    callers
}

fn compare(model: &Model, directory: &Directory) {
    for caller in callers() {
        let mut readable = BTreeSet::new();
        let mut manages = matches!(caller, Caller::Everything);
        for space in SPACES {
            let roles = model.roles(&caller, space);
            let is_manager = roles.contains(&SpaceRole::Manager) && model.is_open(space);
            let space_name = name(space);
            let context = format!("{caller:?} in {space}: {model:?}");
            assert_eq!(directory.role(&caller, &space_name), roles.into_iter().max(), "{context}");
            assert_eq!(directory.may_read(&caller, &space_name), model.reads(&caller, space), "{context}");
            assert_eq!(
                directory.may_write(&caller, &space_name),
                model.write_access(&caller, space),
                "{context}"
            );
            assert_eq!(directory.may_manage(&caller, &space_name), is_manager, "{context}");
            let named = directory.resolve(&caller, Some(std::slice::from_ref(&space_name)));
            assert_eq!(named.is_ok(), model.reads(&caller, space), "{context}");
            readable.extend(model.reads(&caller, space).then_some(space_name));
            manages |= is_manager;
        }
        let scope = match caller {
            Caller::Everything => Scope::All,
            _ => readable.into_iter().collect(),
        };
        assert_eq!(directory.readable(&caller), scope, "{caller:?}: {model:?}");
        assert_eq!(directory.is_manager_anywhere(&caller), manages, "{caller:?}: {model:?}");
    }
}

async fn apply(spaces: &Spaces, change: &Change, task: TaskId) -> lkr_spaces::Result<()> {
    let user = |id: &str| MemberId::User(id.to_owned());
    match *change {
        Change::Create(space, read, write) => {
            spaces.create(new_space(space, read, write), vec![]).await.map(drop)
        }
        Change::Policies(space, read, write) => {
            let change = SpaceChange { read, write, ..SpaceChange::default() };
            spaces.change(&name(space), change, vec![]).await.map(drop)
        }
        Change::DeleteEmpty(space) => spaces.delete_empty(&name(space), vec![]).await,
        Change::BeginDelete(space) => spaces.begin_delete(&name(space), task, vec![]).await.map(drop),
        Change::FinishDelete(space) => spaces.finish_delete(&name(space), task, vec![]).await.map(drop),
        Change::PutUser(space, id, role) => {
            spaces.put_member(&name(space), user(id), id, role, vec![]).await.map(drop)
        }
        Change::PutGroup(space, group, role) => {
            let directory = spaces.directory().await?;
            let id = directory.group(&group_name(group)).map_or_else(lkr_spaces::GroupId::new, |g| g.id);
            spaces.put_member(&name(space), MemberId::Group(id), "", role, vec![]).await.map(drop)
        }
        Change::RemoveUser(space, id) => {
            spaces.remove_member(&name(space), &user(id), vec![]).await.map(drop)
        }
        Change::CreateGroup(group) => spaces.create_group(new_group(group), vec![]).await.map(drop),
        Change::DeleteGroup(group) => spaces.delete_group(&group_name(group), vec![]).await,
        Change::Join(group, id) => {
            let member = GroupMember { account_id: id.to_owned(), username: id.to_owned() };
            spaces.put_group_member(&group_name(group), member, vec![]).await.map(drop)
        }
        Change::Leave(group, id) => {
            spaces.remove_group_member(&group_name(group), id, vec![]).await.map(drop)
        }
    }
}

fn change() -> impl Strategy<Value = Change> {
    let (space, group, account) = (|| select(&SPACES[..]), || select(&GROUPS[..]), || select(&ACCOUNTS[..]));
    let (read, write) = (|| select(ReadPolicy::ALL), || select(WritePolicy::ALL));
    let role = || select(SpaceRole::ALL);
    prop_oneof![
        4 => (space(), read(), write()).prop_map(|(s, r, w)| Change::Create(s, r, w)),
        3 => (space(), proptest::option::of(read()), proptest::option::of(write()))
            .prop_map(|(s, r, w)| Change::Policies(s, r, w)),
        1 => space().prop_map(Change::DeleteEmpty),
        1 => space().prop_map(Change::BeginDelete),
        1 => space().prop_map(Change::FinishDelete),
        4 => (space(), account(), role()).prop_map(|(s, a, r)| Change::PutUser(s, a, r)),
        4 => (space(), group(), role()).prop_map(|(s, g, r)| Change::PutGroup(s, g, r)),
        1 => (space(), account()).prop_map(|(s, a)| Change::RemoveUser(s, a)),
        3 => group().prop_map(Change::CreateGroup),
        1 => group().prop_map(Change::DeleteGroup),
        4 => (group(), account()).prop_map(|(g, a)| Change::Join(g, a)),
        1 => (group(), account()).prop_map(|(g, a)| Change::Leave(g, a)),
    ]
}

proptest! {
    #[test]
    fn rights_equal_a_naive_reading_of_the_rules(changes in prop::collection::vec(change(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (spaces, mut model, task) = (spaces(), Model::new(), TaskId::new());
            for change in &changes {
                let result = apply(&spaces, change, task).await;
                assert_eq!(result.is_ok(), model.apply(change), "{change:?}: {result:?}");
                compare(&model, &spaces.directory().await.unwrap());
            }
        });
    }
}
