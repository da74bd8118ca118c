use actix_web::HttpResponse;

use crate::{
    error::ApiError,
    http::{Answer, Cx, Open, Reply, Unlisted},
    openapi,
    wire::ops::{Alive, Readiness},
};

pub(super) async fn openapi(_: Unlisted, cx: Cx) -> Answer {
    cx.no_query()?;
    let text = document()?;
    Ok(Reply::Bare(HttpResponse::Ok().content_type("application/json").body(text)))
}

/// The document as JSON.
pub(super) fn document() -> Result<String, ApiError> {
    openapi::document(&super::endpoints()).to_json().map_err(|error| ApiError::internal(&error))
}

pub(super) async fn healthz(_: Open, _: Cx) -> Answer {
    Reply::ok(&Alive { status: "ok" })
}

pub(super) async fn readyz(_: Open, cx: Cx) -> Answer {
    let services = match cx.services() {
        Ok(services) if !cx.state().is_stopping() => services,
        _ => return Reply::not_ready("starting or stopping", &Readiness::closed()),
    };
    let health = services.kb.health().await;
    let readiness = Readiness::from(&health);
    if readiness.is_down() {
        tracing::warn!(?health, "a store is down");
        return Reply::not_ready("a store is down", &readiness);
    }
    Reply::ok(&readiness)
}

pub(super) async fn metrics(_: Open, cx: Cx) -> Answer {
    if let Ok(services) = cx.services()
        && let Ok(queued) = services.kb.queued().await
    {
        cx.state().metrics.queued(queued);
    }
    let text = cx.state().metrics.text()?;
    Ok(Reply::Bare(HttpResponse::Ok().content_type("text/plain; version=0.0.4; charset=utf-8").body(text)))
}
