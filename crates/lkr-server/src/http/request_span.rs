//! The spans of a request: one for log lines, which then have the request's id, and one for its trace.

use actix_web::dev::ServiceRequest;
use tracing::{Instrument, Span};

use super::request_id::RequestId;
use crate::traces::{parse_traceparent, record_response, request_span};

/// The paths that are called all the time and tell nothing in a trace.
const UNTRACED: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// The spans of a request.
#[derive(Debug)]
pub(super) struct RequestSpan {
    log: Span,
    trace: Span,
    /// The trace that the caller named.
    pub(super) callers_trace: Option<String>,
}

impl RequestSpan {
    /// Begins the spans. They contain the route and no path, which may name documents and accounts.
    pub(super) fn begin(request: &ServiceRequest, id: &RequestId) -> Self {
        let header = request.headers().get("traceparent").and_then(|value| value.to_str().ok());
        let caller = header.and_then(parse_traceparent);
        let callers_trace = caller.as_ref().map(|caller| caller.trace_id().to_string());
        let trace = match UNTRACED.contains(&request.path()) {
            true => Span::none(),
            false => request_span(id.as_str(), request.method().as_str(), caller),
        };
        // Lines have the id even at the level `error`.
        let log = tracing::error_span!(parent: None, "request", request_id = id.as_str());
        Self { log, trace, callers_trace }
    }

    /// Handles the request in the spans.
    pub(super) async fn handle<T>(&self, handling: impl Future<Output = T>) -> T {
        handling.instrument(self.trace.clone()).instrument(self.log.clone()).await
    }

    /// Notes the route and the status.
    pub(super) fn record(&self, method: &str, route: &str, status: u16) {
        record_response(&self.trace, method, route, status);
    }
}
