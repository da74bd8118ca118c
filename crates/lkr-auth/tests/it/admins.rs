//! Nobody is locked out of administration, whatever happens at once.

use lkr_auth::{AccountChange, Actor, Auth, AuthOptions, ErrorKind, NewAccount, Result, Role};
use proptest::prelude::*;

use crate::support::{
    OPERATOR, OTHER, PASSWORD, add, auth_over, by, disabled, enabled_admins, kind, mixing, options, role,
};

/// So many slots that calls at once are mixed in the store and not in front of the hashes.
fn roomy() -> AuthOptions {
    AuthOptions { hashes_at_once: 8, ..options() }
}

/// Takes an admin away, in one of the ways there are.
async fn take_away(auth: &Auth, how: usize, target: &str, by: Actor<'_>) -> Result<()> {
    match how % 3 {
        0 => auth.change_account(target, role(Role::User), by).await.map(drop),
        1 => auth.change_account(target, disabled(true), by).await.map(drop),
        _ => auth.delete_account(target, by).await,
    }
}

async fn mixed(seed: usize, admins: &[&str]) -> Auth {
    let (auth, _) = auth_over(mixing(seed as u64), &roomy()).await;
    for name in admins {
        add(&auth, name, Role::Admin).await;
    }
    auth
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lesson_23_of_two_admins_who_take_each_other_away_one_is_left() {
    for round in 0..150 {
        let auth = mixed(round, &["ada"]).await;
        let (mine, other) = (auth.clone(), auth.clone());
        let one = tokio::spawn(async move { take_away(&mine, round, "ada", by("admin")).await });
        let two = tokio::spawn(async move { take_away(&other, round / 3, "admin", by("ada")).await });
        let (one, two) = (one.await.unwrap(), two.await.unwrap());
        assert_ne!(one.is_ok(), two.is_ok(), "{round}: {one:?} {two:?}");
        assert_eq!(kind(if one.is_ok() { two } else { one }), ErrorKind::Forbidden);
        assert_eq!(enabled_admins(&auth).await, 1, "{round}");
    }
}

/// Here nothing but the count of the admins refuses: each acts for somebody who is no account.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lesson_23_operators_cannot_take_the_last_admin_away() {
    for round in 0..150 {
        let auth = mixed(round, &["ada", "bob"]).await;
        let taking = ["admin", "ada", "bob"].into_iter().enumerate().map(|(n, name)| {
            let auth = auth.clone();
            tokio::spawn(async move { take_away(&auth, round / 3 + n, name, OPERATOR).await })
        });
        let mut refused = 0;
        for task in taking.collect::<Vec<_>>() {
            if let Err(error) = task.await.unwrap() {
                assert_eq!(error.kind(), ErrorKind::Forbidden, "{error}");
                refused += 1;
            }
        }
        assert_eq!((refused, enabled_admins(&auth).await), (1, 1), "{round}");
    }
}

/// There are admins enough: what refuses the loser is that it is none any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lesson_21_who_was_taken_away_takes_nobody_along() {
    for round in 0..150 {
        let auth = mixed(round, &["ada", "bob"]).await;
        let (mine, other) = (auth.clone(), auth.clone());
        let one = tokio::spawn(async move { take_away(&mine, round % 2, "ada", by("bob")).await });
        let two = tokio::spawn(async move { take_away(&other, round / 2 % 2, "bob", by("ada")).await });
        let (one, two) = (one.await.unwrap(), two.await.unwrap());
        assert_ne!(one.is_ok(), two.is_ok(), "{round}: {one:?} {two:?}");
        assert_eq!(kind(if one.is_ok() { two } else { one }), ErrorKind::Forbidden);
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

/// Does the calls of each group at once, and one group after the other.
async fn run(seed: u64, groups: Vec<Vec<(Call, usize)>>) -> std::result::Result<(), TestCaseError> {
    let (auth, _) = auth_over(mixing(seed), &roomy()).await;
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
    fn lesson_23_an_enabled_admin_is_always_left(
        seed in any::<u64>(),
        groups in prop::collection::vec(prop::collection::vec(any_call(), 1..4), 1..12),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(run(seed, groups))?;
    }
}
