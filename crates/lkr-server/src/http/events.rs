//! Server-sent events.

use actix_web::{HttpResponse, http::header, web::Bytes};
use futures_util::Stream;
use serde::Serialize;

use super::Reply;
use crate::error::ApiError;

/// A server-sent event. JSON holds no line break, so that one line of data is enough.
pub(crate) fn event(name: &str, data: &impl Serialize) -> Result<Bytes, ApiError> {
    let data = serde_json::to_string(data).map_err(|error| ApiError::internal(&error))?;
    Ok(Bytes::from(format!("event: {name}\ndata: {data}\n\n")))
}

/// What keeps a connection open on which nothing happens.
pub(crate) const KEEP_ALIVE: Bytes = Bytes::from_static(b":\n\n");

/// An answer of events as they come.
pub(crate) fn events(events: impl Stream<Item = Result<Bytes, actix_web::Error>> + 'static) -> Reply {
    let response = HttpResponse::Ok()
        .content_type("text/event-stream")
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .streaming(events);
    Reply::Bare(response)
}
