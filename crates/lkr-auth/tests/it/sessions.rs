//! Logins, sessions and the change of one's own password.

use std::{sync::Arc, time::Duration};

use lkr_auth::{AuditAction, Auth, AuthOptions, Credential, ErrorKind, FIRST_ADMIN};
use lkr_state::{Expect, MemoryState, StateStoreExt, Write};

use crate::support::{
    OTHER, PASSWORD, actions, auth_with_admin, by, change_record, everything, kind, login, options,
};

#[tokio::test]
async fn login_me_logout() {
    let (auth, _) = auth_with_admin().await;
    let session = login(&auth, "ADMIN", PASSWORD).await.unwrap();
    assert_eq!(session.account.username, FIRST_ADMIN);
    assert_eq!(session.expires_in, Duration::from_secs(60));
    let identity = auth.authenticate(&session.token).await.unwrap();
    assert_eq!((identity.account, identity.credential), (session.account, Credential::Session));
    let other = login(&auth, "admin", PASSWORD).await.unwrap();
    assert_ne!(other.token, session.token);
    assert!(auth.logout(&session.token).await.unwrap());
    assert_eq!(kind(auth.authenticate(&session.token).await), ErrorKind::Unauthenticated);
    assert!(auth.authenticate(&other.token).await.is_ok(), "only the one session ends");
    for nothing in [session.token.as_str(), "", "x", &"0".repeat(64)] {
        assert!(!auth.logout(nothing).await.unwrap(), "{nothing}");
    }
}

#[tokio::test]
async fn lesson_32_one_answer_for_unknown_names_and_wrong_passwords() {
    let (auth, _) = auth_with_admin().await;
    let wrong = login(&auth, "admin", OTHER).await.unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::Unauthenticated);
    for (username, password) in [("nobody", PASSWORD), ("a b", PASSWORD), ("", ""), ("admin", "")] {
        let error = login(&auth, username, password).await.unwrap_err();
        assert_eq!(error.to_string(), wrong.to_string(), "{username}");
    }
}

#[tokio::test]
async fn tokens_that_are_none() {
    let (auth, _) = auth_with_admin().await;
    let session = login(&auth, "admin", PASSWORD).await.unwrap();
    let upper = session.token.to_uppercase();
    for token in ["", "x", &"0".repeat(64), &upper, &format!("{}0", session.token), "é"] {
        assert_eq!(kind(auth.authenticate(token).await), ErrorKind::Unauthenticated, "{token}");
    }
}

#[tokio::test]
async fn lesson_24_no_credential_is_stored_as_it_is() {
    let (auth, state) = auth_with_admin().await;
    let session = login(&auth, "admin", PASSWORD).await.unwrap();
    assert_eq!(session.token.len(), 64, "256 bits");
    let records = everything(&*state).await;
    assert!(records.len() >= 3, "account, session, mark");
    for (key, value) in records {
        for secret in [session.token.as_str(), PASSWORD] {
            assert!(!key.contains(secret) && !value.contains(secret), "{key}");
        }
    }
    assert!(!format!("{session:?} {auth:?}").contains(&session.token));
}

#[tokio::test]
async fn lesson_24_a_password_change_ends_all_sessions_at_once() {
    let (auth, _) = auth_with_admin().await;
    let (one, two) =
        (login(&auth, "admin", PASSWORD).await.unwrap(), login(&auth, "admin", PASSWORD).await.unwrap());
    let new = auth.change_password("Admin", PASSWORD, OTHER, by("admin")).await.unwrap();
    for old in [one, two] {
        assert_eq!(kind(auth.authenticate(&old.token).await), ErrorKind::Unauthenticated);
    }
    assert!(auth.authenticate(&new.token).await.is_ok());
    assert_eq!(kind(login(&auth, "admin", PASSWORD).await), ErrorKind::Unauthenticated);
    assert!(login(&auth, "admin", OTHER).await.is_ok());
}

#[tokio::test]
async fn what_a_password_change_refuses() {
    let (auth, _) = auth_with_admin().await;
    let session = login(&auth, "admin", PASSWORD).await.unwrap();
    assert_eq!(
        kind(auth.change_password("admin", OTHER, OTHER, by("admin")).await),
        ErrorKind::Unauthenticated
    );
    assert_eq!(kind(auth.change_password("admin", PASSWORD, "short", by("admin")).await), ErrorKind::Invalid);
    assert_eq!(
        kind(auth.change_password("nobody", PASSWORD, OTHER, by("admin")).await),
        ErrorKind::Unauthenticated
    );
    assert!(auth.authenticate(&session.token).await.is_ok(), "a refused change ends nothing");
}

#[tokio::test]
async fn of_two_changes_at_once_one_wins() {
    let (auth, _) = auth_with_admin().await;
    let third = "a third long password";
    let (one, two) = tokio::join!(
        auth.change_password("admin", PASSWORD, OTHER, by("admin")),
        auth.change_password("admin", PASSWORD, third, by("admin"))
    );
    assert_ne!(one.is_ok(), two.is_ok());
    let (winner, password) = if one.is_ok() { (one, OTHER) } else { (two, third) };
    assert!(auth.authenticate(&winner.unwrap().token).await.is_ok());
    assert!(login(&auth, "admin", password).await.is_ok());
}

