//! A store that fails.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use lkr_auth::{AuditFilter, Auth, Error, ErrorKind, NewAccount, Role};
use lkr_state::{FailingState, MemoryState, StateStore};

use crate::support::{
    OPERATOR, OTHER, PASSWORD, add, all_records, attempt, auth_over, by, disabled, entries, kind_of, login,
    options,
};

async fn every_call(auth: &Auth, key: lkr_auth::KeyId) -> Vec<(&'static str, Option<Error>)> {
    let new =
        NewAccount { username: "new", password: PASSWORD, role: Role::User, must_change_password: true };
    let token = "0".repeat(64);
    vec![
        ("login", login(auth, "admin", PASSWORD).await.err()),
        ("authenticate", auth.authenticate(&token).await.err()),
        ("authenticate by key", auth.authenticate(&format!("lkr_{token}")).await.err()),
        ("logout", auth.logout(&token).await.err()),
        ("change_password", auth.change_password("admin", PASSWORD, OTHER, by("admin")).await.err()),
        ("is_initialised", auth.is_initialised().await.err()),
        ("initialise", auth.initialise(PASSWORD, true).await.err()),
        ("register", auth.register(attempt("new", PASSWORD)).await.err()),
        ("create_account", auth.create_account(new, by("admin")).await.err()),
        ("accounts", auth.accounts(None, 10).await.err()),
        ("account", auth.account("admin").await.err()),
        ("change_account", auth.change_account("bob", disabled(true), by("admin")).await.err()),
        ("reset_password", auth.reset_password("bob", OTHER, by("admin")).await.err()),
        ("delete_account", auth.delete_account("bob", by("admin")).await.err()),
        ("reset_admin", auth.reset_admin(OTHER, OPERATOR).await.err()),
        ("create_key", auth.create_key("admin", "key", None, by("admin")).await.err()),
        ("keys", auth.keys("admin", None, 10).await.err()),
        ("delete_key", auth.delete_key("admin", key, by("admin")).await.err()),
        ("audit", auth.audit().list(&AuditFilter::default(), None, 10).await.err()),
    ]
}

#[tokio::test]
async fn store_failure_is_not_reported_as_a_wrong_password() {
    let inner: Arc<dyn StateStore> = Arc::new(MemoryState::default());
    let (auth, _) = auth_over(Arc::clone(&inner), &options()).await;
    add(&auth, "bob", Role::User).await;
    let key = auth.create_key("admin", "key", None, by("admin")).await.unwrap().key.id;
    let before = all_records(&*inner).await;
    for (state_kind, auth_kind) in [
        (lkr_state::ErrorKind::Unavailable, ErrorKind::Unavailable),
        (lkr_state::ErrorKind::Internal, ErrorKind::Internal),
    ] {
        let failing = Arc::new(FailingState::new(Arc::clone(&inner), move |_| Some(state_kind)));
        for (call, error) in every_call(&Auth::new(failing, &options()).unwrap(), key).await {
            assert_eq!(error.expect(call).kind(), auth_kind, "{call}");
        }
    }
    assert_eq!(all_records(&*inner).await, before);
}

/// If failures cannot be counted, passwords are not judged. Otherwise, an outage would allow unlimited guessing.
#[tokio::test]
async fn lesson_32_password_is_not_judged_if_failures_cannot_be_counted() {
    let inner: Arc<dyn StateStore> = Arc::new(MemoryState::default());
    auth_over(Arc::clone(&inner), &options()).await;
    let no_writes =
        FailingState::new(inner, |name| (name == "apply").then_some(lkr_state::ErrorKind::Unavailable));
    let auth = Auth::new(Arc::new(no_writes), &options()).unwrap();
    for password in [PASSWORD, OTHER] {
        assert_eq!(kind_of(login(&auth, "admin", password).await), ErrorKind::Unavailable);
        let change = auth.change_password("admin", password, "a third password", by("admin")).await;
        assert_eq!(kind_of(change), ErrorKind::Unavailable);
    }
}

/// Every write of a call fails in turn; each call is applied completely or not at all.
#[tokio::test]
async fn change_and_audit_entry_are_applied_together_or_not_at_all() {
    for failing in 0..12 {
        let inner: Arc<dyn StateStore> = Arc::new(MemoryState::default());
        let (sound, _) = auth_over(Arc::clone(&inner), &options()).await;
        add(&sound, "bob", Role::User).await;
        let count = AtomicUsize::new(0);
        let fault = move |name: &str| {
            let fails = name == "apply" && count.fetch_add(1, Ordering::Relaxed) == failing;
            fails.then_some(lkr_state::ErrorKind::Unavailable)
        };
        let auth = Auth::new(Arc::new(FailingState::new(inner, fault)), &options()).unwrap();
        let new =
            NewAccount { username: "new", password: PASSWORD, role: Role::User, must_change_password: false };
        let mut done = entries(&sound).await.len();
        done += usize::from(auth.create_account(new, by("admin")).await.is_ok());
        done += usize::from(auth.register(attempt("reg", PASSWORD)).await.is_ok());
        done += usize::from(auth.change_password("bob", PASSWORD, OTHER, by("bob")).await.is_ok());
        let key = auth.create_key("bob", "key", None, by("bob")).await;
        done += usize::from(key.is_ok());
        if let Ok(key) = key {
            done += usize::from(auth.delete_key("bob", key.key.id, by("bob")).await.is_ok());
        }
        done += usize::from(auth.reset_password("bob", OTHER, by("admin")).await.is_ok());
        done += usize::from(auth.change_account("bob", disabled(true), by("admin")).await.is_ok());
        done += usize::from(auth.delete_account("bob", by("admin")).await.is_ok());
        assert_eq!(entries(&sound).await.len(), done, "{failing}");
        let names: Vec<_> = sound.accounts(None, 10).await.unwrap().items;
        let bob = names.iter().any(|account| account.username == "bob");
        let deleted = entries(&sound).await.iter().any(|entry| entry.action.name() == "account.delete");
        assert_ne!(bob, deleted);
    }
}

#[tokio::test]
async fn endless_conflicts_end_as_contention_and_not_as_an_outage() {
    let inner: Arc<dyn StateStore> = Arc::new(MemoryState::default());
    let (sound, _) = auth_over(Arc::clone(&inner), &options()).await;
    add(&sound, "bob", Role::User).await;
    let conflicting =
        FailingState::new(inner, |name| (name == "apply").then_some(lkr_state::ErrorKind::Conflict));
    let auth = Auth::new(Arc::new(conflicting), &options()).unwrap();
    let results = [
        auth.change_account("bob", disabled(true), by("admin")).await.map(drop),
        auth.create_key("bob", "key", None, by("bob")).await.map(drop),
        auth.change_password("bob", PASSWORD, OTHER, by("bob")).await.map(drop),
        login(&auth, "bob", OTHER).await.map(drop),
    ];
    for result in results {
        assert_eq!(kind_of(result), ErrorKind::Contention);
    }
}
