//! Server-sent events.

use std::time::Duration;

use actix_web::{HttpResponse, http::header, web::Bytes};
use futures_util::Stream;
use serde::Serialize;

use super::response::ApiResponse;
use crate::error::ApiError;

/// A comment that keeps an idle connection open.
pub(crate) const KEEP_ALIVE: Bytes = Bytes::from_static(b":\n\n");

/// How often an idle connection gets a keep-alive.
pub(crate) const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// A server-sent event. Serialised JSON contains no line break, so one `data` line is enough.
pub(crate) fn sse_event(name: &str, data: &impl Serialize) -> Result<Bytes, ApiError> {
    let data = serde_json::to_string(data).map_err(|error| ApiError::internal(&error))?;
    Ok(Bytes::from(format!("event: {name}\ndata: {data}\n\n")))
}

/// A response that sends events as they come.
pub(crate) fn sse_response(
    events: impl Stream<Item = Result<Bytes, actix_web::Error>> + 'static,
) -> ApiResponse {
    let response = HttpResponse::Ok()
        .content_type("text/event-stream")
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        // nginx holds back parts of other responses until it has a few kilobytes.
        .insert_header(("x-accel-buffering", "no"))
        .streaming(events);
    ApiResponse::Raw(response)
}
