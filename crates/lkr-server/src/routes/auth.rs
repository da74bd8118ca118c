//! Login, logout and passwords.

use actix_web::http::{Method, StatusCode, header};
use lkr_auth::{Login, LoginAttempt, csrf_token};

use crate::{
    error::{ApiError, ErrorCode},
    first_admin,
    http::{
        ApiResponse, Endpoint, HandlerResult, PendingPassword, PendingUnrestricted, Public, RequestContext,
        RequestId, SMALL_BODY_BYTES, SecretInput,
    },
    openapi::{OperationDoc, ResponseShape, schema},
    wire::auth::{Credentials, CurrentUser, LoggedOut, PasswordChange, Registration, Token, User},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let doc = |id, summary, shape| OperationDoc::new("Accounts", id, summary, ResponseShape::Envelope(shape));
    vec![
        Endpoint::new(
            Method::POST,
            "/api/v1/auth/login",
            doc("login", "Starts a session", schema::<Token>())
                .body::<Credentials>()
                .errors(&[ErrorCode::Unauthenticated, ErrorCode::RateLimited]),
            login,
        ),
        Endpoint::new(
            Method::POST,
            "/api/v1/auth/register",
            doc("register", "Creates an account of role user and starts a session", schema::<Token>())
                .status(StatusCode::CREATED)
                .body::<Registration>()
                .errors(&[ErrorCode::RegisterDisabled, ErrorCode::Conflict, ErrorCode::RateLimited]),
            register,
        ),
        Endpoint::new(
            Method::POST,
            "/api/v1/auth/logout",
            doc(
                "logout",
                "Ends the session of the credential. An API key is not a session and stays valid",
                schema::<LoggedOut>(),
            ),
            logout,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/auth/me",
            doc("me", "Returns the account of the credential", schema::<CurrentUser>()),
            me,
        ),
        Endpoint::new(
            Method::POST,
            "/api/v1/auth/password",
            doc(
                "change_password",
                "Changes the caller's password, ends all sessions of the account and starts a new one",
                schema::<Token>(),
            )
            .body::<PasswordChange>()
            .errors(&[ErrorCode::RateLimited]),
            change_password,
        ),
    ]
}

async fn login(_: Public, mut cx: RequestContext) -> HandlerResult {
    let Credentials { username, password, cookie } = cx.json(SMALL_BODY_BYTES).await?;
    let request_id = cx.request_id();
    let attempt = attempt(&cx, &username, &password, &request_id);
    let login = cx.services()?.auth.login(attempt).await?;
    session(&cx, login, cookie.unwrap_or_default(), ApiResponse::ok)
}

async fn register(_: Public, mut cx: RequestContext) -> HandlerResult {
    if !cx.state().options.register_enabled {
        return Err(ApiError::new(ErrorCode::RegisterDisabled, "registration is disabled"));
    }
    let Registration { username, password, cookie } = cx.json(SMALL_BODY_BYTES).await?;
    let request_id = cx.request_id();
    let attempt = attempt(&cx, &username, &password, &request_id);
    let login = cx.services()?.auth.register(attempt).await?;
    session(&cx, login, cookie.unwrap_or_default(), ApiResponse::created)
}

fn attempt<'a>(
    cx: &RequestContext,
    username: &'a str,
    password: &'a SecretInput,
    request_id: &'a RequestId,
) -> LoginAttempt<'a> {
    let (address, request_id) = (cx.client_address(), request_id.as_str());
    LoginAttempt { username, password: &password.0, address, request_id }
}

/// The response with a new session, which sets the cookie too if `as_cookie`.
fn session(
    cx: &RequestContext,
    login: Login,
    as_cookie: bool,
    respond: fn(&Token) -> HandlerResult,
) -> HandlerResult {
    if !as_cookie {
        return respond(&Token::new(login, None));
    }
    let cookie = cx.session_cookie().set(&login.token, login.expires_in)?;
    let csrf_token = csrf_token(&login.token);
    Ok(respond(&Token::new(login, Some(csrf_token)))?.header(header::SET_COOKIE, cookie))
}

async fn logout(PendingPassword(caller): PendingPassword, mut cx: RequestContext) -> HandlerResult {
    cx.no_body().await?;
    let logged_out = cx.services()?.auth.logout(&caller.token).await?;
    let response = ApiResponse::ok(&LoggedOut { logged_out })?;
    if !caller.came_by_cookie {
        return Ok(response);
    }
    Ok(response.header(header::SET_COOKIE, cx.session_cookie().remove()?))
}

async fn me(PendingPassword(caller): PendingPassword, cx: RequestContext) -> HandlerResult {
    cx.no_query()?;
    let csrf_token = caller.came_by_cookie.then(|| csrf_token(&caller.token));
    ApiResponse::ok(&CurrentUser { user: User::from(&caller.account), csrf_token })
}

async fn change_password(
    PendingUnrestricted(caller): PendingUnrestricted,
    mut cx: RequestContext,
) -> HandlerResult {
    let PasswordChange { current_password, new_password, cookie } = cx.json(SMALL_BODY_BYTES).await?;
    let auth = &cx.services()?.auth;
    let username = &caller.account.username;
    let login = auth.change_password(username, &current_password.0, &new_password.0, caller.actor()).await?;
    first_admin::remove_password_file(&cx.state().options, username).await;
    session(&cx, login, cookie.unwrap_or(caller.came_by_cookie), ApiResponse::ok)
}
