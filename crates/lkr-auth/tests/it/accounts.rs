//! Registration and account management.

use std::sync::Arc;

use lkr_auth::{AccountChange, AuditAction, Auth, AuthOptions, ErrorKind, NewAccount, Role, ThrottleOptions};
use lkr_state::{MemoryState, StateStore};

use crate::support::{
    OPERATOR, OTHER, PASSWORD, actions, add, all_records, attempt, auth_over, auth_with_admin, by, disabled,
    entries, interleaving_state, kind_of, login, options, role,
};

#[tokio::test]
async fn register_creates_a_user_and_a_session() {
    let (auth, _) = auth_with_admin().await;
    let session = auth.register(attempt("Ada.L", PASSWORD)).await.unwrap();
    let account = &session.account;
    assert_eq!((account.username.as_str(), account.role), ("Ada.L", Role::User));
    assert!(!account.must_change_password && !account.disabled && !account.id.is_empty());
    assert_eq!(auth.authenticate(&session.token).await.unwrap().account, *account);
    let entry = entries(&auth).await.remove(0);
    assert_eq!(
        (entry.actor.as_str(), entry.target.as_str(), entry.action),
        ("Ada.L", "Ada.L", AuditAction::AccountCreate)
    );
    assert_eq!(entry.request_id, "r-3");
    assert_eq!(kind_of(auth.register(attempt("ada.l", OTHER)).await), ErrorKind::Taken);
    assert_eq!(kind_of(auth.register(attempt("a", PASSWORD)).await), ErrorKind::Invalid);
    assert_eq!(kind_of(auth.register(attempt("bob", "short")).await), ErrorKind::Invalid);
}

#[tokio::test]
async fn concurrent_creation_of_a_name_creates_one_account() {
    for seed in 0..20 {
        let (auth, _) = auth_over(interleaving_state(seed), &options()).await;
        let (one, two) =
            tokio::join!(auth.register(attempt("ada", PASSWORD)), auth.register(attempt("ADA", OTHER)));
        let (won, lost) = if one.is_ok() { (one, two) } else { (two, one) };
        assert_eq!(kind_of(lost), ErrorKind::Taken);
        assert!(auth.authenticate(&won.unwrap().token).await.is_ok());
        let new =
            |password| NewAccount { username: "bob", password, role: Role::User, must_change_password: true };
        let (one, two) = tokio::join!(
            auth.create_account(new(PASSWORD), OPERATOR),
            auth.create_account(new(OTHER), by("admin"))
        );
        assert_ne!(one.is_ok(), two.is_ok());
        assert_eq!(kind_of(if one.is_ok() { two } else { one }), ErrorKind::Taken);
        assert_eq!(actions(&auth).await, [AuditAction::AccountCreate; 3], "the first admin, ada and bob");
    }
}

#[tokio::test]
async fn create_account_with_role_and_flag_is_audited() {
    let (auth, _) = auth_with_admin().await;
    let new =
        NewAccount { username: "Bob", password: PASSWORD, role: Role::Admin, must_change_password: true };
    let account = auth.create_account(new, by("admin")).await.unwrap();
    assert_eq!((account.role, account.must_change_password), (Role::Admin, true));
    assert_eq!(login(&auth, "bob", PASSWORD).await.unwrap().account, account);
    assert_eq!(kind_of(auth.create_account(new, by("admin")).await), ErrorKind::Taken);
    assert_eq!(
        kind_of(auth.create_account(NewAccount { username: "b b", ..new }, OPERATOR).await),
        ErrorKind::Invalid
    );
    assert_eq!(
        kind_of(auth.create_account(NewAccount { password: "short", ..new }, OPERATOR).await),
        ErrorKind::Invalid
    );
    let entry = entries(&auth).await.remove(0);
    assert_eq!((entry.actor.as_str(), entry.target.as_str()), ("admin", "Bob"));
    assert_eq!(
        serde_json::Value::from(entry.detail),
        serde_json::json!({"role": "admin", "must_change_password": true})
    );
    assert!(!format!("{new:?}").contains(PASSWORD));
}

