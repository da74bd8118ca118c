use std::sync::Arc;

use lkr_domain::TaskId;
use lkr_spaces::{ErrorKind, GroupMember, MemberId, ReadPolicy, SpaceChange, SpaceRole, Spaces, WritePolicy};
use lkr_state::{
    ErrorKind as StateErrorKind, Expect, FailingState, MemoryState, StateStore, StateStoreExt, Write,
};

use crate::support::{closed_space, group_name, kind_of, name, new_group, new_space, spaces};

#[tokio::test]
async fn name_of_a_space_is_never_used_again() {
    let spaces = spaces();
    spaces.create(closed_space("a"), vec![]).await.unwrap();
    assert_eq!(kind_of(spaces.create(closed_space("a"), vec![]).await), ErrorKind::Taken);
    assert_eq!(kind_of(spaces.create(closed_space("default"), vec![]).await), ErrorKind::Taken);
    spaces.delete_empty(&name("a"), vec![]).await.unwrap();
    assert_eq!(kind_of(spaces.create(closed_space("a"), vec![]).await), ErrorKind::Taken);
    assert_eq!(kind_of(spaces.delete_empty(&name("a"), vec![]).await), ErrorKind::NotFound);

    let task = TaskId::new();
    spaces.create(closed_space("b"), vec![]).await.unwrap();
    spaces.begin_delete(&name("b"), task, vec![]).await.unwrap();
    assert_eq!(kind_of(spaces.begin_delete(&name("b"), task, vec![]).await), ErrorKind::NotFound);
    assert_eq!(kind_of(spaces.create(closed_space("b"), vec![]).await), ErrorKind::Taken);
    assert!(!spaces.finish_delete(&name("b"), TaskId::new(), vec![]).await.unwrap(), "another task");
    assert!(spaces.finish_delete(&name("b"), task, vec![]).await.unwrap());
    assert!(!spaces.finish_delete(&name("b"), task, vec![]).await.unwrap(), "a repetition does nothing");
    assert_eq!(kind_of(spaces.create(closed_space("b"), vec![]).await), ErrorKind::Taken);
}

#[tokio::test]
async fn default_space_cannot_be_deleted() {
    let spaces = spaces();
    assert_eq!(kind_of(spaces.delete_empty(&name("default"), vec![]).await), ErrorKind::Conflict);
    let begun = spaces.begin_delete(&name("default"), TaskId::new(), vec![]).await;
    assert_eq!(kind_of(begun), ErrorKind::Conflict);
}

#[tokio::test]
async fn default_space_is_stored_once() {
    let spaces = spaces();
    spaces.ensure_default().await.unwrap();
    let first = spaces.directory().await.unwrap();
    let first = first.space(&name("default")).unwrap();
    assert!(first.created_at.year() > 2000);
    spaces.ensure_default().await.unwrap();
    assert_eq!(spaces.directory().await.unwrap().space(&name("default")).unwrap(), first);
}

#[tokio::test]
async fn contradicting_policies_are_invalid_on_create_and_change() {
    let spaces = spaces();
    let contradicting = new_space("a", ReadPolicy::Members, WritePolicy::Accounts);
    assert_eq!(kind_of(spaces.create(contradicting, vec![]).await), ErrorKind::Invalid);
    let read_members = SpaceChange { read: Some(ReadPolicy::Members), ..SpaceChange::default() };
    assert_eq!(kind_of(spaces.change(&name("default"), read_members, vec![]).await), ErrorKind::Invalid);
    assert_eq!(
        kind_of(spaces.change(&name("nope"), SpaceChange::default(), vec![]).await),
        ErrorKind::NotFound
    );
}

#[tokio::test]
async fn member_must_exist_and_space_must_be_open() {
    let spaces = spaces();
    spaces.create(closed_space("a"), vec![]).await.unwrap();
    let user = || MemberId::User("1".to_owned());
    let unknown = MemberId::Group(lkr_domain::GroupId::new());
    let result = spaces.put_member(&name("a"), unknown, "", SpaceRole::Reader, vec![]).await;
    assert_eq!(kind_of(result), ErrorKind::Invalid);
    let result = spaces.put_member(&name("b"), user(), "eva", SpaceRole::Reader, vec![]).await;
    assert_eq!(kind_of(result), ErrorKind::NotFound);
    assert!(!spaces.remove_member(&name("a"), &user(), vec![]).await.unwrap());
    spaces.put_member(&name("a"), user(), "eva", SpaceRole::Reader, vec![]).await.unwrap();
    assert!(spaces.remove_member(&name("a"), &user(), vec![]).await.unwrap());
    assert_eq!(
        kind_of(
            spaces
                .create_group(new_group("g"), vec![])
                .await
                .and(spaces.create_group(new_group("g"), vec![]).await)
        ),
        ErrorKind::Taken
    );
    let member = GroupMember { account_id: "1".to_owned(), username: "eva".to_owned() };
    let result = spaces.put_group_member(&group_name("h"), member.clone(), vec![]).await;
    assert_eq!(kind_of(result), ErrorKind::NotFound);
    assert!(spaces.put_group_member(&group_name("g"), member.clone(), vec![]).await.unwrap());
    assert!(!spaces.put_group_member(&group_name("g"), member, vec![]).await.unwrap());
    assert!(spaces.remove_group_member(&group_name("g"), "1", vec![]).await.unwrap());
    assert!(!spaces.remove_group_member(&group_name("g"), "1", vec![]).await.unwrap());
}

