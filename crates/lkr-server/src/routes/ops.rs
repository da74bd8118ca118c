//! Health, readiness, metrics and the OpenAPI document.

use std::time::Duration;

use actix_web::{HttpResponse, http::Method};
use tokio::time::timeout;

use crate::{
    error::{ApiError, ErrorCode},
    http::{ApiResponse, Endpoint, HandlerResult, Public, PublicVerified, RequestContext},
    metrics::{ProcessStatus, Snapshot},
    openapi::{OperationDoc, ResponseShape, schema},
    state::Services,
    wire::ops::{Alive, EmbeddingItem, QueueItem, Readiness},
};

/// How long `/readyz` waits for what it shows beside the checks, as for the checks themselves.
const STATUS_LIMIT: Duration = Duration::from_secs(2);

/// Returns the OpenAPI document as JSON.
pub(super) type OpenApiJson = fn() -> Result<&'static str, ApiError>;

/// `openapi_json` returns the OpenAPI document.
pub(super) fn endpoints(openapi_json: OpenApiJson) -> Vec<Endpoint> {
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

async fn openapi(_: PublicVerified, cx: RequestContext, openapi_json: OpenApiJson) -> HandlerResult {
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
    let kb = &services.kb;
    let goes_on = match &services.fallback {
        // Nothing goes on from memory once Redis has come back without its records.
        Some(fallback) => !fallback.status().await.is_remote_empty,
        None => false,
    };
    // At once, because each of them waits for a store that is away. Checks of health have a limit of their own.
    let (mut health, embedding, queue) = tokio::join!(
        kb.health(),
        timeout(STATUS_LIMIT, kb.embedding()),
        timeout(STATUS_LIMIT, kb.queue_status()),
    );
    let (embedding, queue) = (embedding.ok().and_then(Result::ok), queue.ok().and_then(Result::ok));
    let mut embedding = embedding.map(EmbeddingItem::from);
    if let Some(model) = services.embedder_reconciler.unreached() {
        let reason =
            format!("the model {model}, which the settings name, cannot be reached; the log has the reason");
        health.embedder.failure.get_or_insert(reason);
        embedding = embedding.map(|embedding| embedding.wanting(model));
    }
    let readiness = Readiness {
        embedding,
        queue: queue.map(QueueItem::from),
        workers: Some(kb.worker_status().into()),
        ..Readiness::new(health, goes_on, kb.ingestion_waits_for())
    };
    if readiness.is_down() {
        tracing::warn!(checks = ?readiness.checks, "a store is down");
        return ApiResponse::not_ready("a store is down", &readiness);
    }
    ApiResponse::ok(&readiness)
}

async fn metrics(_: Public, cx: RequestContext) -> HandlerResult {
    let mut snapshot =
        Snapshot { in_flight: cx.state().in_flight(), process: ProcessStatus::read(), ..Snapshot::default() };
    if let Ok(Services { kb, fallback, .. }) = cx.services() {
        if let Some(fallback) = fallback {
            snapshot.redis = Some(fallback.status().await.into());
        }
        snapshot.queue = kb.queue_status().await.ok();
        snapshot.workers = kb.worker_status();
        snapshot.cache = kb.cache_size();
        snapshot.store_bytes = kb.store_bytes().await.ok().flatten();
    }
    let text = cx.state().metrics.text(&snapshot)?;
    let response = HttpResponse::Ok().content_type("text/plain; version=0.0.4; charset=utf-8").body(text);
    Ok(ApiResponse::Raw(response))
}
