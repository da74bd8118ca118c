//! Logins, sessions and password changes.

use std::{sync::Arc, time::Duration};

use lkr_auth::{AuditAction, Auth, AuthOptions, Credential, ErrorKind, FIRST_ADMIN};
use lkr_state::{Expect, MemoryState, StateStoreExt, Write};

use crate::support::{
    OTHER, PASSWORD, actions, all_records, auth_with_admin, by, change_record, kind_of, login, options,
};

#[tokio::test]
async fn logout_ends_only_its_own_session() {
    let (auth, _) = auth_with_admin().await;
    let session = login(&auth, "ADMIN", PASSWORD).await.unwrap();
    assert_eq!(session.account.username, FIRST_ADMIN);
    assert_eq!(session.expires_in, Duration::from_secs(60));
    let identity = auth.authenticate(&session.token).await.unwrap();
    assert_eq!((identity.account, identity.credential), (session.account, Credential::Session));
    let other = login(&auth, "admin", PASSWORD).await.unwrap();
    assert_ne!(other.token, session.token);
    assert!(auth.logout(&session.token).await.unwrap());
    assert_eq!(kind_of(auth.authenticate(&session.token).await), ErrorKind::Unauthenticated);
    assert!(auth.authenticate(&other.token).await.is_ok(), "the other session remains valid");
    for nothing in [session.token.as_str(), "", "x", &"0".repeat(64)] {
        assert!(!auth.logout(nothing).await.unwrap(), "{nothing}");
    }
}

#[tokio::test]
async fn lesson_32_unknown_names_and_wrong_passwords_get_the_same_answer() {
    let (auth, _) = auth_with_admin().await;
    let wrong = login(&auth, "admin", OTHER).await.unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::Unauthenticated);
    for (username, password) in [("nobody", PASSWORD), ("a b", PASSWORD), ("", ""), ("admin", "")] {
        let error = login(&auth, username, password).await.unwrap_err();
        assert_eq!(error.to_string(), wrong.to_string(), "{username}");
    }
}

#[tokio::test]
async fn malformed_and_unknown_tokens_are_unauthenticated() {
    let (auth, _) = auth_with_admin().await;
    let session = login(&auth, "admin", PASSWORD).await.unwrap();
    let upper = session.token.to_uppercase();
    for token in ["", "x", &"0".repeat(64), &upper, &format!("{}0", session.token), "é"] {
        assert_eq!(kind_of(auth.authenticate(token).await), ErrorKind::Unauthenticated, "{token}");
    }
}

#[tokio::test]
async fn lesson_24_credentials_are_not_stored_in_plain_text() {
    let (auth, state) = auth_with_admin().await;
    let session = login(&auth, "admin", PASSWORD).await.unwrap();
    assert_eq!(session.token.len(), 64, "256 bits");
    let records = all_records(&*state).await;
    assert!(records.len() >= 3, "account, session, initialised");
    for (key, value) in records {
        for secret in [session.token.as_str(), PASSWORD] {
            assert!(!key.contains(secret) && !value.contains(secret), "{key}");
        }
    }
    assert!(!format!("{session:?} {auth:?}").contains(&session.token));
}

#[tokio::test]
async fn lesson_24_password_change_ends_all_sessions_at_once() {
    let (auth, _) = auth_with_admin().await;
    let (one, two) =
        (login(&auth, "admin", PASSWORD).await.unwrap(), login(&auth, "admin", PASSWORD).await.unwrap());
    let new = auth.change_password("Admin", PASSWORD, OTHER, by("admin")).await.unwrap();
    for old in [one, two] {
        assert_eq!(kind_of(auth.authenticate(&old.token).await), ErrorKind::Unauthenticated);
    }
    assert!(auth.authenticate(&new.token).await.is_ok());
    assert_eq!(kind_of(login(&auth, "admin", PASSWORD).await), ErrorKind::Unauthenticated);
    assert!(login(&auth, "admin", OTHER).await.is_ok());
}

#[tokio::test]
async fn refused_password_change_keeps_sessions() {
    let (auth, _) = auth_with_admin().await;
    let session = login(&auth, "admin", PASSWORD).await.unwrap();
    assert_eq!(
        kind_of(auth.change_password("admin", OTHER, OTHER, by("admin")).await),
        ErrorKind::Unauthenticated
    );
    assert_eq!(
        kind_of(auth.change_password("admin", PASSWORD, "short", by("admin")).await),
        ErrorKind::Invalid
    );
    assert_eq!(
        kind_of(auth.change_password("nobody", PASSWORD, OTHER, by("admin")).await),
        ErrorKind::Unauthenticated
    );
    assert!(auth.authenticate(&session.token).await.is_ok(), "a refused change ends nothing");
}

