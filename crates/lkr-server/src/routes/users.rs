//! Accounts, for admins.

use actix_web::http::{Method, StatusCode};
use lkr_auth::{NewAccount, check_username};

use crate::{
    error::{ApiError, ErrorCode},
    first_admin,
    http::{Admin, ApiResponse, Endpoint, HandlerResult, RequestContext, SMALL_BODY_BYTES, cursor},
    openapi::{CursorOf, OperationDoc, ResponseShape, schema},
    state::Services,
    wire::{
        auth::User,
        users::{DeletedUser, NewPassword, NewUser, UserChange, UserList},
    },
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let doc = |id, summary, shape| OperationDoc::new("Users", id, summary, ResponseShape::Envelope(shape));
    vec![
        Endpoint::new(
            Method::GET,
            "/api/v1/users",
            doc("list_users", "Lists accounts by name", schema::<UserList>()).paged('u', CursorOf::Username),
            list,
        ),
        Endpoint::new(
            Method::POST,
            "/api/v1/users",
            doc("create_user", "Creates an account", schema::<User>())
                .status(StatusCode::CREATED)
                .body::<NewUser>()
                .errors(&[ErrorCode::Conflict]),
            create,
        ),
        Endpoint::new(
            Method::PATCH,
            "/api/v1/users/{username}",
            doc(
                "change_user",
                "Changes the role of an account, or disables or enables it. Disabling ends its sessions",
                schema::<User>(),
            )
            .body::<UserChange>()
            .errors(&[ErrorCode::NotFound]),
            change,
        ),
        Endpoint::new(
            Method::DELETE,
            "/api/v1/users/{username}",
            doc("delete_user", "Deletes an account with its sessions and API keys", schema::<DeletedUser>())
                .errors(&[ErrorCode::NotFound]),
            delete,
        ),
        Endpoint::new(
            Method::POST,
            "/api/v1/users/{username}/password",
            doc(
                "reset_password",
                "Sets a password that the account must change, and ends its sessions and API keys",
                schema::<User>(),
            )
            .body::<NewPassword>()
            .errors(&[ErrorCode::NotFound]),
            reset_password,
        ),
    ]
}

async fn list(_: Admin, cx: RequestContext) -> HandlerResult {
    let mut query = cx.query()?;
    let (limit, after) = (query.limit()?, query.offset::<String>('u')?);
    query.finish()?;
    if after.as_deref().is_some_and(|name| check_username(name).is_err()) {
        return Err(ApiError::invalid("query parameter offset is wrong: expected a cursor from next_offset"));
    }
    let page = cx.services()?.auth.accounts(after.as_deref(), limit as usize).await?;
    ApiResponse::ok(&UserList {
        items: page.items.iter().map(User::from).collect(),
        next_offset: page.next.map(|name| cursor('u', name)),
    })
}

async fn create(Admin(caller): Admin, mut cx: RequestContext) -> HandlerResult {
    let input: NewUser = cx.json(SMALL_BODY_BYTES).await?;
    let account = NewAccount {
        username: &input.username,
        password: &input.password.0,
        role: input.role.unwrap_or_default().into(),
        must_change_password: input.must_change_password.unwrap_or(true),
    };
    let account = cx.services()?.auth.create_account(account, caller.actor()).await?;
    ApiResponse::created(&User::from(&account))
}

async fn change(Admin(caller): Admin, mut cx: RequestContext) -> HandlerResult {
    let change: UserChange = cx.json(SMALL_BODY_BYTES).await?;
    let account = cx.services()?.auth.change_account(&cx.username(), change.into(), caller.actor()).await?;
    ApiResponse::ok(&User::from(&account))
}

async fn delete(Admin(caller): Admin, mut cx: RequestContext) -> HandlerResult {
    cx.no_body().await?;
    let username = cx.username();
    let services = cx.services()?;
    let account = services.auth.account(&username).await?;
    services.auth.delete_account(&username, caller.actor()).await?;
    if let Some(account) = account
        && let Err(error) = services.spaces.forget_account(&account.id).await
    {
        // Nobody has the rights of memberships that remain: a later account has another id.
        tracing::warn!(%error, account = account.id, "cannot remove the memberships of a deleted account");
    }
    first_admin::remove_password_file(&cx.state().options, &username).await;
    ApiResponse::ok(&DeletedUser { username, deleted: true })
}

async fn reset_password(Admin(caller): Admin, mut cx: RequestContext) -> HandlerResult {
    let NewPassword { new_password } = cx.json(SMALL_BODY_BYTES).await?;
    let username = cx.username();
    let account = cx.services()?.auth.reset_password(&username, &new_password.0, caller.actor()).await?;
    first_admin::remove_password_file(&cx.state().options, &username).await;
    ApiResponse::ok(&User::from(&account))
}

/// Whether the account with this name still has this id. A later account of the same name has another.
pub(super) async fn exists(services: &Services, id: &str, username: &str) -> Result<bool, ApiError> {
    Ok(services.auth.account(username).await?.is_some_and(|account| account.id == id))
}