#[tokio::test]
async fn lesson_21_only_enabled_admins_manage_accounts() {
    let (auth, state) = auth_with_admin().await;
    add(&auth, "user", Role::User).await;
    add(&auth, "other", Role::User).await;
    add(&auth, "former", Role::Admin).await;
    auth.change_account("former", disabled(true), by("admin")).await.unwrap();
    let before = all_records(&*state).await;
    for actor in ["user", "USER", "former"] {
        let by = by(actor);
        let new =
            NewAccount { username: "bob", password: PASSWORD, role: Role::User, must_change_password: true };
        assert_eq!(kind_of(auth.create_account(new, by).await), ErrorKind::Forbidden, "{actor}");
        assert_eq!(kind_of(auth.change_account("other", role(Role::Admin), by).await), ErrorKind::Forbidden);
        assert_eq!(kind_of(auth.change_account("user", role(Role::Admin), by).await), ErrorKind::Forbidden);
        assert_eq!(kind_of(auth.change_account("former", disabled(false), by).await), ErrorKind::Forbidden);
        assert_eq!(kind_of(auth.reset_password("other", OTHER, by).await), ErrorKind::Forbidden);
        assert_eq!(kind_of(auth.delete_account("other", by).await), ErrorKind::Forbidden);
        assert_eq!(
            kind_of(auth.delete_account("nobody", by).await),
            ErrorKind::Forbidden,
            "existing names are not revealed"
        );
    }
    assert_eq!(all_records(&*state).await, before);
}

#[tokio::test]
async fn admin_cannot_lock_itself_out() {
    let (auth, state) = auth_with_admin().await;
    add(&auth, "Ada", Role::Admin).await;
    let before = all_records(&*state).await;
    for actor in ["ada", "ADA"] {
        assert_eq!(kind_of(auth.delete_account("Ada", by(actor)).await), ErrorKind::Forbidden);
        assert_eq!(
            kind_of(auth.change_account("aDa", disabled(true), by(actor)).await),
            ErrorKind::Forbidden
        );
        assert_eq!(
            kind_of(auth.change_account("ada", role(Role::User), by(actor)).await),
            ErrorKind::Forbidden
        );
    }
    assert!(auth.change_account("ada", role(Role::Admin), by("ada")).await.is_ok(), "no change is allowed");
    assert_eq!(all_records(&*state).await, before);
    assert!(auth.reset_password("ada", OTHER, by("ada")).await.unwrap().must_change_password);
}

#[tokio::test]
async fn unknown_names_are_not_found() {
    let (auth, _) = auth_with_admin().await;
    let long = "x".repeat(1000);
    for name in ["nobody", "", "a b", "../admin", &long] {
        assert_eq!(
            kind_of(auth.change_account(name, disabled(true), OPERATOR).await),
            ErrorKind::NotFound,
            "{name}"
        );
        assert_eq!(kind_of(auth.reset_password(name, OTHER, OPERATOR).await), ErrorKind::NotFound);
        assert_eq!(kind_of(auth.delete_account(name, OPERATOR).await), ErrorKind::NotFound);
        assert_eq!(kind_of(auth.keys(name, None, 10).await), ErrorKind::NotFound);
        assert_eq!(kind_of(auth.create_key(name, "key", None, OPERATOR).await), ErrorKind::NotFound);
        assert!(auth.account(name).await.unwrap().is_none());
    }
    assert_eq!(kind_of(auth.reset_password("nobody", "short", OPERATOR).await), ErrorKind::Invalid);
    assert!(
        auth.change_account("admin", AccountChange::default(), by(&long)).await.is_ok(),
        "an actor's name may be any text"
    );
}

