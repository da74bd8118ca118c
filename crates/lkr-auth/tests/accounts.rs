//! Accounts and sessions over a store in memory.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by a panic")]

use std::{sync::Arc, time::Duration};

use lkr_auth::{Auth, AuthOptions, Error, ErrorKind, FIRST_ADMIN};
use lkr_state::{Expect, FailingState, MemoryState, Order, StateStore, StateStoreExt, Write};

const PASSWORD: &str = "correct horse battery";
const OTHER: &str = "another long password";

fn options() -> AuthOptions {
    AuthOptions { iterations: 1_000, session_ttl: Duration::from_secs(60), hashes_at_once: 2 }
}

async fn auth_with_admin() -> (Auth, Arc<dyn StateStore>) {
    let state: Arc<dyn StateStore> = Arc::new(MemoryState::default());
    let auth = Auth::new(Arc::clone(&state), &options()).unwrap();
    assert!(auth.initialise(PASSWORD, false).await.unwrap());
    (auth, state)
}

fn kind<T>(result: Result<T, Error>) -> ErrorKind {
    result.err().expect("it is refused").kind()
}

/// Changes a field of the stored admin, as a later version of this crate or another process would.
async fn change_record(state: &dyn StateStore, change: impl FnOnce(&mut serde_json::Value)) {
    let key = "auth/account/admin";
    let record = state.get(key).await.unwrap().unwrap();
    let mut value: serde_json::Value = serde_json::from_slice(&record.value).unwrap();
    change(&mut value);
    state.apply(vec![Write::put(key, Expect::Any, value.to_string())]).await.unwrap();
}

#[tokio::test]
async fn login_me_logout() {
    let (auth, _) = auth_with_admin().await;
    let login = auth.login("ADMIN", PASSWORD).await.unwrap();
    assert_eq!(login.account.username, FIRST_ADMIN);
    assert_eq!(login.expires_in, Duration::from_secs(60));
    assert_eq!(auth.authenticate(&login.token).await.unwrap(), login.account);
    let other = auth.login("admin", PASSWORD).await.unwrap();
    assert_ne!(other.token, login.token);
    auth.logout(&login.token).await.unwrap();
    assert_eq!(kind(auth.authenticate(&login.token).await), ErrorKind::Unauthenticated);
    assert!(auth.authenticate(&other.token).await.is_ok(), "only the one session ends");
    auth.logout(&login.token).await.unwrap();
}

#[tokio::test]
async fn lesson_32_one_answer_for_unknown_names_and_wrong_passwords() {
    let (auth, _) = auth_with_admin().await;
    let wrong = auth.login("admin", OTHER).await.unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::Unauthenticated);
    for (username, password) in [("nobody", PASSWORD), ("a b", PASSWORD), ("", ""), ("admin", "")] {
        let error = auth.login(username, password).await.unwrap_err();
        assert_eq!(error.to_string(), wrong.to_string(), "{username}");
    }
}

#[tokio::test]
async fn tokens_that_are_none() {
    let (auth, _) = auth_with_admin().await;
    let login = auth.login("admin", PASSWORD).await.unwrap();
    let upper = login.token.to_uppercase();
    for token in ["", "x", &"0".repeat(64), &upper, &format!("{}0", login.token), "é"] {
        assert_eq!(kind(auth.authenticate(token).await), ErrorKind::Unauthenticated, "{token}");
    }
}

#[tokio::test]
async fn lesson_24_no_credential_is_stored_as_it_is() {
    let (auth, state) = auth_with_admin().await;
    let login = auth.login("admin", PASSWORD).await.unwrap();
    assert_eq!(login.token.len(), 64, "256 bits");
    let records = state.scan("", None, Order::Ascending, 100).await.unwrap();
    assert!(records.len() >= 3, "account, session, mark");
    for (key, record) in records {
        let value = String::from_utf8_lossy(&record.value).into_owned();
        for secret in [login.token.as_str(), PASSWORD] {
            assert!(!key.contains(secret) && !value.contains(secret), "{key}");
        }
    }
    assert!(!format!("{login:?} {auth:?}").contains(&login.token));
}

