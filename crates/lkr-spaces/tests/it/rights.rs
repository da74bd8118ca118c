use lkr_domain::TaskId;
use lkr_spaces::{
    Caller, GroupMember, MemberId, ReadPolicy, Scope, SpaceChange, SpaceRole, WriteAccess, WritePolicy,
};

use crate::support::{
    account, admin, closed_space, group_name, name, new_group, new_space, spaces, with_key,
};

fn user(id: &str) -> MemberId {
    MemberId::User(id.to_owned())
}

#[tokio::test]
async fn default_space_is_open_until_it_is_changed() {
    let spaces = spaces();
    let default = name("default");
    let directory = spaces.directory().await.unwrap();
    assert_eq!(directory.readable(&Caller::Anonymous), Scope::of(default.clone()));
    assert_eq!(directory.role(&Caller::Anonymous, &default), None);
    assert_eq!(directory.may_write(&Caller::Anonymous, &default), WriteAccess::Forbidden);
    assert_eq!(directory.may_write(&account("eva"), &default), WriteAccess::Allowed);
    assert_eq!(directory.role(&account("eva"), &default), Some(SpaceRole::Writer));
    assert!(!directory.may_manage(&account("eva"), &default) && directory.may_manage(&admin(), &default));

    let closed = SpaceChange {
        read: Some(ReadPolicy::Members),
        write: Some(WritePolicy::Members),
        ..SpaceChange::default()
    };
    spaces.change(&default, closed, vec![]).await.unwrap();
    let directory = spaces.directory().await.unwrap();
    assert_eq!(directory.readable(&account("eva")), Scope::none());
    assert_eq!(directory.may_write(&account("eva"), &default), WriteAccess::Unknown);
}

#[tokio::test]
async fn highest_role_of_account_and_its_groups_counts() {
    let spaces = spaces();
    let legal = name("legal");
    spaces.create(closed_space("legal"), vec![]).await.unwrap();
    let group = spaces.create_group(new_group("lawyers"), vec![]).await.unwrap();
    let eva = GroupMember { account_id: "eva".to_owned(), username: "Eva".to_owned() };
    spaces.put_group_member(&group.name, eva, vec![]).await.unwrap();
    spaces.put_member(&legal, MemberId::Group(group.id), "", SpaceRole::Writer, vec![]).await.unwrap();
    spaces.put_member(&legal, user("eva"), "Eva", SpaceRole::Reader, vec![]).await.unwrap();
    spaces.put_member(&legal, user("bob"), "Bob", SpaceRole::Manager, vec![]).await.unwrap();
    let directory = spaces.directory().await.unwrap();
    assert_eq!(directory.role(&account("eva"), &legal), Some(SpaceRole::Writer));
    assert!(directory.may_manage(&account("bob"), &legal) && directory.is_manager_anywhere(&account("bob")));
    assert!(!directory.is_manager_anywhere(&account("eva")));
    assert_eq!(directory.may_write(&account("cid"), &legal), WriteAccess::Unknown);
    let labels: Vec<_> = directory.members(&legal).iter().map(lkr_spaces::Member::label).collect();
    assert_eq!(labels, ["group:lawyers", "user:Bob", "user:Eva"]);

    spaces.delete_group(&group_name("lawyers"), vec![]).await.unwrap();
    let directory = spaces.directory().await.unwrap();
    assert_eq!(directory.role(&account("eva"), &legal), Some(SpaceRole::Reader));
    spaces.create_group(new_group("lawyers"), vec![]).await.unwrap();
    let directory = spaces.directory().await.unwrap();
    assert_eq!(directory.members(&legal).len(), 2, "a later group of the same name is no member");
    assert!(directory.group_members(&group_name("lawyers")).is_empty());
}

#[tokio::test]
async fn restricted_key_sees_and_does_no_more_than_its_scope() {
    let spaces = spaces();
    let (default, legal, open) = (name("default"), name("legal"), name("open"));
    spaces.create(closed_space("legal"), vec![]).await.unwrap();
    spaces.create(new_space("open", ReadPolicy::Everyone, WritePolicy::Accounts), vec![]).await.unwrap();
    let directory = spaces.directory().await.unwrap();

    let reader = with_key(admin(), None, false);
    assert_eq!(
        directory.readable(&reader),
        [default.clone(), legal.clone(), open.clone()].into_iter().collect()
    );
    for space in [&default, &legal, &open] {
        assert_eq!(directory.may_write(&reader, space), WriteAccess::Forbidden);
        assert_eq!(directory.role(&reader, space), Some(SpaceRole::Reader));
    }
    let in_legal = with_key(admin(), Some(&["legal", "gone"]), true);
    assert_eq!(directory.readable(&in_legal), Scope::of(legal.clone()));
    assert_eq!(
        directory.role(&in_legal, &legal),
        Some(SpaceRole::Writer),
        "a restricted key manages nothing"
    );
    assert_eq!(directory.may_write(&in_legal, &open), WriteAccess::Unknown);
    assert_eq!(directory.resolve(&in_legal, Some(&[legal.clone(), open.clone()])), Err(open.clone()));
    assert!(!directory.may_manage(&in_legal, &legal) && !directory.is_manager_anywhere(&in_legal));
    let of_user = with_key(account("eva"), Some(&["legal"]), true);
    assert_eq!(directory.readable(&of_user), Scope::none(), "its owner may not read the space any more");
    let unrestricted = with_key(admin(), None, true);
    assert!(directory.may_manage(&unrestricted, &legal) && directory.is_manager_anywhere(&unrestricted));
}

#[tokio::test]
async fn space_that_is_being_deleted_exists_only_for_its_former_writers() {
    let spaces = spaces();
    let open = name("open");
    spaces.create(new_space("open", ReadPolicy::Everyone, WritePolicy::Members), vec![]).await.unwrap();
    spaces.put_member(&open, user("eva"), "eva", SpaceRole::Writer, vec![]).await.unwrap();
    let task = TaskId::new();
    spaces.begin_delete(&open, task, vec![]).await.unwrap();
    let directory = spaces.directory().await.unwrap();
    for caller in [Caller::Anonymous, account("bob"), with_key(account("eva"), None, false)] {
        assert!(!directory.may_read(&caller, &open));
        assert_eq!(directory.may_write(&caller, &open), WriteAccess::Unknown);
    }
    for caller in [account("eva"), admin(), with_key(account("eva"), Some(&["open"]), true)] {
        assert!(!directory.may_read(&caller, &open) && !directory.may_manage(&caller, &open));
        assert_eq!(directory.may_write(&caller, &open), WriteAccess::Deleting);
        assert_eq!(directory.resolve(&caller, Some(std::slice::from_ref(&open))), Err(open.clone()));
    }
    assert_eq!(directory.role(&admin(), &open), Some(SpaceRole::Manager), "managers may watch the task");
    assert!(spaces.finish_delete(&open, task, vec![]).await.unwrap());
    let directory = spaces.directory().await.unwrap();
    assert_eq!(directory.may_write(&account("eva"), &open), WriteAccess::Unknown);
}
