use actix_web::http::{
    Method,
    header::{self, HeaderValue},
};
use lkr::Catalog;
use lkr_auth::{AuditAction, AuditLog};
use lkr_settings::{DedupStrategy, IfMatch, Provider, SettingsChange, Snapshot};
use serde_json::{Map, json};

use super::SMALL_BODY_BYTES;
use crate::{
    error::{ApiError, Code},
    http::{Admin, Answer, Cx, Endpoint, Member, Reply},
    models,
    openapi::{Doc, Shape, schema},
    wire::{
        settings::{SettingsItem, SettingsSchema, SettingsTested},
        settings_input::{SettingsInput, SettingsTest},
    },
};

const ETAG: (&str, &str) = ("ETag", "Changes with every change of the settings.");
const IF_MATCH: (&str, &str) = ("If-Match", "Change the settings only where their ETag is one of these.");

pub(super) fn rows() -> Vec<Endpoint> {
    let doc = |id, summary, shape| Doc::new("Settings", id, summary, Shape::Envelope(shape));
    let changing = |id, summary| {
        let doc = doc(id, summary, schema::<SettingsItem>()).errors(&[Code::Conflict]);
        doc.header(ETAG.0, ETAG.1).request_header(IF_MATCH.0, IF_MATCH.1)
    };
    vec![
        Endpoint::new(
            Method::GET,
            "/api/v1/settings",
            doc("settings", "The settings in force", schema::<SettingsItem>()).header(ETAG.0, ETAG.1),
            get,
        ),
        Endpoint::new(
            Method::PUT,
            "/api/v1/settings",
            changing("change_settings", "Changes settings: what is left out or null stays, at every depth")
                .body::<SettingsInput>(),
            put,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/settings/schema",
            doc("settings_schema", "What settings can be chosen among", schema::<SettingsSchema>()),
            get_schema,
        ),
        Endpoint::new(
            Method::POST,
            "/api/v1/settings/reset",
            changing("reset_settings", "Takes all settings back to their defaults"),
            reset,
        ),
        Endpoint::new(
            Method::POST,
            "/api/v1/settings/test",
            doc("test_settings", "Tries a model's entry out without saving it", schema::<SettingsTested>())
                .body::<SettingsTest>(),
            test,
        ),
    ]
}

async fn get(_: Member, cx: Cx) -> Answer {
    cx.no_query()?;
    answer(&*cx.services()?.settings.current().await?)
}

async fn put(Admin(caller): Admin, mut cx: Cx) -> Answer {
    let input: SettingsInput = cx.json(SMALL_BODY_BYTES).await?;
    if input.is_empty() {
        return Err(ApiError::invalid("nothing to change: models, parsers or dedup is needed"));
    }
    let change = SettingsChange::from(input);
    let detail = Map::from_iter([("changed".to_owned(), json!(change.paths()))]);
    let entry = AuditLog::entry(caller.by(), AuditAction::SettingsChange, "settings", detail)?;
    let alongside = vec![entry, Catalog::stale_answers()];
    let services = cx.services()?;
    let snapshot = services.settings.update(&change, &if_match(&cx), alongside).await?;
    if change.models.is_some_and(|models| models.embed.is_some()) {
        services.embedders.changed(caller.creator()).await;
    }
    answer(&snapshot)
}

async fn reset(Admin(caller): Admin, mut cx: Cx) -> Answer {
    cx.no_body().await?;
    let entry = AuditLog::entry(caller.by(), AuditAction::SettingsReset, "settings", Map::new())?;
    let alongside = vec![entry, Catalog::stale_answers()];
    let services = cx.services()?;
    let snapshot = services.settings.reset(&if_match(&cx), alongside).await?;
    services.embedders.changed(caller.creator()).await;
    answer(&snapshot)
}

async fn get_schema(_: Member, cx: Cx) -> Answer {
    cx.no_query()?;
    let settings = &cx.services()?.settings;
    let plugins = settings.plugins().clone();
    Reply::ok(&SettingsSchema {
        llm_providers: Provider::ALL.map(Provider::name).to_vec(),
        pdf_plugins: plugins.pdf,
        docx_plugins: plugins.docx,
        html_plugins: plugins.html,
        ocr_plugins: plugins.ocr,
        dedup_strategies: DedupStrategy::ALL.map(DedupStrategy::name).to_vec(),
        schema: settings.schema(),
    })
}

async fn test(_: Admin, mut cx: Cx) -> Answer {
    let input: SettingsTest = cx.json(SMALL_BODY_BYTES).await?;
    let one = "one entry is tried at a time: models with one of embed, summarize, classify and rerank";
    let (name, change) = input.entry().ok_or_else(|| ApiError::invalid(one))?;
    let services = cx.services()?;
    let entry = services.settings.preview(name, &change).await?;
    let tried = models::try_out(services, name, &entry).await;
    Reply::ok(&SettingsTested {
        ok: tried.ok,
        latency_ms: u64::try_from(tried.took.as_millis()).unwrap_or(u64::MAX),
        detail: tried.detail,
    })
}

fn answer(snapshot: &Snapshot) -> Answer {
    let etag = HeaderValue::from_str(snapshot.etag()).map_err(|error| ApiError::internal(&error))?;
    Ok(Reply::ok(&SettingsItem::from(&snapshot.settings))?.header(header::ETAG, etag))
}

/// What `If-Match` asks for. There always are settings, so that `*` asks for nothing.
fn if_match(cx: &Cx) -> IfMatch {
    let tags: Vec<_> =
        cx.header(header::IF_MATCH).flat_map(|value| value.split(',')).map(str::trim).collect();
    if tags.is_empty() || tags.contains(&"*") {
        return IfMatch::Any;
    }
    IfMatch::Tags(tags.into_iter().map(str::to_owned).collect())
}
