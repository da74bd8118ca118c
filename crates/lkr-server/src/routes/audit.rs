//! The audit log.

use actix_web::http::Method;
use lkr_auth::{AuditAction, AuditFilter, AuditId};

use crate::{
    http::{Admin, ApiResponse, Endpoint, HandlerResult, RequestContext, cursor},
    openapi::{CursorOf, OperationDoc, ResponseShape, schema},
    wire::audit::{AuditItem, AuditList},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let doc = OperationDoc::new(
        "Operations",
        "audit",
        "Lists changes with their actors, newest first",
        ResponseShape::Envelope(schema::<AuditList>()),
    );
    let doc = doc
        .query_text("actor", "Only changes by this account.")
        .query_choice(
            "action",
            "Only actions of this name.",
            AuditAction::ALL.iter().map(|action| action.name()),
        )
        .paged('a', CursorOf::Id);
    vec![Endpoint::new(Method::GET, "/api/v1/audit", doc, list)]
}

async fn list(_: Admin, cx: RequestContext) -> HandlerResult {
    let mut query = cx.query()?;
    let (limit, after) = (query.limit()?, query.offset::<AuditId>('a')?);
    let names: Vec<_> = AuditAction::ALL.iter().map(|action| action.name()).collect();
    let filter = AuditFilter {
        actor: query.text("actor"),
        action: query.parsed("action", &format!("one of {}", names.join(", ")), AuditAction::from_name)?,
    };
    query.finish()?;
    let page = cx.services()?.auth.audit().list(&filter, after, limit as usize).await?;
    ApiResponse::ok(&AuditList {
        items: page.items.into_iter().map(AuditItem::from).collect(),
        next_offset: page.next.map(|id| cursor('a', id)),
    })
}
