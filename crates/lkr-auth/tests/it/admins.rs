//! An enabled admin always remains, whatever changes run concurrently.

use lkr_auth::{AccountChange, Actor, Auth, AuthOptions, ErrorKind, NewAccount, Result, Role};
use proptest::prelude::*;

use crate::support::{
    OPERATOR, OTHER, PASSWORD, add, auth_over, by, disabled, enabled_admins, interleaving_state, kind_of,
    options, role,
};

/// Many hash slots, so that concurrent calls interleave in the store and do not queue for a hash.
fn many_hash_slots() -> AuthOptions {
    AuthOptions { max_concurrent_hashes: 8, ..options() }
}

/// Removes an admin by demoting, disabling or deleting it.
async fn remove_admin(auth: &Auth, how: usize, target: &str, by: Actor<'_>) -> Result<()> {
    match how % 3 {
        0 => auth.change_account(target, role(Role::User), by).await.map(drop),
        1 => auth.change_account(target, disabled(true), by).await.map(drop),
        _ => auth.delete_account(target, by).await,
    }
}

async fn interleaved(seed: usize, admins: &[&str]) -> Auth {
    let (auth, _) = auth_over(interleaving_state(seed as u64), &many_hash_slots()).await;
    for name in admins {
        add(&auth, name, Role::Admin).await;
    }
    auth
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lesson_23_two_admins_removing_each_other_leave_one() {
    for round in 0..150 {
        let auth = interleaved(round, &["ada"]).await;
        let (mine, other) = (auth.clone(), auth.clone());
        let one = tokio::spawn(async move { remove_admin(&mine, round, "ada", by("admin")).await });
        let two = tokio::spawn(async move { remove_admin(&other, round / 3, "admin", by("ada")).await });
        let (one, two) = (one.await.unwrap(), two.await.unwrap());
        assert_ne!(one.is_ok(), two.is_ok(), "{round}: {one:?} {two:?}");
        assert_eq!(kind_of(if one.is_ok() { two } else { one }), ErrorKind::Forbidden);
        assert_eq!(enabled_admins(&auth).await, 1, "{round}");
    }
}

/// Only the check of the last admin can refuse here, because the actors are not accounts.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lesson_23_operators_cannot_remove_the_last_admin() {
    for round in 0..150 {
        let auth = interleaved(round, &["ada", "bob"]).await;
        let removals = ["admin", "ada", "bob"].into_iter().enumerate().map(|(n, name)| {
            let auth = auth.clone();
            tokio::spawn(async move { remove_admin(&auth, round / 3 + n, name, OPERATOR).await })
        });
        let mut refused = 0;
        for task in removals.collect::<Vec<_>>() {
            if let Err(error) = task.await.unwrap() {
                assert_eq!(error.kind(), ErrorKind::Forbidden, "{error}");
                refused += 1;
            }
        }
        assert_eq!((refused, enabled_admins(&auth).await), (1, 1), "{round}");
    }
}

/// Enough admins remain: the loser is refused because it is no longer an admin.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lesson_21_removed_admin_cannot_remove_others() {
    for round in 0..150 {
        let auth = interleaved(round, &["ada", "bob"]).await;
        let (mine, other) = (auth.clone(), auth.clone());
        let one = tokio::spawn(async move { remove_admin(&mine, round % 2, "ada", by("bob")).await });
        let two = tokio::spawn(async move { remove_admin(&other, round / 2 % 2, "bob", by("ada")).await });
        let (one, two) = (one.await.unwrap(), two.await.unwrap());
        assert_ne!(one.is_ok(), two.is_ok(), "{round}: {one:?} {two:?}");
        assert_eq!(kind_of(if one.is_ok() { two } else { one }), ErrorKind::Forbidden);
        assert_eq!(enabled_admins(&auth).await, 2, "{round}");
    }
}

#[derive(Debug, Clone, Copy)]
enum Call {
    Create(usize, Role),
    Change(usize, Option<Role>, Option<bool>),
    Reset(usize),
    Delete(usize),
}

const NAMES: [&str; 4] = ["admin", "ada", "bob", "carl"];
const ACTORS: [&str; 5] = ["admin", "ada", "bob", "carl", "operator"];

async fn call(auth: Auth, call: Call, actor: usize) -> Result<()> {
    let by = by(ACTORS[actor]);
    match call {
        Call::Create(name, role) => {
            let new =
                NewAccount { username: NAMES[name], password: PASSWORD, role, must_change_password: false };
            auth.create_account(new, by).await.map(drop)
        }
        Call::Change(name, role, disabled) => {
            auth.change_account(NAMES[name], AccountChange { role, disabled }, by).await.map(drop)
        }
        Call::Reset(name) => auth.reset_password(NAMES[name], OTHER, by).await.map(drop),
        Call::Delete(name) => auth.delete_account(NAMES[name], by).await,
    }
}

fn any_role() -> impl Strategy<Value = Role> {
    prop_oneof![Just(Role::Admin), Just(Role::User)]
}

fn any_call() -> impl Strategy<Value = (Call, usize)> {
    let name = 0..NAMES.len();
    let change = (name.clone(), proptest::option::of(any_role()), proptest::option::of(any::<bool>()));
    let call = prop_oneof![
        1 => (name.clone(), any_role()).prop_map(|(name, role)| Call::Create(name, role)),
        4 => change.prop_map(|(name, role, disabled)| Call::Change(name, role, disabled)),
        1 => name.clone().prop_map(Call::Reset),
        2 => name.prop_map(Call::Delete),
    ];
    (call, 0..ACTORS.len())
}

/// Runs the calls of each group concurrently, and the groups one after another.
async fn run(seed: u64, groups: Vec<Vec<(Call, usize)>>) -> std::result::Result<(), TestCaseError> {
    let (auth, _) = auth_over(interleaving_state(seed), &many_hash_slots()).await;
    add(&auth, "ada", Role::Admin).await;
    add(&auth, "bob", Role::Admin).await;
    for group in groups {
        let tasks: Vec<_> =
            group.iter().map(|&(what, actor)| tokio::spawn(call(auth.clone(), what, actor))).collect();
        for task in tasks {
            if let Err(error) = task.await.unwrap() {
                let expected =
                    matches!(error.kind(), ErrorKind::Forbidden | ErrorKind::NotFound | ErrorKind::Taken);
                prop_assert!(expected, "{error}");
            }
        }
        prop_assert!(enabled_admins(&auth).await > 0, "{group:?}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lesson_23_random_changes_always_leave_an_enabled_admin(
        seed in any::<u64>(),
        groups in prop::collection::vec(prop::collection::vec(any_call(), 1..4), 1..12),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(run(seed, groups))?;
    }
}