#[tokio::test]
async fn accounts_are_paged_by_name() {
    let (auth, _) = auth_with_admin().await;
    for name in ["Zoe", "bob", "Carl", "dora"] {
        add(&auth, name, Role::User).await;
    }
    let (mut names, mut after) = (vec![], None);
    loop {
        let page = auth.accounts(after.as_deref(), 2).await.unwrap();
        assert!(page.items.len() == 2 || page.next.is_none(), "every page but the last is full");
        names.extend(page.items.into_iter().map(|account| account.username));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(names, ["admin", "bob", "Carl", "dora", "Zoe"]);
    assert_eq!(auth.accounts(None, 5).await.unwrap().next, None, "there is no further page");
    assert_eq!(auth.accounts(None, 2).await.unwrap().next.as_deref(), Some("bob"));
    assert_eq!(auth.accounts(Some("BOB"), 1).await.unwrap().items[0].username, "Carl");
}

#[tokio::test]
async fn lesson_24_disabling_ends_sessions_for_good_and_suspends_keys() {
    let (auth, _) = auth_with_admin().await;
    add(&auth, "bob", Role::User).await;
    let session = login(&auth, "bob", PASSWORD).await.unwrap();
    let key = auth.create_key("bob", "key", None, by("bob")).await.unwrap();
    assert!(auth.change_account("Bob", disabled(true), by("admin")).await.unwrap().disabled);
    for credential in [&session.token, &key.secret] {
        assert_eq!(kind_of(auth.authenticate(credential).await), ErrorKind::Unauthenticated);
    }
    assert_eq!(kind_of(auth.create_key("bob", "key", None, by("bob")).await), ErrorKind::Forbidden);
    assert!(!auth.change_account("bob", disabled(false), by("admin")).await.unwrap().disabled);
    assert_eq!(
        kind_of(auth.authenticate(&session.token).await),
        ErrorKind::Unauthenticated,
        "sessions end for good"
    );
    assert!(auth.authenticate(&key.secret).await.is_ok(), "keys are valid again");
    assert!(login(&auth, "bob", PASSWORD).await.is_ok());
}

#[tokio::test]
async fn role_change_takes_effect_at_once_and_keeps_sessions() {
    let (auth, _) = auth_with_admin().await;
    add(&auth, "bob", Role::User).await;
    let session = login(&auth, "bob", PASSWORD).await.unwrap();
    auth.change_account("bob", role(Role::Admin), by("admin")).await.unwrap();
    assert_eq!(auth.authenticate(&session.token).await.unwrap().account.role, Role::Admin);
    let change = AccountChange { role: Some(Role::User), disabled: Some(true) };
    auth.change_account("bob", change, by("admin")).await.unwrap();
    let entry = entries(&auth).await.remove(0);
    assert_eq!(serde_json::Value::from(entry.detail), serde_json::json!({"role": "user", "disabled": true}));
}

#[tokio::test]
async fn change_without_difference_writes_nothing() {
    let (auth, state) = auth_with_admin().await;
    add(&auth, "bob", Role::User).await;
    let before = all_records(&*state).await;
    for change in [AccountChange::default(), role(Role::User), disabled(false)] {
        assert_eq!(auth.change_account("bob", change, by("admin")).await.unwrap().username, "bob");
    }
    assert_eq!(all_records(&*state).await, before);
}

#[tokio::test]
async fn lesson_24_password_reset_ends_sessions_and_keys_at_once() {
    let (auth, state) = auth_with_admin().await;
    add(&auth, "bob", Role::User).await;
    let session = login(&auth, "bob", PASSWORD).await.unwrap();
    let key = auth.create_key("bob", "key", None, by("bob")).await.unwrap();
    let account = auth.reset_password("Bob", OTHER, by("admin")).await.unwrap();
    assert!(account.must_change_password);
    for credential in [&session.token, &key.secret] {
        assert_eq!(kind_of(auth.authenticate(credential).await), ErrorKind::Unauthenticated);
    }
    assert!(auth.keys("bob", None, 10).await.unwrap().items.is_empty());
    assert!(all_records(&*state).await.iter().all(|(key, _)| !key.contains("key/")), "no record is left");
    assert_eq!(
        kind_of(auth.create_key("bob", "key", None, by("bob")).await),
        ErrorKind::Forbidden,
        "the password must be changed first"
    );
    assert_eq!(kind_of(login(&auth, "bob", PASSWORD).await), ErrorKind::Unauthenticated);
    assert!(login(&auth, "bob", OTHER).await.unwrap().account.must_change_password);
    let entry = entries(&auth).await.remove(0);
    assert_eq!((entry.action, entry.target.as_str()), (AuditAction::AccountPassword, "bob"));
}

#[tokio::test]
async fn lesson_24_new_account_of_a_deleted_name_inherits_nothing() {
    let (auth, state) = auth_with_admin().await;
    let first = add(&auth, "bob", Role::User).await;
    let session = login(&auth, "bob", PASSWORD).await.unwrap();
    let key = auth.create_key("bob", "key", None, by("bob")).await.unwrap();
    auth.delete_account("BOB", by("admin")).await.unwrap();
    assert!(all_records(&*state).await.iter().all(|(key, _)| !key.contains("key/")), "no record is left");
    assert_eq!(kind_of(auth.delete_account("bob", by("admin")).await), ErrorKind::NotFound);
    let second = add(&auth, "bob", Role::User).await;
    assert_ne!(first.id, second.id);
    for credential in [&session.token, &key.secret] {
        assert_eq!(kind_of(auth.authenticate(credential).await), ErrorKind::Unauthenticated);
    }
    assert!(auth.keys("bob", None, 10).await.unwrap().items.is_empty());
    assert_eq!(actions(&auth).await[1], AuditAction::AccountDelete);
}

#[tokio::test]
async fn lesson_23_operator_reset_restores_the_admin() {
    let throttle = ThrottleOptions { account: 1, ..ThrottleOptions::default() };
    let state: Arc<dyn StateStore> = Arc::new(MemoryState::default());
    let (auth, _) = auth_over(Arc::clone(&state), &AuthOptions { throttle, ..options() }).await;
    add(&auth, "ada", Role::Admin).await;
    let session = login(&auth, "admin", PASSWORD).await.unwrap();
    let key = auth.create_key("admin", "key", None, by("admin")).await.unwrap();
    let change = AccountChange { role: Some(Role::User), disabled: Some(true) };
    auth.change_account("admin", change, by("ada")).await.unwrap();
    login(&auth, "admin", PASSWORD).await.unwrap_err();
    // The actor's name does not matter here, because the operator is not an account.
    let account = auth.reset_admin(OTHER, by("admin")).await.unwrap();
    assert_eq!((account.role, account.disabled, account.must_change_password), (Role::Admin, false, true));
    for credential in [&session.token, &key.secret] {
        assert_eq!(kind_of(auth.authenticate(credential).await), ErrorKind::Unauthenticated);
    }
    assert!(login(&auth, "admin", OTHER).await.is_ok(), "the failure count is reset");
    assert_eq!(actions(&auth).await[0], AuditAction::AccountPassword);
    auth.delete_account("admin", by("ada")).await.unwrap();
    assert!(auth.reset_admin(PASSWORD, OPERATOR).await.unwrap().must_change_password);
    assert!(login(&auth, "admin", PASSWORD).await.is_ok());
    assert_eq!(actions(&auth).await[0], AuditAction::AccountCreate);
    assert_eq!(kind_of(auth.reset_admin("short", OPERATOR).await), ErrorKind::Invalid);
}

#[tokio::test]
async fn lesson_23_reset_of_an_empty_store_counts_as_initialised() {
    let auth = Auth::new(Arc::new(MemoryState::default()), &options()).unwrap();
    auth.reset_admin(OTHER, OPERATOR).await.unwrap();
    assert!(auth.is_initialised().await.unwrap());
    assert!(!auth.initialise(PASSWORD, false).await.unwrap());
}

#[tokio::test]
async fn too_many_concurrent_passwords_are_refused_as_overloaded() {
    let full = AuthOptions { max_concurrent_hashes: 1, max_waiting_hashes: 0, ..options() };
    let (auth, _) = auth_over(Arc::new(MemoryState::default()), &full).await;
    let (one, two) =
        tokio::join!(auth.register(attempt("ada", PASSWORD)), auth.register(attempt("bob", PASSWORD)));
    assert!(one.is_ok());
    let refused = two.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Overloaded);
    assert!(refused.is_retryable());
    assert!(auth.register(attempt("bob", PASSWORD)).await.is_ok());
}

