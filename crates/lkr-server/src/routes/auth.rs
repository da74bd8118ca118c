use actix_web::http::{Method, StatusCode};
use lkr_auth::LoginAttempt;

use super::SMALL_BODY_BYTES;
use crate::{
    error::{ApiError, Code},
    first_admin,
    http::{Answer, Cx, Endpoint, Flagged, Open, Reply, RequestId, Secret},
    openapi::{Doc, Shape, schema},
    wire::auth::{Credentials, LoggedOut, PasswordChange, Registration, Token, User},
};

pub(super) fn rows() -> Vec<Endpoint> {
    let doc = |id, summary, shape| Doc::new("Accounts", id, summary, Shape::Envelope(shape));
    vec![
        Endpoint::new(
            Method::POST,
            "/api/v1/auth/login",
            doc("login", "Begins a session", schema::<Token>())
                .body::<Credentials>()
                .errors(&[Code::Unauthenticated, Code::RateLimited]),
            login,
        ),
        Endpoint::new(
            Method::POST,
            "/api/v1/auth/register",
            doc("register", "Makes an account of role user and begins a session", schema::<Token>())
                .status(StatusCode::CREATED)
                .body::<Registration>()
                .errors(&[Code::RegisterDisabled, Code::Conflict, Code::RateLimited]),
            register,
        ),
        Endpoint::new(
            Method::POST,
            "/api/v1/auth/logout",
            doc(
                "logout",
                "Ends the session of the credential; an API key is none and stays",
                schema::<LoggedOut>(),
            ),
            logout,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/auth/me",
            doc("me", "The account of the credential", schema::<User>()),
            me,
        ),
        Endpoint::new(
            Method::POST,
            "/api/v1/auth/password",
            doc(
                "change_password",
                "Changes the own password, ends all sessions of the account and begins a new one",
                schema::<Token>(),
            )
            .body::<PasswordChange>()
            .errors(&[Code::RateLimited]),
            change_password,
        ),
    ]
}

async fn login(_: Open, mut cx: Cx) -> Answer {
    let Credentials { username, password } = cx.json(SMALL_BODY_BYTES).await?;
    let request_id = cx.request_id();
    let attempt = attempt(&cx, &username, &password, &request_id);
    let login = cx.services()?.auth.login(attempt).await?;
    Reply::ok(&Token::from(login))
}

async fn register(_: Open, mut cx: Cx) -> Answer {
    if !cx.state().options.register_enabled {
        return Err(ApiError::new(Code::RegisterDisabled, "registration is disabled"));
    }
    let Registration { username, password } = cx.json(SMALL_BODY_BYTES).await?;
    let request_id = cx.request_id();
    let attempt = attempt(&cx, &username, &password, &request_id);
    let login = cx.services()?.auth.register(attempt).await?;
    Reply::created(&Token::from(login))
}

fn attempt<'a>(
    cx: &Cx,
    username: &'a str,
    password: &'a Secret,
    request_id: &'a RequestId,
) -> LoginAttempt<'a> {
    let (address, request_id) = (cx.address(), request_id.as_str());
    LoginAttempt { username, password: &password.0, address, request_id }
}

async fn logout(Flagged(caller): Flagged, mut cx: Cx) -> Answer {
    cx.no_body().await?;
    let logged_out = cx.services()?.auth.logout(&caller.token).await?;
    Reply::ok(&LoggedOut { logged_out })
}

async fn me(Flagged(caller): Flagged, cx: Cx) -> Answer {
    cx.no_query()?;
    Reply::ok(&User::from(&caller.account))
}

async fn change_password(Flagged(caller): Flagged, mut cx: Cx) -> Answer {
    let PasswordChange { current_password, new_password } = cx.json(SMALL_BODY_BYTES).await?;
    let auth = &cx.services()?.auth;
    let username = &caller.account.username;
    let login = auth.change_password(username, &current_password.0, &new_password.0, caller.by()).await?;
    first_admin::forget_password(&cx.state().options, username).await;
    Reply::ok(&Token::from(login))
}
