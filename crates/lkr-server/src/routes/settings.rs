//! The settings that can be changed while the service runs.

use actix_web::http::{
    Method,
    header::{self, HeaderValue},
};
use lkr::Catalog;
use lkr_auth::{AuditAction, AuditLog};
use lkr_settings::{DedupStrategy, IfMatch, Provider, SettingsChange, Snapshot};
use serde_json::{Map, json};

use crate::{
    error::{ApiError, ErrorCode},
    http::{Admin, ApiResponse, Endpoint, HandlerResult, RequestContext, SMALL_BODY_BYTES, Unrestricted},
    model_test,
    openapi::{OperationDoc, ResponseShape, schema},
    wire::{
        settings::{SettingsItem, SettingsSchema, SettingsTested},
        settings_input::{SettingsInput, SettingsTest},
    },
};

const ETAG: (&str, &str) = ("ETag", "The version of the settings. It changes with every change of them.");
const IF_MATCH: (&str, &str) = ("If-Match", "Change the settings only if their ETag is one of these.");

pub(super) fn endpoints() -> Vec<Endpoint> {
    let doc = |id, summary, shape| OperationDoc::new("Settings", id, summary, ResponseShape::Envelope(shape));
    let changing = |id, summary| {
        let doc = doc(id, summary, schema::<SettingsItem>()).errors(&[ErrorCode::Conflict]);
        doc.header(ETAG.0, ETAG.1).request_header(IF_MATCH.0, IF_MATCH.1)
    };
    vec![
        Endpoint::new(
            Method::GET,
            "/api/v1/settings",
            doc("settings", "Returns the current settings", schema::<SettingsItem>()).header(ETAG.0, ETAG.1),
            get,
        ),
        Endpoint::new(
            Method::PUT,
            "/api/v1/settings",
            changing(
                "change_settings",
                "Changes settings. Keys that are absent or null stay as they are, at every level",
            )
            .body::<SettingsInput>(),
            put,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/settings/schema",
            doc(
                "settings_schema",
                "Returns the allowed values of the settings and their JSON Schema",
                schema::<SettingsSchema>(),
            ),
            get_schema,
        ),
        Endpoint::new(
            Method::POST,
            "/api/v1/settings/reset",
            changing("reset_settings", "Resets all settings to their defaults"),
            reset,
        ),
        Endpoint::new(
            Method::POST,
            "/api/v1/settings/test",
            doc("test_settings", "Tests a model's entry without saving it", schema::<SettingsTested>())
                .body::<SettingsTest>(),
            test,
        ),
    ]
}

async fn get(_: Unrestricted, cx: RequestContext) -> HandlerResult {
    cx.no_query()?;
    settings_response(&*cx.services()?.settings.current().await?)
}

async fn put(Admin(caller): Admin, mut cx: RequestContext) -> HandlerResult {
    let input: SettingsInput = cx.json(SMALL_BODY_BYTES).await?;
    if input.is_empty() {
        return Err(ApiError::invalid(
            "nothing to change: at least one of models, parsers and dedup is required",
        ));
    }
    let change = SettingsChange::from(input);
    let detail = Map::from_iter([("changed".to_owned(), json!(change.paths()))]);
    let entry = AuditLog::entry(caller.actor(), AuditAction::SettingsChange, "settings", detail)?;
    let alongside = [entry].into_iter().chain(Catalog::invalidate_cached_answers()).collect();
    let services = cx.services()?;
    let snapshot = services.settings.update(&change, &if_match(&cx), alongside).await?;
    if change.models.is_some_and(|models| models.embed.is_some()) {
        services.embedder_reconciler.changed(caller.creator()).await;
    }
    settings_response(&snapshot)
}

async fn reset(Admin(caller): Admin, mut cx: RequestContext) -> HandlerResult {
    cx.no_body().await?;
    let entry = AuditLog::entry(caller.actor(), AuditAction::SettingsReset, "settings", Map::new())?;
    let alongside = [entry].into_iter().chain(Catalog::invalidate_cached_answers()).collect();
    let services = cx.services()?;
    let snapshot = services.settings.reset(&if_match(&cx), alongside).await?;
    services.embedder_reconciler.changed(caller.creator()).await;
    settings_response(&snapshot)
}

async fn get_schema(_: Unrestricted, cx: RequestContext) -> HandlerResult {
    cx.no_query()?;
    let settings = &cx.services()?.settings;
    let plugins = settings.plugins().clone();
    ApiResponse::ok(&SettingsSchema {
        llm_providers: Provider::ALL.map(Provider::name).to_vec(),
        pdf_plugins: plugins.pdf,
        docx_plugins: plugins.docx,
        html_plugins: plugins.html,
        ocr_plugins: plugins.ocr,
        dedup_strategies: DedupStrategy::ALL.map(DedupStrategy::name).to_vec(),
        schema: settings.schema(),
    })
}

async fn test(_: Admin, mut cx: RequestContext) -> HandlerResult {
    let input: SettingsTest = cx.json(SMALL_BODY_BYTES).await?;
    let one = "exactly one entry is tested: models with one of embed, summarize, classify and rerank";
    let (name, change) = input.entry().ok_or_else(|| ApiError::invalid(one))?;
    let services = cx.services()?;
    let entry = services.settings.preview(name, &change).await?;
    let result = model_test::test_model(services, name, &entry).await;
    ApiResponse::ok(&SettingsTested {
        ok: result.ok,
        latency_ms: u64::try_from(result.took.as_millis()).unwrap_or(u64::MAX),
        detail: result.detail,
    })
}

fn settings_response(snapshot: &Snapshot) -> HandlerResult {
    let etag = HeaderValue::from_str(snapshot.etag()).map_err(|error| ApiError::internal(&error))?;
    Ok(ApiResponse::ok(&SettingsItem::from(&snapshot.settings))?.header(header::ETAG, etag))
}

/// The condition of `If-Match`. Settings always exist, so `*` always holds.
fn if_match(cx: &RequestContext) -> IfMatch {
    let tags: Vec<_> =
        cx.header(header::IF_MATCH).flat_map(|value| value.split(',')).map(str::trim).collect();
    if tags.is_empty() || tags.contains(&"*") {
        return IfMatch::Any;
    }
    IfMatch::Tags(tags.into_iter().map(str::to_owned).collect())
}
