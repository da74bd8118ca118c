use std::time::Duration;

use actix_web::http::{Method, StatusCode};
use lkr_auth::{Identity, KeyId};

use super::SMALL_BODY_BYTES;
use crate::{
    error::{ApiError, Code},
    http::{Answer, Cx, Endpoint, Member, Reply, cursor},
    openapi::{Doc, Shape, schema},
    wire::keys::{DeletedKey, KeyInput, KeyItem, KeyList, ShownKey},
};

pub(super) fn rows() -> Vec<Endpoint> {
    let doc = |id, summary, shape| Doc::new("Keys", id, summary, Shape::Envelope(shape));
    vec![
        Endpoint::new(
            Method::POST,
            "/api/v1/auth/keys",
            doc(
                "create_key",
                "Makes a key, and shows it this once; a key makes none that outlives it",
                schema::<ShownKey>(),
            )
            .status(StatusCode::CREATED)
            .body::<KeyInput>()
            .errors(&[Code::Conflict]),
            create,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/auth/keys",
            doc("list_keys", "Lists the account's keys, the newest first", schema::<KeyList>()).paged(),
            list,
        ),
        Endpoint::new(
            Method::DELETE,
            "/api/v1/auth/keys/{id}",
            doc("delete_key", "Ends a key of the account's", schema::<DeletedKey>())
                .errors(&[Code::NotFound]),
            delete,
        ),
    ]
}

async fn create(Member(caller): Member, mut cx: Cx) -> Answer {
    let KeyInput { name, expires_in } = cx.json(SMALL_BODY_BYTES).await?;
    let expires_in = expires_in.map(Duration::from_secs);
    let auth = &cx.services()?.auth;
    let identity = Identity { account: caller.account, credential: caller.credential };
    let made = auth.create_key_with(&identity, &name, expires_in, caller.request_id.as_str()).await?;
    Reply::created(&ShownKey::from(made))
}

async fn list(Member(caller): Member, cx: Cx) -> Answer {
    let mut query = cx.query()?;
    let (limit, after) = (query.limit()?, query.offset::<KeyId>('k')?);
    query.finish()?;
    let page = cx.services()?.auth.keys(&caller.account.username, after, limit as usize).await?;
    Reply::ok(&KeyList {
        items: page.items.into_iter().map(KeyItem::from).collect(),
        next_offset: page.next.map(|id| cursor('k', id)),
    })
}

async fn delete(Member(caller): Member, mut cx: Cx) -> Answer {
    cx.no_body().await?;
    let id: KeyId = cx.part("id").parse().map_err(|_| ApiError::not_found("no such key"))?;
    cx.services()?.auth.delete_key(&caller.account.username, id, caller.by()).await?;
    Reply::ok(&DeletedKey { id: id.to_string(), deleted: true })
}