#[tokio::test]
async fn lesson_24_a_password_change_ends_all_sessions_at_once() {
    let (auth, _) = auth_with_admin().await;
    let (one, two) =
        (auth.login("admin", PASSWORD).await.unwrap(), auth.login("admin", PASSWORD).await.unwrap());
    let new = auth.change_password("Admin", PASSWORD, OTHER).await.unwrap();
    for old in [one, two] {
        assert_eq!(kind(auth.authenticate(&old.token).await), ErrorKind::Unauthenticated);
    }
    assert!(auth.authenticate(&new.token).await.is_ok());
    assert_eq!(kind(auth.login("admin", PASSWORD).await), ErrorKind::Unauthenticated);
    assert!(auth.login("admin", OTHER).await.is_ok());
}

#[tokio::test]
async fn what_a_password_change_refuses() {
    let (auth, _) = auth_with_admin().await;
    let login = auth.login("admin", PASSWORD).await.unwrap();
    assert_eq!(kind(auth.change_password("admin", OTHER, OTHER).await), ErrorKind::Unauthenticated);
    assert_eq!(kind(auth.change_password("admin", PASSWORD, "short").await), ErrorKind::Invalid);
    assert_eq!(kind(auth.change_password("nobody", PASSWORD, OTHER).await), ErrorKind::Unauthenticated);
    assert!(auth.authenticate(&login.token).await.is_ok(), "a refused change ends nothing");
}

#[tokio::test]
async fn of_two_changes_at_once_one_wins() {
    let (auth, _) = auth_with_admin().await;
    let third = "a third long password";
    let (one, two) = tokio::join!(
        auth.change_password("admin", PASSWORD, OTHER),
        auth.change_password("admin", PASSWORD, third)
    );
    assert_ne!(one.is_ok(), two.is_ok());
    let (winner, password) = if one.is_ok() { (one, OTHER) } else { (two, third) };
    assert!(auth.authenticate(&winner.unwrap().token).await.is_ok());
    assert!(auth.login("admin", password).await.is_ok());
}

#[tokio::test]
async fn lesson_24_a_disabled_account_is_shut_out_at_once() {
    let (auth, state) = auth_with_admin().await;
    let login = auth.login("admin", PASSWORD).await.unwrap();
    change_record(&*state, |account| account["disabled"] = true.into()).await;
    assert_eq!(kind(auth.authenticate(&login.token).await), ErrorKind::Unauthenticated);
    assert_eq!(kind(auth.login("admin", PASSWORD).await), ErrorKind::Unauthenticated);
    assert_eq!(kind(auth.change_password("admin", PASSWORD, OTHER).await), ErrorKind::Unauthenticated);
}

#[tokio::test]
async fn lesson_24_a_session_is_not_inherited_by_a_later_account_of_the_name() {
    let (auth, state) = auth_with_admin().await;
    let login = auth.login("admin", PASSWORD).await.unwrap();
    change_record(&*state, |account| account["id"] = "another".into()).await;
    assert_eq!(kind(auth.authenticate(&login.token).await), ErrorKind::Unauthenticated);
}

#[tokio::test]
async fn sessions_expire() {
    let state = Arc::new(MemoryState::default());
    let brief = AuthOptions { session_ttl: Duration::ZERO, ..options() };
    let auth = Auth::new(state, &brief).unwrap();
    auth.initialise(PASSWORD, false).await.unwrap();
    let login = auth.login("admin", PASSWORD).await.unwrap();
    assert_eq!(kind(auth.authenticate(&login.token).await), ErrorKind::Unauthenticated);
}

#[tokio::test]
async fn sessions_outlive_the_process() {
    let (auth, state) = auth_with_admin().await;
    let login = auth.login("admin", PASSWORD).await.unwrap();
    drop(auth);
    let again = Auth::new(state, &options()).unwrap();
    assert_eq!(again.authenticate(&login.token).await.unwrap(), login.account);
}

