//! API keys.

use std::time::Duration;

use actix_web::http::{Method, StatusCode};
use lkr_auth::{Identity, KeyId, KeyRequest, KeyScope};

use crate::{
    error::{ApiError, ErrorCode},
    http::{
        ApiResponse, Endpoint, HandlerResult, RequestContext, SMALL_BODY_BYTES, Unrestricted, cursor,
        space_names,
    },
    openapi::{CursorOf, OperationDoc, ResponseShape, schema},
    wire::keys::{DeletedKey, KeyInput, KeyItem, KeyList, ScopeInput, ShownKey},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let doc = |id, summary, shape| OperationDoc::new("Keys", id, summary, ResponseShape::Envelope(shape));
    vec![
        Endpoint::new(
            Method::POST,
            "/api/v1/auth/keys",
            doc(
                "create_key",
                "Creates an API key and shows it once. A key created with another key expires no later than that key. \
                 With spaces or the scope read, the key is restricted: it sees no other space, and it manages nothing",
                schema::<ShownKey>(),
            )
            .status(StatusCode::CREATED)
            .body::<KeyInput>()
            .errors(&[ErrorCode::Conflict, ErrorCode::NotFound]),
            create,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/auth/keys",
            doc("list_keys", "Lists the account's API keys, newest first", schema::<KeyList>()).paged('k', CursorOf::Id),
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

async fn create(Unrestricted(caller): Unrestricted, mut cx: RequestContext) -> HandlerResult {
    let KeyInput { name, expires_in, spaces, scope } = cx.json(SMALL_BODY_BYTES).await?;
    let services = cx.services()?;
    // The caller must be able to read each space now; what it loses later, the key loses too.
    let spaces = match spaces.map(space_names).transpose()? {
        Some(names) => Some(cx.rights_to_write(Some(&caller)).await?.named(&names)?),
        None => None,
    };
    let scope = KeyScope { spaces, write: scope.unwrap_or_default() == ScopeInput::Write };
    let request = KeyRequest { name: &name, expires_in: expires_in.map(Duration::from_secs), scope };
    let identity = Identity { account: caller.account, credential: caller.credential };
    let created = services.auth.create_key_with(&identity, request, caller.request_id.as_str()).await?;
    ApiResponse::created(&ShownKey::from(created))
}

async fn list(Unrestricted(caller): Unrestricted, cx: RequestContext) -> HandlerResult {
    let mut query = cx.query()?;
    let (limit, after) = (query.limit()?, query.offset::<KeyId>('k')?);
    query.finish()?;
    let page = cx.services()?.auth.keys(&caller.account.username, after, limit as usize).await?;
    ApiResponse::ok(&KeyList {
        items: page.items.into_iter().map(KeyItem::from).collect(),
        next_offset: page.next.map(|id| cursor('k', id)),
    })
}

async fn delete(Unrestricted(caller): Unrestricted, mut cx: RequestContext) -> HandlerResult {
    cx.no_body().await?;
    let id: KeyId = cx.path_part("id").parse().map_err(|_| ApiError::not_found("no such key"))?;
    cx.services()?.auth.delete_key(&caller.account.username, id, caller.actor()).await?;
    ApiResponse::ok(&DeletedKey { id: id.to_string(), deleted: true })
}
