use actix_web::http::{Method, StatusCode};
use lkr_auth::{NewAccount, check_username};

use super::SMALL_BODY_BYTES;
use crate::{
    error::{ApiError, Code},
    first_admin,
    http::{Admin, Answer, Cx, Endpoint, Reply, cursor},
    openapi::{Doc, Shape, schema},
    wire::{
        auth::User,
        users::{DeletedUser, NewPassword, NewUser, UserChange, UserList},
    },
};

pub(super) fn rows() -> Vec<Endpoint> {
    let doc = |id, summary, shape| Doc::new("Users", id, summary, Shape::Envelope(shape));
    vec![
        Endpoint::new(
            Method::GET,
            "/api/v1/users",
            doc("list_users", "Lists accounts by name", schema::<UserList>()).paged(),
            list,
        ),
        Endpoint::new(
            Method::POST,
            "/api/v1/users",
            doc("create_user", "Makes an account", schema::<User>())
                .status(StatusCode::CREATED)
                .body::<NewUser>()
                .errors(&[Code::Conflict]),
            create,
        ),
        Endpoint::new(
            Method::PATCH,
            "/api/v1/users/{username}",
            doc(
                "change_user",
                "Changes the role of an account, disables or enables it; disabling ends its sessions",
                schema::<User>(),
            )
            .body::<UserChange>()
            .errors(&[Code::NotFound]),
            change,
        ),
        Endpoint::new(
            Method::DELETE,
            "/api/v1/users/{username}",
            doc("delete_user", "Deletes an account, its sessions and keys", schema::<DeletedUser>())
                .errors(&[Code::NotFound]),
            delete,
        ),
        Endpoint::new(
            Method::POST,
            "/api/v1/users/{username}/password",
            doc(
                "reset_password",
                "Gives an account a password that it has to change, and ends its sessions and keys",
                schema::<User>(),
            )
            .body::<NewPassword>()
            .errors(&[Code::NotFound]),
            reset_password,
        ),
    ]
}

async fn list(_: Admin, cx: Cx) -> Answer {
    let mut query = cx.query()?;
    let (limit, after) = (query.limit()?, query.offset::<String>('u')?);
    query.finish()?;
    if after.as_deref().is_some_and(|name| check_username(name).is_err()) {
        return Err(ApiError::invalid("query parameter offset is wrong: expected a cursor from next_offset"));
    }
    let page = cx.services()?.auth.accounts(after.as_deref(), limit as usize).await?;
    Reply::ok(&UserList {
        items: page.items.iter().map(User::from).collect(),
        next_offset: page.next.map(|name| cursor('u', name)),
    })
}

async fn create(Admin(caller): Admin, mut cx: Cx) -> Answer {
    let input: NewUser = cx.json(SMALL_BODY_BYTES).await?;
    let account = NewAccount {
        username: &input.username,
        password: &input.password.0,
        role: input.role.unwrap_or_default().into(),
        must_change_password: input.must_change_password.unwrap_or(true),
    };
    let account = cx.services()?.auth.create_account(account, caller.by()).await?;
    Reply::created(&User::from(&account))
}

async fn change(Admin(caller): Admin, mut cx: Cx) -> Answer {
    let change: UserChange = cx.json(SMALL_BODY_BYTES).await?;
    let account = cx.services()?.auth.change_account(&cx.username(), change.into(), caller.by()).await?;
    Reply::ok(&User::from(&account))
}

async fn delete(Admin(caller): Admin, mut cx: Cx) -> Answer {
    cx.no_body().await?;
    let username = cx.username();
    cx.services()?.auth.delete_account(&username, caller.by()).await?;
    first_admin::forget_password(&cx.state().options, &username).await;
    Reply::ok(&DeletedUser { username, deleted: true })
}

async fn reset_password(Admin(caller): Admin, mut cx: Cx) -> Answer {
    let NewPassword { new_password } = cx.json(SMALL_BODY_BYTES).await?;
    let username = cx.username();
    let account = cx.services()?.auth.reset_password(&username, &new_password.0, caller.by()).await?;
    first_admin::forget_password(&cx.state().options, &username).await;
    Reply::ok(&User::from(&account))
}
