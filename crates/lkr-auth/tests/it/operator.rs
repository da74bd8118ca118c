//! The credential of the process that has the store open.

use std::sync::Arc;

use lkr_auth::{AccountChange, Auth, AuthOptions, Credential, ErrorKind, NewAccount, OperatorToken, Role};
use lkr_state::MemoryState;

use crate::support::{PASSWORD, by, kind_of, options};

#[tokio::test]
async fn operator_acts_as_the_first_admin_without_a_change_of_password() {
    let state = Arc::new(MemoryState::default());
    let operator = OperatorToken::generate();
    let with_operator = AuthOptions { operator: Some(operator.clone()), ..options() };
    let auth = Auth::new(Arc::clone(&state) as _, &with_operator).unwrap();
    assert_eq!(kind_of(auth.authenticate(operator.token()).await), ErrorKind::Unauthenticated);
    auth.initialise(PASSWORD, true).await.unwrap();
    let identity = auth.authenticate(operator.token()).await.unwrap();
    assert_eq!((identity.account.username.as_str(), identity.account.role), ("admin", Role::Admin));
    assert!(!identity.account.must_change_password && identity.credential == Credential::Session);

    let elsewhere = Auth::new(state, &options()).unwrap();
    assert_eq!(kind_of(elsewhere.authenticate(operator.token()).await), ErrorKind::Unauthenticated);
    assert!(!format!("{operator:?}{with_operator:?}").contains(operator.token()));
}

#[tokio::test]
async fn operator_acts_as_another_admin_if_the_first_one_is_disabled() {
    let operator = OperatorToken::generate();
    let with_operator = AuthOptions { operator: Some(operator.clone()), ..options() };
    let auth = Auth::new(Arc::new(MemoryState::default()), &with_operator).unwrap();
    auth.initialise(PASSWORD, false).await.unwrap();
    let eva =
        NewAccount { username: "eva", password: PASSWORD, role: Role::Admin, must_change_password: false };
    auth.create_account(eva, by("admin")).await.unwrap();
    let disable = AccountChange { role: None, disabled: Some(true) };
    auth.change_account("admin", disable, by("eva")).await.unwrap();
    assert_eq!(auth.authenticate(operator.token()).await.unwrap().account.username, "eva");
}
