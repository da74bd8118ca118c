use crate::{
    first_admin,
    http::{Answer, Cx, Flagged, Open, Reply},
    wire::auth::{Credentials, LoggedOut, PasswordChange, Token, User},
};

/// More than the longest username and password can need.
const BODY_BYTES: usize = 64 * 1024;

pub(super) async fn login(_: Open, mut cx: Cx) -> Answer {
    let Credentials { username, password } = cx.json(BODY_BYTES).await?;
    let login = cx.services()?.auth.login(&username, &password.0).await?;
    Reply::ok(&Token::from(login))
}

pub(super) async fn logout(Flagged(caller): Flagged, mut cx: Cx) -> Answer {
    cx.no_body().await?;
    cx.services()?.auth.logout(&caller.token).await?;
    Reply::ok(&LoggedOut { logged_out: true })
}

pub(super) async fn me(Flagged(caller): Flagged, cx: Cx) -> Answer {
    cx.no_query()?;
    Reply::ok(&User::from(&caller.account))
}

pub(super) async fn change_password(Flagged(caller): Flagged, mut cx: Cx) -> Answer {
    let PasswordChange { current_password, new_password } = cx.json(BODY_BYTES).await?;
    let auth = &cx.services()?.auth;
    let login = auth.change_password(&caller.account.username, &current_password.0, &new_password.0).await?;
    if let Some(file) = &cx.state().options.initial_password_file {
        first_admin::forget_password(file, &login.account.username).await;
    }
    Reply::ok(&Token::from(login))
}
