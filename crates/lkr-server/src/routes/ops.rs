use actix_web::{HttpResponse, http::Method};

use super::pages;
use crate::{
    error::{ApiError, Code},
    http::{Answer, Cx, Endpoint, Open, Reply, Unlisted},
    openapi::{self, Doc, Shape, schema},
    wire::ops::{Alive, EmbeddingItem, Readiness},
};

pub(super) fn rows() -> Vec<Endpoint> {
    let doc = |id, summary, shape| Doc::new("Operations", id, summary, shape);
    vec![
        Endpoint::new(
            Method::GET,
            "/api/v1/openapi.json",
            doc("openapi", "This document", Shape::Bare("application/json")),
            openapi_document,
        ),
        Endpoint::new(
            Method::GET,
            "/healthz",
            doc("healthz", "Whether the process is alive", Shape::Envelope(schema::<Alive>())),
            healthz,
        ),
        Endpoint::new(
            Method::GET,
            "/readyz",
            doc("readyz", "Whether requests can be served", Shape::Envelope(schema::<Readiness>()))
                .also_unready()
                .errors(&[Code::Overloaded]),
            readyz,
        ),
        Endpoint::new(
            Method::GET,
            "/metrics",
            doc("metrics", "Metrics in Prometheus' text format", Shape::Bare("text/plain")),
            metrics,
        ),
        Endpoint::new(
            Method::GET,
            "/docs",
            doc("docs", "The page of this document", Shape::Bare("text/html")),
            pages::docs,
        ),
        Endpoint::new(
            Method::GET,
            "/",
            doc("home", "The page of the service", Shape::Bare("text/html")),
            pages::home,
        ),
    ]
}

async fn openapi_document(_: Unlisted, cx: Cx) -> Answer {
    cx.no_query()?;
    let text = document()?;
    Ok(Reply::Bare(HttpResponse::Ok().content_type("application/json").body(text)))
}

/// The document as JSON.
pub(super) fn document() -> Result<String, ApiError> {
    openapi::document(&super::endpoints()).to_json().map_err(|error| ApiError::internal(&error))
}

async fn healthz(_: Open, _: Cx) -> Answer {
    Reply::ok(&Alive { status: "ok" })
}

async fn readyz(_: Open, cx: Cx) -> Answer {
    let services = match cx.services() {
        Ok(services) if !cx.state().is_stopping() => services,
        _ => return Reply::not_ready("starting or stopping", &Readiness::closed()),
    };
    let health = services.kb.health().await;
    let embedding = services.kb.embedding().await.ok().map(EmbeddingItem::from);
    let readiness = Readiness { embedding, ..Readiness::from(&health) };
    if readiness.is_down() {
        tracing::warn!(?health, "a store is down");
        return Reply::not_ready("a store is down", &readiness);
    }
    Reply::ok(&readiness)
}

async fn metrics(_: Open, cx: Cx) -> Answer {
    if let Ok(services) = cx.services()
        && let Ok(queued) = services.kb.queued().await
    {
        cx.state().metrics.queued(queued);
    }
    let text = cx.state().metrics.text()?;
    Ok(Reply::Bare(HttpResponse::Ok().content_type("text/plain; version=0.0.4; charset=utf-8").body(text)))
}
