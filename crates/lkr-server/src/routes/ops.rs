//! Health, readiness, metrics and the OpenAPI document.

use actix_web::{HttpResponse, http::Method};

use crate::{
    error::{ApiError, ErrorCode},
    http::{ApiResponse, Endpoint, HandlerResult, Public, PublicVerified, RequestContext},
    openapi::{OperationDoc, ResponseShape, schema},
    wire::ops::{Alive, EmbeddingItem, Readiness},
};

/// `openapi_json` makes the OpenAPI document.
pub(super) fn endpoints(openapi_json: fn() -> Result<String, ApiError>) -> Vec<Endpoint> {
    let doc = |id, summary, shape| OperationDoc::new("Operations", id, summary, shape);
    vec![
        Endpoint::new(
            Method::GET,
            "/api/v1/openapi.json",
            doc("openapi", "Returns this document", ResponseShape::Raw("application/json")),
            move |permission, cx| openapi(permission, cx, openapi_json),
        ),
        Endpoint::new(
            Method::GET,
            "/healthz",
            doc(
                "healthz",
                "Reports whether the process is alive",
                ResponseShape::Envelope(schema::<Alive>()),
            ),
            healthz,
        ),
        Endpoint::new(
            Method::GET,
            "/readyz",
            doc(
                "readyz",
                "Reports whether requests can be served",
                ResponseShape::Envelope(schema::<Readiness>()),
            )
            .unready_payload()
            .errors(&[ErrorCode::Overloaded]),
            readyz,
        ),
        Endpoint::new(
            Method::GET,
            "/metrics",
            doc("metrics", "Returns metrics in Prometheus' text format", ResponseShape::Raw("text/plain")),
            metrics,
        ),
    ]
}

async fn openapi(
    _: PublicVerified,
    cx: RequestContext,
    openapi_json: fn() -> Result<String, ApiError>,
) -> HandlerResult {
    cx.no_query()?;
    let json = openapi_json()?;
    Ok(ApiResponse::Raw(HttpResponse::Ok().content_type("application/json").body(json)))
}

async fn healthz(_: Public, _: RequestContext) -> HandlerResult {
    ApiResponse::ok(&Alive { status: "ok" })
}

async fn readyz(_: Public, cx: RequestContext) -> HandlerResult {
    let services = match cx.services() {
        Ok(services) if !cx.state().is_stopping() => services,
        _ => return ApiResponse::not_ready("starting or stopping", &Readiness::closed()),
    };
    let health = services.kb.health().await;
    let embedding = services.kb.embedding().await.ok().map(EmbeddingItem::from);
    let readiness = Readiness { embedding, ..Readiness::from(&health) };
    if readiness.is_down() {
        tracing::warn!(?health, "a store is down");
        return ApiResponse::not_ready("a store is down", &readiness);
    }
    ApiResponse::ok(&readiness)
}

async fn metrics(_: Public, cx: RequestContext) -> HandlerResult {
    if let Ok(services) = cx.services()
        && let Ok(queued) = services.kb.queued_tasks().await
    {
        cx.state().metrics.queued(queued);
    }
    let text = cx.state().metrics.text()?;
    let response = HttpResponse::Ok().content_type("text/plain; version=0.0.4; charset=utf-8").body(text);
    Ok(ApiResponse::Raw(response))
}