/// Writes alongside a change are applied with it, and only if it makes a difference.
#[tokio::test]
async fn writes_alongside_are_applied_in_the_step_of_the_change() {
    let state: Arc<dyn StateStore> = Arc::new(MemoryState::default());
    let spaces = Spaces::new(Arc::clone(&state));
    let entry = || vec![Write::increment("entries")];
    spaces.create(closed_space("a"), entry()).await.unwrap();
    spaces.create(closed_space("a"), entry()).await.unwrap_err();
    let title = SpaceChange { title: Some("T".to_owned()), ..SpaceChange::default() };
    spaces.change(&name("a"), title.clone(), entry()).await.unwrap();
    spaces.change(&name("a"), title, entry()).await.unwrap();
    assert_eq!(state.counter("entries").await.unwrap(), 2);
}

#[tokio::test]
async fn adding_a_document_conflicts_with_a_deletion_of_its_space() {
    let state: Arc<dyn StateStore> = Arc::new(MemoryState::default());
    let spaces = Spaces::new(Arc::clone(&state));
    spaces.create(closed_space("a"), vec![]).await.unwrap();
    let add =
        || Spaces::admit(&name("a")).into_iter().chain([Write::put("document", Expect::Any, "1")]).collect();
    state.apply(add()).await.unwrap();
    spaces.begin_delete(&name("a"), TaskId::new(), vec![]).await.unwrap();
    assert_eq!(state.apply(add()).await.unwrap_err().kind(), StateErrorKind::Conflict);
}

#[tokio::test]
async fn empty_space_is_not_deleted_if_a_document_came_after_the_count() {
    let state: Arc<dyn StateStore> = Arc::new(MemoryState::default());
    let spaces = Spaces::new(Arc::clone(&state));
    spaces.create(closed_space("a"), vec![]).await.unwrap();
    for _ in 0..2 {
        let unchanged = spaces.check_no_admission(&name("a")).await.unwrap();
        state.apply(Spaces::admit(&name("a")).into()).await.unwrap();
        let deleted = spaces.delete_empty(&name("a"), vec![unchanged]).await;
        assert_eq!(kind_of(deleted), ErrorKind::Contention);
    }
    let unchanged = spaces.check_no_admission(&name("a")).await.unwrap();
    spaces.delete_empty(&name("a"), vec![unchanged]).await.unwrap();
    assert!(spaces.directory().await.unwrap().space(&name("a")).is_none());
}

#[tokio::test]
async fn store_that_is_away_is_unavailable_and_no_stale_directory_is_returned() {
    let memory: Arc<dyn StateStore> = Arc::new(MemoryState::default());
    let down = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let switch = Arc::clone(&down);
    let state = FailingState::new(Arc::clone(&memory), move |_| {
        switch.load(std::sync::atomic::Ordering::SeqCst).then_some(StateErrorKind::Unavailable)
    });
    let spaces = Spaces::new(Arc::new(state));
    spaces.directory().await.unwrap();
    down.store(true, std::sync::atomic::Ordering::SeqCst);
    let error = spaces.directory().await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Unavailable, true));
}

#[tokio::test]
async fn damaged_record_is_an_error_and_hides_no_rule() {
    let state: Arc<dyn StateStore> = Arc::new(MemoryState::default());
    state.apply(vec![Write::put("spaces/space/a", Expect::Any, "{}")]).await.unwrap();
    assert_eq!(kind_of(Spaces::new(state).directory().await), ErrorKind::Corrupt);
}

#[tokio::test]
async fn deleted_account_leaves_no_membership() {
    let state: Arc<dyn StateStore> = Arc::new(MemoryState::default());
    let spaces = Spaces::new(Arc::clone(&state));
    spaces.create(closed_space("a"), vec![]).await.unwrap();
    spaces.create_group(new_group("g"), vec![]).await.unwrap();
    for id in ["17", "170"] {
        let user = MemberId::User(id.to_owned());
        spaces.put_member(&name("a"), user, "eva", SpaceRole::Reader, vec![]).await.unwrap();
        let member = GroupMember { account_id: id.to_owned(), username: "eva".to_owned() };
        spaces.put_group_member(&group_name("g"), member, vec![]).await.unwrap();
    }
    spaces.forget_account("17").await.unwrap();
    let records = state.scan("spaces/", None, lkr_state::ScanOrder::Ascending, 100).await.unwrap();
    let memberships: Vec<&str> =
        records.iter().map(|(key, _)| key.rsplit([':', '/']).next().unwrap()).collect();
    assert_eq!(memberships.iter().filter(|id| **id == "17").count(), 0, "{records:?}");
    assert_eq!(
        memberships.iter().filter(|id| **id == "170").count(),
        2,
        "another account keeps its memberships"
    );
}
