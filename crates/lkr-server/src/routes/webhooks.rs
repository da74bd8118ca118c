//! Webhooks.

use actix_web::http::{Method, StatusCode};
use lkr_auth::{AuditAction, AuditLog};
use lkr_domain::{EventId, WebhookId};
use lkr_webhooks::{EventKind, NewWebhook, generate_secret};
use serde_json::{Map, json};

use crate::{
    error::{ApiError, ErrorCode},
    http::{Admin, ApiResponse, Endpoint, HandlerResult, RequestContext, SMALL_BODY_BYTES, cursor},
    openapi::{CursorOf, OperationDoc, ResponseShape, schema},
    wire::webhooks::{
        DeletedWebhook, DeliveryItem, DeliveryList, ShownWebhook, WebhookInput, WebhookItem, WebhookList,
    },
};

/// A page of deliveries has all that are logged, unless the request limits it.
const DELIVERIES: u32 = 100;

pub(super) fn endpoints() -> Vec<Endpoint> {
    let doc = |id, summary, shape| OperationDoc::new("Webhooks", id, summary, ResponseShape::Envelope(shape));
    vec![
        Endpoint::new(
            Method::POST,
            "/api/v1/webhooks",
            doc(
                "create_webhook",
                "Creates a webhook. Each later event is posted to its URL as {event, at, data}, signed in \
                 X-Lkr-Signature, and retried for a day until the receiver answers 2xx",
                schema::<ShownWebhook>(),
            )
            .status(StatusCode::CREATED)
            .body::<WebhookInput>()
            .errors(&[ErrorCode::NotFound, ErrorCode::Conflict]),
            create,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/webhooks",
            doc("list_webhooks", "Lists webhooks, newest first", schema::<WebhookList>())
                .paged('w', CursorOf::Id),
            list,
        ),
        Endpoint::new(
            Method::DELETE,
            "/api/v1/webhooks/{id}",
            doc("delete_webhook", "Deletes a webhook and its pending deliveries", schema::<DeletedWebhook>())
                .errors(&[ErrorCode::NotFound]),
            delete,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/webhooks/{id}/deliveries",
            doc(
                "list_deliveries",
                "Lists the last 100 deliveries of a webhook, the newest event first",
                schema::<DeliveryList>(),
            )
            .query_number("limit", "The most items that the page may have.", 1..=100, DELIVERIES)
            .query_cursor('v', CursorOf::Id)
            .errors(&[ErrorCode::NotFound]),
            deliveries,
        ),
    ]
}

async fn create(Admin(caller): Admin, mut cx: RequestContext) -> HandlerResult {
    let WebhookInput { url, secret, events, space } = cx.json(SMALL_BODY_BYTES).await?;
    let space = cx.readable_space(&caller, space).await?;
    let (secret, shown) = match secret {
        Some(secret) => (secret.0.into(), None),
        None => {
            let generated = generate_secret();
            let shown = generated.expose().to_owned();
            (generated, Some(shown))
        }
    };
    let events: Vec<_> = events.into_iter().map(EventKind::from).collect();
    let names: Vec<_> = events.iter().map(|event| event.name()).collect();
    let (id, created_by) = (WebhookId::new(), caller.account.username.clone());
    // The URL is not logged: it may contain a secret.
    let mut detail = Map::from_iter([("events".to_owned(), json!(names))]);
    detail.extend(space.iter().map(|space| ("space".to_owned(), json!(space))));
    let entry = AuditLog::entry(caller.actor(), AuditAction::WebhookCreate, &id.to_string(), detail)?;
    let new = NewWebhook { id, url, secret, events, space, created_by };
    let webhook = cx.services()?.webhooks.create(new, vec![entry]).await?;
    ApiResponse::created(&ShownWebhook { item: webhook.into(), secret: shown })
}

async fn list(_: Admin, cx: RequestContext) -> HandlerResult {
    let mut query = cx.query()?;
    let (limit, after) = (query.limit()? as usize, query.offset::<WebhookId>('w')?);
    query.finish()?;
    let mut webhooks = cx.services()?.webhooks.list().await?;
    webhooks.retain(|webhook| after.is_none_or(|after| webhook.id < after));
    let has_more = webhooks.len() > limit;
    webhooks.truncate(limit);
    let next_offset = webhooks.last().filter(|_| has_more).map(|webhook| cursor('w', webhook.id));
    ApiResponse::ok(&WebhookList {
        items: webhooks.into_iter().map(WebhookItem::from).collect(),
        next_offset,
    })
}

async fn delete(Admin(caller): Admin, mut cx: RequestContext) -> HandlerResult {
    cx.no_body().await?;
    let id = webhook_id(&cx)?;
    let entry = AuditLog::entry(caller.actor(), AuditAction::WebhookDelete, &id.to_string(), Map::new())?;
    cx.services()?.webhooks.delete(id, vec![entry]).await?;
    ApiResponse::ok(&DeletedWebhook { id: id.to_string(), deleted: true })
}

async fn deliveries(_: Admin, cx: RequestContext) -> HandlerResult {
    let mut query = cx.query()?;
    let (limit, after) = (query.limit_or(DELIVERIES)? as usize, query.offset::<EventId>('v')?);
    query.finish()?;
    let mut deliveries = cx.services()?.webhooks.deliveries(webhook_id(&cx)?).await?;
    deliveries.retain(|delivery| after.is_none_or(|after| delivery.id < after));
    let has_more = deliveries.len() > limit;
    deliveries.truncate(limit);
    let next_offset = deliveries.last().filter(|_| has_more).map(|delivery| cursor('v', delivery.id));
    ApiResponse::ok(&DeliveryList {
        items: deliveries.into_iter().map(DeliveryItem::from).collect(),
        next_offset,
    })
}

/// The webhook that the path names. A malformed id is the id of no webhook.
fn webhook_id(cx: &RequestContext) -> Result<WebhookId, ApiError> {
    cx.path_part("id").parse().map_err(|_| ApiError::not_found("no such webhook"))
}
