use actix_web::http::Method;
use lkr_auth::{AuditAction, AuditFilter, AuditId};

use crate::{
    http::{Admin, Answer, Cx, Endpoint, Reply, cursor},
    openapi::{Doc, Shape, schema},
    wire::audit::{AuditItem, AuditList},
};

pub(super) fn rows() -> Vec<Endpoint> {
    let doc = Doc::new(
        "Operations",
        "audit",
        "Who changed what, the newest first",
        Shape::Envelope(schema::<AuditList>()),
    );
    let doc = doc
        .text("actor", "Only what this account did.")
        .text("action", "Only actions of this name, such as account.create.")
        .paged();
    vec![Endpoint::new(Method::GET, "/api/v1/audit", doc, list)]
}

async fn list(_: Admin, cx: Cx) -> Answer {
    let mut query = cx.query()?;
    let (limit, after) = (query.limit()?, query.offset::<AuditId>('a')?);
    let names: Vec<_> = AuditAction::ALL.iter().map(|action| action.name()).collect();
    let filter = AuditFilter {
        actor: query.text("actor"),
        action: query.read("action", &format!("one of {}", names.join(", ")), AuditAction::from_name)?,
    };
    query.finish()?;
    let page = cx.services()?.auth.audit().list(&filter, after, limit as usize).await?;
    Reply::ok(&AuditList {
        items: page.items.into_iter().map(AuditItem::from).collect(),
        next_offset: page.next.map(|id| cursor('a', id)),
    })
}