#[tokio::test]
async fn concurrent_password_changes_exactly_one_wins() {
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
async fn lesson_24_disabled_account_is_refused_at_once() {
    let (auth, state) = auth_with_admin().await;
    let session = login(&auth, "admin", PASSWORD).await.unwrap();
    change_record(&*state, "admin", |account| account["disabled"] = true.into()).await;
    assert_eq!(kind_of(auth.authenticate(&session.token).await), ErrorKind::Unauthenticated);
    assert_eq!(kind_of(login(&auth, "admin", PASSWORD).await), ErrorKind::Unauthenticated);
    assert_eq!(
        kind_of(auth.change_password("admin", PASSWORD, OTHER, by("admin")).await),
        ErrorKind::Unauthenticated
    );
}

#[tokio::test]
async fn lesson_24_later_account_of_the_same_name_does_not_inherit_sessions() {
    let (auth, state) = auth_with_admin().await;
    let session = login(&auth, "admin", PASSWORD).await.unwrap();
    change_record(&*state, "admin", |account| account["id"] = "another".into()).await;
    assert_eq!(kind_of(auth.authenticate(&session.token).await), ErrorKind::Unauthenticated);
}

#[tokio::test]
async fn expired_session_is_unauthenticated() {
    let state = Arc::new(MemoryState::default());
    let brief = AuthOptions { session_ttl: Duration::ZERO, ..options() };
    let auth = Auth::new(state, &brief).unwrap();
    auth.initialise(PASSWORD, false).await.unwrap();
    let session = login(&auth, "admin", PASSWORD).await.unwrap();
    assert_eq!(kind_of(auth.authenticate(&session.token).await), ErrorKind::Unauthenticated);
}

#[tokio::test]
async fn session_outlives_the_process() {
    let (auth, state) = auth_with_admin().await;
    let session = login(&auth, "admin", PASSWORD).await.unwrap();
    drop(auth);
    let reopened = Auth::new(state, &options()).unwrap();
    assert_eq!(reopened.authenticate(&session.token).await.unwrap().account, session.account);
}

#[tokio::test]
async fn lesson_23_first_admin_is_created_once() {
    let (auth, state) = auth_with_admin().await;
    assert!(auth.is_initialised().await.unwrap());
    assert!(!auth.initialise(OTHER, false).await.unwrap());
    assert!(login(&auth, "admin", PASSWORD).await.is_ok());
    state.apply(vec![Write::delete("auth/account/admin", Expect::Any)]).await.unwrap();
    assert!(!auth.initialise(OTHER, false).await.unwrap(), "a deleted admin is not created again");
    assert!(auth.account("admin").await.unwrap().is_none());
    let new = Auth::new(Arc::new(MemoryState::default()), &options()).unwrap();
    assert_eq!(kind_of(new.initialise("short", true).await), ErrorKind::Invalid);
}

#[tokio::test]
async fn account_that_must_change_its_password_needs_a_different_one() {
    let auth = Auth::new(Arc::new(MemoryState::default()), &options()).unwrap();
    auth.initialise(PASSWORD, true).await.unwrap();
    assert!(login(&auth, "admin", PASSWORD).await.unwrap().account.must_change_password);
    assert_eq!(
        kind_of(auth.change_password("admin", PASSWORD, PASSWORD, by("admin")).await),
        ErrorKind::Invalid
    );
    let session = auth.change_password("admin", PASSWORD, OTHER, by("admin")).await.unwrap();
    assert!(!session.account.must_change_password);
    assert!(!auth.account("admin").await.unwrap().unwrap().must_change_password);
    assert!(
        auth.change_password("admin", OTHER, OTHER, by("admin")).await.is_ok(),
        "without the flag, the password may stay the same"
    );
}

#[tokio::test]
async fn hash_with_fewer_iterations_is_renewed_at_the_next_login() {
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
async fn damaged_record_is_an_internal_error_without_quotes() {
    let (auth, state) = auth_with_admin().await;
    let write = Write::put("auth/account/admin", Expect::Any, "{\"v\":\"1\",\"password\":\"hush\"}");
    state.apply(vec![write]).await.unwrap();
    let error = login(&auth, "admin", PASSWORD).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert!(!error.to_string().contains("hush"));
}

#[tokio::test]
async fn record_without_key_epoch_is_read() {
    let (auth, state) = auth_with_admin().await;
    change_record(&*state, "admin", |account| drop(account.as_object_mut().unwrap().remove("key_epoch")))
        .await;
    assert!(login(&auth, "admin", PASSWORD).await.is_ok());
    assert!(auth.create_key("admin", "backup", None, by("admin")).await.is_ok());
}

#[tokio::test]
async fn password_change_is_audited_and_keeps_the_keys() {
    let (auth, _) = auth_with_admin().await;
    let made = auth.create_key("admin", "backup", None, by("admin")).await.unwrap();
    auth.change_password("admin", PASSWORD, OTHER, by("admin")).await.unwrap();
    assert!(auth.authenticate(&made.secret).await.is_ok());
    assert!(!auth.logout(&made.secret).await.unwrap(), "a key is not a session");
    assert!(auth.authenticate(&made.secret).await.is_ok());
    assert_eq!(actions(&auth).await[0], AuditAction::AccountPassword);
}
