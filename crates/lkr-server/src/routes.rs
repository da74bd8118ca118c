//! The route table: each route with its permission and its documentation. The application and the OpenAPI document are
//! built from it. Each row is defined beside its handler.

mod assets;
mod audit;
mod auth;
mod backup;
mod bulk_delete;
mod console;
mod dify;
mod docs;
mod document_pages;
mod documents;
mod eval;
mod files;
mod groups;
mod keys;
mod knowledge;
mod mcp;
mod members;
mod openai;
mod ops;
mod pages;
mod search;
mod settings;
mod spaces;
mod submissions;
mod task_events;
mod tasks;
mod users;
mod webhooks;

use std::sync::OnceLock;

pub(crate) use console::page_of_path;

use crate::{error::ApiError, http::Endpoint, openapi};

/// Every route. Fixed paths precede those with a parameter in the same place.
#[must_use]
pub fn endpoints() -> Vec<Endpoint> {
    let groups = [
        auth::endpoints(),
        keys::endpoints(),
        users::endpoints(),
        spaces::endpoints(),
        members::endpoints(),
        groups::endpoints(),
        audit::endpoints(),
        settings::endpoints(),
        webhooks::endpoints(),
        task_events::endpoints(),
        tasks::endpoints(),
        bulk_delete::endpoints(),
        files::endpoints(),
        submissions::endpoints(),
        documents::endpoints(),
        document_pages::endpoints(),
        search::endpoints(),
        mcp::endpoints(),
        openai::endpoints(),
        dify::endpoints(),
        knowledge::endpoints(),
        eval::endpoints(),
        backup::endpoints(),
        ops::endpoints(openapi_json),
        docs::endpoints(openapi_json),
        console::endpoints(),
    ];
    groups.into_iter().flatten().collect()
}

/// The routes that tell of the process itself: its health and its metrics.
#[must_use]
pub(crate) fn process_endpoints() -> Vec<Endpoint> {
    let about_process = |endpoint: &Endpoint| matches!(endpoint.path, "/healthz" | "/readyz" | "/metrics");
    ops::endpoints(openapi_json).into_iter().filter(about_process).collect()
}

/// The OpenAPI document of all routes, as JSON. It is made once, because anybody may ask for it.
fn openapi_json() -> Result<&'static str, ApiError> {
    static JSON: OnceLock<String> = OnceLock::new();
    if let Some(json) = JSON.get() {
        return Ok(json);
    }
    let json = openapi::document(&endpoints()).to_json().map_err(|error| ApiError::internal(&error))?;
    Ok(JSON.get_or_init(|| json))
}
