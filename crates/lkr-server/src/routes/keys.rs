//! API keys.

use std::time::Duration;

use actix_web::http::{Method, StatusCode};
use lkr_auth::{Identity, KeyId};

use crate::{
    error::{ApiError, ErrorCode},
    http::{ApiResponse, Authenticated, Endpoint, HandlerResult, RequestContext, SMALL_BODY_BYTES, cursor},
    openapi::{OperationDoc, ResponseShape, schema},
    wire::keys::{DeletedKey, KeyInput, KeyItem, KeyList, ShownKey},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let doc = |id, summary, shape| OperationDoc::new("Keys", id, summary, ResponseShape::Envelope(shape));
    vec![
        Endpoint::new(
            Method::POST,
            "/api/v1/auth/keys",
            doc(
                "create_key",
                "Creates an API key and shows it once. A key created with another key expires no later than that key",
                schema::<ShownKey>(),
            )
            .status(StatusCode::CREATED)
            .body::<KeyInput>()
            .errors(&[ErrorCode::Conflict]),
            create,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/auth/keys",
            doc("list_keys", "Lists the account's API keys, newest first", schema::<KeyList>()).paged(),
            list,
        ),
        Endpoint::new(
            Method::DELETE,
            "/api/v1/auth/keys/{id}",
            doc("delete_key", "Revokes an API key of the account", schema::<DeletedKey>())
                .errors(&[ErrorCode::NotFound]),
            delete,
        ),
    ]
}

async fn create(Authenticated(caller): Authenticated, mut cx: RequestContext) -> HandlerResult {
    let KeyInput { name, expires_in } = cx.json(SMALL_BODY_BYTES).await?;
    let expires_in = expires_in.map(Duration::from_secs);
    let auth = &cx.services()?.auth;
    let identity = Identity { account: caller.account, credential: caller.credential };
    let created = auth.create_key_with(&identity, &name, expires_in, caller.request_id.as_str()).await?;
    ApiResponse::created(&ShownKey::from(created))
}

async fn list(Authenticated(caller): Authenticated, cx: RequestContext) -> HandlerResult {
    let mut query = cx.query()?;
    let (limit, after) = (query.limit()?, query.offset::<KeyId>('k')?);
    query.finish()?;
    let page = cx.services()?.auth.keys(&caller.account.username, after, limit as usize).await?;
    ApiResponse::ok(&KeyList {
        items: page.items.into_iter().map(KeyItem::from).collect(),
        next_offset: page.next.map(|id| cursor('k', id)),
    })
}

async fn delete(Authenticated(caller): Authenticated, mut cx: RequestContext) -> HandlerResult {
    cx.no_body().await?;
    let id: KeyId = cx.path_part("id").parse().map_err(|_| ApiError::not_found("no such key"))?;
    cx.services()?.auth.delete_key(&caller.account.username, id, caller.actor()).await?;
    ApiResponse::ok(&DeletedKey { id: id.to_string(), deleted: true })
}
