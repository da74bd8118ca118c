//! What comes between the look at an account and the step that changes it.

use std::sync::Arc;

use lkr_auth::{AuditAction, Auth, AuthOptions, ErrorKind, NewAccount, Role};
use lkr_state::{MemoryState, StateStore};

use crate::support::{
    OPERATOR, OTHER, Overtaken, PASSWORD, actions, add, attempt, auth_over, by, disabled, everything, kind,
    options, role,
};

const NEW: NewAccount<'static> =
    NewAccount { username: "eve", password: PASSWORD, role: Role::Admin, must_change_password: false };

/// The admins `admin` and `ada` and the user `bob`: somebody, and somebody else who comes first.
async fn two() -> (Auth, Overtaken, Auth, Arc<dyn StateStore>) {
    let state: Arc<dyn StateStore> = Arc::new(MemoryState::default());
    let (first, _) = auth_over(Arc::clone(&state), &options()).await;
    add(&first, "ada", Role::Admin).await;
    add(&first, "bob", Role::User).await;
    let overtaken = Overtaken::default();
    let auth = Auth::new(overtaken.store(Arc::clone(&state)), &options()).unwrap();
    (auth, overtaken, first, state)
}

/// What an admin who loses the right in the last moment tries.
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
async fn lesson_21_a_right_that_is_lost_in_the_last_moment_is_lost() {
    for n in 0..7 {
        for how in 0..4 {
            let (auth, overtaken, first, state) = two().await;
            overtaken.by(async move {
                match how {
                    0 => drop(first.change_account("ada", role(Role::User), by("admin")).await.unwrap()),
                    1 => drop(first.change_account("ada", disabled(true), by("admin")).await.unwrap()),
                    2 => first.delete_account("ada", by("admin")).await.unwrap(),
                    _ => {
                        first.delete_account("ada", by("admin")).await.unwrap();
                        add(&first, "ada", Role::Admin).await;
                    }
                }
            });
            assert_eq!(try_all(&auth, n).await, Some(ErrorKind::Forbidden), "{n} {how}");
            let bob = auth.account("bob").await.unwrap().unwrap();
            assert!(bob.role == Role::User && !bob.disabled && !bob.must_change_password);
            // In quotation marks, which no hash of a password holds: three letters of one may come by chance.
            let of_eve = |(key, value): &(String, String)| key.contains("eve") || value.contains("\"eve\"");
            assert!(!everything(&*state).await.iter().any(of_eve));
        }
    }
}

#[tokio::test]
async fn a_change_that_another_overtakes_is_made_of_what_is_there_then() {
    let (auth, overtaken, first, _) = two().await;
    overtaken.by(async move {
        first.change_account("bob", role(Role::Admin), by("admin")).await.unwrap();
    });
    let bob = auth.change_account("bob", disabled(true), by("ada")).await.unwrap();
    assert_eq!((bob.role, bob.disabled), (Role::Admin, true));
    assert_eq!(auth.account("bob").await.unwrap().unwrap(), bob);
    assert_eq!(actions(&auth).await[..2], [AuditAction::AccountChange; 2]);
}

#[tokio::test]
async fn a_name_that_is_taken_in_the_last_moment_is_taken() {
    let (auth, overtaken, first, _) = two().await;
    overtaken.by(async move { drop(add(&first, "EVE", Role::User).await) });
    assert_eq!(kind(auth.create_account(NEW, by("ada")).await), ErrorKind::Taken);
    assert_eq!(auth.account("eve").await.unwrap().unwrap().role, Role::User);
}

#[tokio::test]
async fn lesson_24_no_key_is_made_past_a_reset() {
    for (delete, refused) in [(false, ErrorKind::Forbidden), (true, ErrorKind::NotFound)] {
        let (auth, overtaken, first, state) = two().await;
        overtaken.by(async move {
            if delete {
                first.delete_account("bob", by("admin")).await.unwrap();
            } else {
                first.reset_password("bob", OTHER, by("admin")).await.unwrap();
            }
        });
        assert_eq!(kind(auth.create_key("bob", "key", None, by("bob")).await), refused);
        assert!(everything(&*state).await.iter().all(|(key, _)| !key.contains("key/")));
    }
}

/// The other way round: the key is there a moment before the step that ends all keys.
#[tokio::test]
async fn lesson_24_a_reset_ends_the_key_that_was_made_in_the_last_moment() {
    for delete in [false, true] {
        let (auth, overtaken, first, state) = two().await;
        let (tell, told) = tokio::sync::oneshot::channel();
        overtaken.by(async move {
            let made = first.create_key("bob", "key", None, by("bob")).await.unwrap();
            tell.send(made).unwrap();
        });
        if delete {
            auth.delete_account("bob", by("ada")).await.unwrap();
        } else {
            auth.reset_password("bob", OTHER, by("ada")).await.unwrap();
        }
        let made = told.await.unwrap();
        assert_eq!(kind(auth.authenticate(&made.secret).await), ErrorKind::Unauthenticated);
        assert!(everything(&*state).await.iter().all(|(key, _)| !key.contains("key/")), "no record is left");
    }
}

#[tokio::test]
async fn another_password_is_not_overwritten() {
    let (auth, overtaken, first, _) = two().await;
    overtaken.by(async move { drop(first.reset_password("bob", OTHER, by("admin")).await.unwrap()) });
    let changed = auth.change_password("bob", PASSWORD, "a third password", by("bob")).await;
    assert_eq!(kind(changed), ErrorKind::Conflict);
    assert!(auth.account("bob").await.unwrap().unwrap().must_change_password);
    assert!(auth.login(attempt("bob", OTHER)).await.is_ok());
}

#[tokio::test]
async fn lesson_24_a_session_that_begins_while_the_account_is_shut_is_none() {
    let (auth, overtaken, first, _) = two().await;
    let second = first.clone();
    overtaken
        .by(async move { drop(first.change_account("bob", disabled(true), by("admin")).await.unwrap()) });
    let session = auth.login(attempt("bob", PASSWORD)).await.unwrap();
    assert_eq!(kind(auth.authenticate(&session.token).await), ErrorKind::Unauthenticated);
    second.change_account("bob", disabled(false), by("admin")).await.unwrap();
    assert_eq!(kind(auth.authenticate(&session.token).await), ErrorKind::Unauthenticated);
}

/// While all slots are taken, only what needs none is answered.
#[tokio::test]
async fn what_is_refused_anyway_is_refused_before_a_password_is_hashed() {
    let state: Arc<dyn StateStore> = Arc::new(MemoryState::default());
    let full = AuthOptions { hashes_at_once: 1, hashes_waiting: 0, ..options() };
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
    let refused = (kind(registered), kind(created), kind(reset));
    assert_eq!(refused, (ErrorKind::Taken, ErrorKind::Taken, ErrorKind::NotFound));
}