#[tokio::test]
async fn lesson_24_a_disabled_account_is_shut_out_at_once() {
    let (auth, state) = auth_with_admin().await;
    let session = login(&auth, "admin", PASSWORD).await.unwrap();
    change_record(&*state, "admin", |account| account["disabled"] = true.into()).await;
    assert_eq!(kind(auth.authenticate(&session.token).await), ErrorKind::Unauthenticated);
    assert_eq!(kind(login(&auth, "admin", PASSWORD).await), ErrorKind::Unauthenticated);
    assert_eq!(
        kind(auth.change_password("admin", PASSWORD, OTHER, by("admin")).await),
        ErrorKind::Unauthenticated
    );
}

#[tokio::test]
async fn lesson_24_a_session_is_not_inherited_by_a_later_account_of_the_name() {
    let (auth, state) = auth_with_admin().await;
    let session = login(&auth, "admin", PASSWORD).await.unwrap();
    change_record(&*state, "admin", |account| account["id"] = "another".into()).await;
    assert_eq!(kind(auth.authenticate(&session.token).await), ErrorKind::Unauthenticated);
}

#[tokio::test]
async fn sessions_expire() {
    let state = Arc::new(MemoryState::default());
    let brief = AuthOptions { session_ttl: Duration::ZERO, ..options() };
    let auth = Auth::new(state, &brief).unwrap();
    auth.initialise(PASSWORD, false).await.unwrap();
    let session = login(&auth, "admin", PASSWORD).await.unwrap();
    assert_eq!(kind(auth.authenticate(&session.token).await), ErrorKind::Unauthenticated);
}

#[tokio::test]
async fn sessions_outlive_the_process() {
    let (auth, state) = auth_with_admin().await;
    let session = login(&auth, "admin", PASSWORD).await.unwrap();
    drop(auth);
    let again = Auth::new(state, &options()).unwrap();
    assert_eq!(again.authenticate(&session.token).await.unwrap().account, session.account);
}

#[tokio::test]
async fn lesson_23_the_first_admin_is_made_once() {
    let (auth, state) = auth_with_admin().await;
    assert!(auth.is_initialised().await.unwrap());
    assert!(!auth.initialise(OTHER, false).await.unwrap());
    assert!(login(&auth, "admin", PASSWORD).await.is_ok());
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
    assert!(login(&auth, "admin", PASSWORD).await.unwrap().account.must_change_password);
    assert_eq!(
        kind(auth.change_password("admin", PASSWORD, PASSWORD, by("admin")).await),
        ErrorKind::Invalid
    );
    let session = auth.change_password("admin", PASSWORD, OTHER, by("admin")).await.unwrap();
    assert!(!session.account.must_change_password);
    assert!(!auth.account("admin").await.unwrap().unwrap().must_change_password);
    assert!(
        auth.change_password("admin", OTHER, OTHER, by("admin")).await.is_ok(),
        "not flagged any more: it may stay"
    );
}

#[tokio::test]
async fn hashes_of_fewer_iterations_are_renewed_at_the_next_login() {
    let (_, state) = auth_with_admin().await;
    let stronger = Auth::new(Arc::clone(&state), &AuthOptions { iterations: 2_000, ..options() }).unwrap();
    let session = login(&stronger, "admin", PASSWORD).await.unwrap();
    let record = state.get("auth/account/admin").await.unwrap().unwrap();
    assert!(String::from_utf8_lossy(&record.value).contains("i=2000"));
    assert!(stronger.authenticate(&session.token).await.is_ok());
    login(&stronger, "admin", PASSWORD).await.unwrap();
    let after = state.get("auth/account/admin").await.unwrap().unwrap();
    assert_eq!(after.version, record.version, "renewed once");
    assert!(login(&stronger, "admin", PASSWORD).await.is_ok());
}

#[tokio::test]
async fn a_damaged_record_is_internal_and_quotes_nothing() {
    let (auth, state) = auth_with_admin().await;
    let write = Write::put("auth/account/admin", Expect::Any, "{\"v\":\"1\",\"password\":\"hush\"}");
    state.apply(vec![write]).await.unwrap();
    let error = login(&auth, "admin", PASSWORD).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert!(!error.to_string().contains("hush"));
}

#[tokio::test]
async fn records_of_earlier_versions_are_read() {
    let (auth, state) = auth_with_admin().await;
    change_record(&*state, "admin", |account| drop(account.as_object_mut().unwrap().remove("key_epoch")))
        .await;
    assert!(login(&auth, "admin", PASSWORD).await.is_ok());
    assert!(auth.create_key("admin", "backup", None, by("admin")).await.is_ok());
}

#[tokio::test]
async fn a_password_change_is_noted_and_keeps_the_keys() {
    let (auth, _) = auth_with_admin().await;
    let made = auth.create_key("admin", "backup", None, by("admin")).await.unwrap();
    auth.change_password("admin", PASSWORD, OTHER, by("admin")).await.unwrap();
    assert!(auth.authenticate(&made.secret).await.is_ok());
    assert!(!auth.logout(&made.secret).await.unwrap(), "a key is no session");
    assert!(auth.authenticate(&made.secret).await.is_ok());
    assert_eq!(actions(&auth).await[0], AuditAction::AccountPassword);
}
