//! Another change between the read of an account and the step that changes it.

use std::sync::Arc;

use lkr_auth::{AuditAction, Auth, AuthOptions, ErrorKind, NewAccount, Role};
use lkr_state::{Expect, MemoryState, StateStore, StateStoreExt, Write};

use crate::support::{
    OPERATOR, OTHER, PASSWORD, RaceInjector, actions, add, all_records, attempt, auth_over, by, disabled,
    kind_of, login, options, role,
};

const NEW: NewAccount<'static> =
    NewAccount { username: "eve", password: PASSWORD, role: Role::Admin, must_change_password: false };

/// The admins `admin` and `ada` and the user `bob`: the `Auth` under test, and a rival on the same store.
async fn with_rival() -> (Auth, RaceInjector, Auth, Arc<dyn StateStore>) {
    let state: Arc<dyn StateStore> = Arc::new(MemoryState::default());
    let (rival, _) = auth_over(Arc::clone(&state), &options()).await;
    add(&rival, "ada", Role::Admin).await;
    add(&rival, "bob", Role::User).await;
    let races = RaceInjector::default();
    let auth = Auth::new(races.store(Arc::clone(&state)), &options()).unwrap();
    (auth, races, rival, state)
}

/// The calls of an admin who loses the role right before the step.
async fn try_all(auth: &Auth, n: usize) -> Option<ErrorKind> {
    let by = by("ada");
    let error = match n {
        0 => auth.create_account(NEW, by).await.err(),
        1 => auth.reset_password("bob", OTHER, by).await.err(),
        2 => auth.change_account("bob", role(Role::Admin), by).await.err(),
        3 => auth.change_account("bob", disabled(true), by).await.err(),
        4 => auth.delete_account("bob", by).await.err(),
        5 => auth.change_account("admin", role(Role::User), by).await.err(),
        _ => auth.reset_password("ada", OTHER, by).await.err(),
    };
    error.map(|error| error.kind())
}

#[tokio::test]
async fn lesson_21_admin_role_lost_before_the_step_forbids_the_change() {
    for n in 0..7 {
        for how in 0..4 {
            let (auth, races, rival, state) = with_rival().await;
            races.before_next_step(async move {
                match how {
                    0 => drop(rival.change_account("ada", role(Role::User), by("admin")).await.unwrap()),
                    1 => drop(rival.change_account("ada", disabled(true), by("admin")).await.unwrap()),
                    2 => rival.delete_account("ada", by("admin")).await.unwrap(),
                    _ => {
                        rival.delete_account("ada", by("admin")).await.unwrap();
                        add(&rival, "ada", Role::Admin).await;
                    }
                }
            });
            assert_eq!(try_all(&auth, n).await, Some(ErrorKind::Forbidden), "{n} {how}");
            let bob = auth.account("bob").await.unwrap().unwrap();
            assert!(bob.role == Role::User && !bob.disabled && !bob.must_change_password);
            // With quotation marks, because a password hash may contain the three letters by chance.
            let of_eve = |(key, value): &(String, String)| key.contains("eve") || value.contains("\"eve\"");
            assert!(!all_records(&*state).await.iter().any(of_eve));
        }
    }
}

#[tokio::test]
async fn change_after_a_conflict_applies_to_the_new_state() {
    let (auth, races, rival, _) = with_rival().await;
    races.before_next_step(async move {
        rival.change_account("bob", role(Role::Admin), by("admin")).await.unwrap();
    });
    let bob = auth.change_account("bob", disabled(true), by("ada")).await.unwrap();
    assert_eq!((bob.role, bob.disabled), (Role::Admin, true));
    assert_eq!(auth.account("bob").await.unwrap().unwrap(), bob);
    assert_eq!(actions(&auth).await[..2], [AuditAction::AccountChange; 2]);
}

#[tokio::test]
async fn name_taken_before_the_step_is_refused() {
    let (auth, races, rival, _) = with_rival().await;
    races.before_next_step(async move { drop(add(&rival, "EVE", Role::User).await) });
    assert_eq!(kind_of(auth.create_account(NEW, by("ada")).await), ErrorKind::Taken);
    assert_eq!(auth.account("eve").await.unwrap().unwrap().role, Role::User);
}