/// A request may arrive after its account was deleted. It has no rights, even if the name exists again.
#[tokio::test]
async fn lesson_21_deleted_account_has_no_rights() {
    let (auth, _) = auth_with_admin().await;
    let deleted = add(&auth, "bob", Role::Admin).await;
    for comes_back in [false, true] {
        if comes_back {
            add(&auth, "bob", Role::Admin).await;
        } else {
            auth.delete_account("bob", OPERATOR).await.unwrap();
        }
        let by = deleted.by("r-9");
        let eve = NewAccount {
            username: "eve",
            password: PASSWORD,
            role: Role::Admin,
            must_change_password: false,
        };
        let forbidden = [
            kind_of(auth.create_account(eve, by).await),
            kind_of(auth.change_account("admin", role(Role::User), by).await),
            kind_of(auth.reset_password("admin", OTHER, by).await),
            kind_of(auth.delete_account("admin", by).await),
        ];
        assert_eq!(forbidden, [ErrorKind::Forbidden; 4]);
        if comes_back {
            let made = auth.create_key("bob", "k", None, OPERATOR).await.unwrap();
            let own_account = [
                kind_of(auth.create_key("bob", "k", None, by).await),
                kind_of(auth.delete_key("bob", made.key.id, by).await),
                kind_of(auth.change_password("bob", PASSWORD, OTHER, by).await),
            ];
            assert_eq!(own_account, [ErrorKind::Unauthenticated; 3]);
            assert!(auth.authenticate(&made.secret).await.is_ok());
        }
    }
}