#[tokio::test]
async fn lesson_23_the_first_admin_is_made_once() {
    let (auth, state) = auth_with_admin().await;
    assert!(auth.is_initialised().await.unwrap());
    assert!(!auth.initialise(OTHER, false).await.unwrap());
    assert!(auth.login("admin", PASSWORD).await.is_ok());
    state.apply(vec![Write::delete("auth/account/admin", Expect::Any)]).await.unwrap();
    assert!(!auth.initialise(OTHER, false).await.unwrap(), "a deleted one does not come back");
    assert!(auth.account("admin").await.unwrap().is_none());
    let fresh = Auth::new(Arc::new(MemoryState::default()), &options()).unwrap();
    assert_eq!(kind(fresh.initialise("short", true).await), ErrorKind::Invalid);
}

#[tokio::test]
async fn a_flagged_account_has_to_choose_another_password() {
    let auth = Auth::new(Arc::new(MemoryState::default()), &options()).unwrap();
    auth.initialise(PASSWORD, true).await.unwrap();
    assert!(auth.login("admin", PASSWORD).await.unwrap().account.must_change_password);
    assert_eq!(kind(auth.change_password("admin", PASSWORD, PASSWORD).await), ErrorKind::Invalid);
    let login = auth.change_password("admin", PASSWORD, OTHER).await.unwrap();
    assert!(!login.account.must_change_password);
    assert!(!auth.account("admin").await.unwrap().unwrap().must_change_password);
    assert!(auth.change_password("admin", OTHER, OTHER).await.is_ok(), "not flagged any more: it may stay");
}

#[tokio::test]
async fn hashes_of_fewer_iterations_are_renewed_at_the_next_login() {
    let (_, state) = auth_with_admin().await;
    let stronger = Auth::new(Arc::clone(&state), &AuthOptions { iterations: 2_000, ..options() }).unwrap();
    let session = stronger.login("admin", PASSWORD).await.unwrap();
    let record = state.get("auth/account/admin").await.unwrap().unwrap();
    assert!(String::from_utf8_lossy(&record.value).contains("i=2000"));
    assert!(stronger.authenticate(&session.token).await.is_ok());
    stronger.login("admin", PASSWORD).await.unwrap();
    let after = state.get("auth/account/admin").await.unwrap().unwrap();
    assert_eq!(after.version, record.version, "renewed once");
    assert!(stronger.login("admin", PASSWORD).await.is_ok());
}

#[tokio::test]
async fn a_store_that_fails_is_no_wrong_password() {
    let inner: Arc<dyn StateStore> = Arc::new(MemoryState::default());
    Auth::new(Arc::clone(&inner), &options()).unwrap().initialise(PASSWORD, false).await.unwrap();
    for (theirs, ours) in [
        (lkr_state::ErrorKind::Unavailable, ErrorKind::Unavailable),
        (lkr_state::ErrorKind::Internal, ErrorKind::Internal),
    ] {
        let failing = Arc::new(FailingState::new(Arc::clone(&inner), move |_| Some(theirs)));
        let auth = Auth::new(failing, &options()).unwrap();
        assert_eq!(kind(auth.login("admin", PASSWORD).await), ours);
        assert_eq!(kind(auth.authenticate(&"0".repeat(64)).await), ours);
        assert_eq!(kind(auth.change_password("admin", PASSWORD, OTHER).await), ours);
        assert_eq!(kind(auth.is_initialised().await), ours);
    }
}

#[tokio::test]
async fn a_damaged_record_is_internal_and_quotes_nothing() {
    let (auth, state) = auth_with_admin().await;
    let write = Write::put("auth/account/admin", Expect::Any, "{\"v\":\"1\",\"password\":\"hush\"}");
    state.apply(vec![write]).await.unwrap();
    let error = auth.login("admin", PASSWORD).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert!(!error.to_string().contains("hush"));
}