#[tokio::test]
async fn lesson_24_key_creation_after_a_reset_is_refused() {
    for (delete, refused) in [(false, ErrorKind::Forbidden), (true, ErrorKind::NotFound)] {
        let (auth, races, rival, state) = with_rival().await;
        races.before_next_step(async move {
            if delete {
                rival.delete_account("bob", by("admin")).await.unwrap();
            } else {
                rival.reset_password("bob", OTHER, by("admin")).await.unwrap();
            }
        });
        assert_eq!(kind_of(auth.create_key("bob", "key", None, by("bob")).await), refused);
        assert!(all_records(&*state).await.iter().all(|(key, _)| !key.contains("key/")));
    }
}

/// The reverse: the key is created right before the step that ends all keys.
#[tokio::test]
async fn lesson_24_reset_ends_a_key_created_before_its_step() {
    for delete in [false, true] {
        let (auth, races, rival, state) = with_rival().await;
        let (sender, receiver) = tokio::sync::oneshot::channel();
        races.before_next_step(async move {
            let made = rival.create_key("bob", "key", None, by("bob")).await.unwrap();
            sender.send(made).unwrap();
        });
        if delete {
            auth.delete_account("bob", by("ada")).await.unwrap();
        } else {
            auth.reset_password("bob", OTHER, by("ada")).await.unwrap();
        }
        let made = receiver.await.unwrap();
        assert_eq!(kind_of(auth.authenticate(&made.secret).await), ErrorKind::Unauthenticated);
        assert!(all_records(&*state).await.iter().all(|(key, _)| !key.contains("key/")), "no record is left");
    }
}

#[tokio::test]
async fn password_changed_before_the_step_is_not_overwritten() {
    let (auth, races, rival, _) = with_rival().await;
    races.before_next_step(
        async move { drop(rival.reset_password("bob", OTHER, by("admin")).await.unwrap()) },
    );
    let changed = auth.change_password("bob", PASSWORD, "a third password", by("bob")).await;
    assert_eq!(kind_of(changed), ErrorKind::Conflict);
    assert!(auth.account("bob").await.unwrap().unwrap().must_change_password);
    assert!(auth.login(attempt("bob", OTHER)).await.is_ok());
}

#[tokio::test]
async fn lesson_24_session_started_while_the_account_is_disabled_is_invalid() {
    let (auth, races, rival, _) = with_rival().await;
    let second = rival.clone();
    races.before_next_step(async move {
        drop(rival.change_account("bob", disabled(true), by("admin")).await.unwrap());
    });
    let session = auth.login(attempt("bob", PASSWORD)).await.unwrap();
    assert_eq!(kind_of(auth.authenticate(&session.token).await), ErrorKind::Unauthenticated);
    second.change_account("bob", disabled(false), by("admin")).await.unwrap();
    assert_eq!(kind_of(auth.authenticate(&session.token).await), ErrorKind::Unauthenticated);
}

/// All hash slots are taken, so only refusals without a hash get an answer.
#[tokio::test]
async fn invalid_requests_are_refused_before_a_password_is_hashed() {
    let state: Arc<dyn StateStore> = Arc::new(MemoryState::default());
    let full = AuthOptions { max_concurrent_hashes: 1, max_waiting_hashes: 0, ..options() };
    let (auth, _) = auth_over(state, &full).await;
    let taken = NewAccount { username: "Admin", ..NEW };
    let (made, registered, created, reset) = tokio::join!(
        biased;
        auth.register(attempt("slow", PASSWORD)),
        auth.register(attempt("admin", PASSWORD)),
        auth.create_account(taken, OPERATOR),
        auth.reset_password("nobody", OTHER, OPERATOR)
    );
    assert!(made.is_ok());
    let refused = (kind_of(registered), kind_of(created), kind_of(reset));
    assert_eq!(refused, (ErrorKind::Taken, ErrorKind::Taken, ErrorKind::NotFound));
}

/// As when the shared store returns: the session that was written meanwhile gets the version of that store.
#[tokio::test]
async fn logout_ends_a_session_whose_record_got_another_version() {
    let (auth, races, _, state) = with_rival().await;
    let token = login(&auth, "bob", PASSWORD).await.unwrap().token;
    races.before_next_step(async move {
        let records = all_records(&*state).await;
        let (key, value) = records.into_iter().find(|(key, _)| key.starts_with("auth/session/")).unwrap();
        let before = state.get(&key).await.unwrap().unwrap().version;
        state.apply(vec![Write::put(key.clone(), Expect::Any, value)]).await.unwrap();
        assert_ne!(state.get(&key).await.unwrap().unwrap().version, before);
    });
    assert!(auth.logout(&token).await.unwrap());
    assert_eq!(kind_of(auth.authenticate(&token).await), ErrorKind::Unauthenticated);
}
