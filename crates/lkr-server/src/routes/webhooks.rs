use actix_web::http::{Method, StatusCode};
use lkr_auth::{AuditAction, AuditLog};
use lkr_domain::WebhookId;
use lkr_webhooks::{EventKind, NewWebhook, generate_secret};
use serde_json::{Map, json};

use super::SMALL_BODY_BYTES;
use crate::{
    error::{ApiError, Code},
    http::{Admin, Answer, Cx, Endpoint, Reply, cursor},
    openapi::{Doc, Shape, schema},
    wire::webhooks::{DeletedWebhook, ShownWebhook, WebhookInput, WebhookItem, WebhookList},
};

pub(super) fn rows() -> Vec<Endpoint> {
    let doc = |id, summary, shape| Doc::new("Webhooks", id, summary, Shape::Envelope(shape));
    vec![
        Endpoint::new(
            Method::POST,
            "/api/v1/webhooks",
            doc(
                "create_webhook",
                "Makes a webhook: what happens from then on is posted to its address as {event, at, data}, signed in \
                 X-Lkr-Signature, until it answers 2xx; tried for a day",
                schema::<ShownWebhook>(),
            )
            .status(StatusCode::CREATED)
            .body::<WebhookInput>()
            .errors(&[Code::Conflict]),
            create,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/webhooks",
            doc("list_webhooks", "Lists webhooks, the newest first", schema::<WebhookList>()).paged(),
            list,
        ),
        Endpoint::new(
            Method::DELETE,
            "/api/v1/webhooks/{id}",
            doc("delete_webhook", "Deletes a webhook, with all that waits for it", schema::<DeletedWebhook>())
                .errors(&[Code::NotFound]),
            delete,
        ),
    ]
}

async fn create(Admin(caller): Admin, mut cx: Cx) -> Answer {
    let WebhookInput { url, secret, events } = cx.json(SMALL_BODY_BYTES).await?;
    let (secret, shown) = match secret {
        Some(secret) => (secret.0.into(), None),
        None => {
            let made = generate_secret();
            let shown = made.expose().to_owned();
            (made, Some(shown))
        }
    };
    let events: Vec<_> = events.into_iter().map(EventKind::from).collect();
    let names: Vec<_> = events.iter().map(|event| event.name()).collect();
    let (id, created_by) = (WebhookId::new(), caller.account.username.clone());
    // The address may hold what is secret to its receiver.
    let detail = Map::from_iter([("events".to_owned(), json!(names))]);
    let entry = AuditLog::entry(caller.by(), AuditAction::WebhookCreate, &id.to_string(), detail)?;
    let new = NewWebhook { id, url, secret, events, created_by };
    let hook = cx.services()?.webhooks.create(new, vec![entry]).await?;
    Reply::created(&ShownWebhook { item: hook.into(), secret: shown })
}

async fn list(_: Admin, cx: Cx) -> Answer {
    let mut query = cx.query()?;
    let (limit, after) = (query.limit()? as usize, query.offset::<WebhookId>('w')?);
    query.finish()?;
    let mut hooks = cx.services()?.webhooks.list().await?;
    hooks.retain(|hook| after.is_none_or(|after| hook.id < after));
    let more = hooks.len() > limit;
    hooks.truncate(limit);
    let next_offset = hooks.last().filter(|_| more).map(|hook| cursor('w', hook.id));
    Reply::ok(&WebhookList { items: hooks.into_iter().map(WebhookItem::from).collect(), next_offset })
}

async fn delete(Admin(caller): Admin, mut cx: Cx) -> Answer {
    cx.no_body().await?;
    let id: WebhookId = cx.part("id").parse().map_err(|_| ApiError::not_found("no such webhook"))?;
    let entry = AuditLog::entry(caller.by(), AuditAction::WebhookDelete, &id.to_string(), Map::new())?;
    cx.services()?.webhooks.delete(id, vec![entry]).await?;
    Reply::ok(&DeletedWebhook { id: id.to_string(), deleted: true })
}
