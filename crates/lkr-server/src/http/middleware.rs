//! The middleware around every request: request id, in-flight count, access log and metrics.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use actix_web::{
    Error, HttpMessage,
    body::{BodySize, BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::{
        Method,
        header::{self, HeaderName, HeaderValue},
    },
    middleware::Next,
    web::{Bytes, Data},
};

use super::{
    connection::PendingResponses, in_flight::InFlightGuard, request_body::RequestBody, request_id::RequestId,
    request_span::RequestSpan, response_memory::MemoryReservation,
};
use crate::state::AppState;

/// The body of a response. It counts as in flight until it is sent or dropped. It ends only when the request body has
/// ended too, so that a client that sends its whole request before it reads still receives the response.
struct ResponseBody {
    body: BoxBody,
    is_sent: bool,
    in_flight: Option<InFlightGuard>,
    /// Kept even after its end: the server needs to know what is unread when it decides about the connection.
    request_body: Option<RequestBody>,
    /// The memory that the response takes.
    _memory: Option<MemoryReservation>,
}

impl MessageBody for ResponseBody {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        if !self.is_sent {
            if let Some(next) = ready!(Pin::new(&mut self.body).poll_next(cx)) {
                return Poll::Ready(Some(next));
            }
            (self.is_sent, self.in_flight) = (true, None);
        }
        if let Some(request_body) = &self.request_body {
            ready!(request_body.poll_drain(cx));
        }
        Poll::Ready(None)
    }
}

/// Handles a request: assigns its id, counts it, logs it, and drains its body.
pub(crate) async fn request_middleware(
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let id = RequestId::choose(request.headers());
    if let Some(pending) = request.request().conn_data::<PendingResponses>() {
        pending.push(request.method() == Method::HEAD);
    }
    let mut log_entry = AccessLogEntry::new(&request, &id);
    let state = request.app_data::<Data<AppState>>().cloned();
    let in_flight = state.as_ref().map(|state| state.in_flight.enter());
    let request_body = RequestBody::take_from(&mut request);
    request.extensions_mut().insert(id.clone());
    let handled = log_entry.span.handle(next.call(request)).await;
    let mut response = handled?.map_into_boxed_body();
    log_entry.record(&response);
    if let Some(request_body) = &request_body {
        request_body.drain_briefly().await;
    }
    if let Ok(value) = HeaderValue::from_str(id.as_str()) {
        response.headers_mut().insert(HeaderName::from_static("x-request-id"), value);
    }
    if let Some(state) = state {
        log_entry.count(&state);
        if state.is_stopping() {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
    }
    let memory = MemoryReservation::take_from(response.request());
    Ok(response.map_body(|_, body| {
        BoxBody::new(ResponseBody { body, is_sent: false, in_flight, request_body, _memory: memory })
    }))
}

/// A request's line in the log. It is written even if the client disconnects before the response.
struct AccessLogEntry {
    method: Method,
    route: String,
    id: RequestId,
    span: RequestSpan,
    started: Instant,
    /// The status of the response and the time until it was known.
    response: Option<(u16, Duration)>,
}

impl AccessLogEntry {
    fn new(request: &ServiceRequest, id: &RequestId) -> Self {
        let (method, route) = (request.method().clone(), route(request.match_pattern()));
        let span = RequestSpan::begin(request, id);
        Self { method, route, id: id.clone(), span, started: Instant::now(), response: None }
    }

    fn record(&mut self, response: &ServiceResponse<BoxBody>) {
        // Before the handler ran, the route was known by the path alone.
        self.route = route(response.request().match_pattern());
        let status = response.status().as_u16();
        self.response = Some((status, self.started.elapsed()));
        self.span.record(self.method.as_str(), &self.route, status);
    }

    fn count(&self, state: &AppState) {
        if let Some((status, took)) = self.response {
            state.metrics.request(self.method.as_str(), &self.route, status, took);
        }
    }
}

fn route(pattern: Option<String>) -> String {
    pattern.unwrap_or_else(|| "unknown".to_owned())
}

impl Drop for AccessLogEntry {
    fn drop(&mut self) {
        let (method, route, request_id) = (&self.method, &self.route, self.id.as_str());
        let trace_id = self.span.callers_trace.as_deref();
        match self.response {
            Some((status, took)) => {
                tracing::info!(%method, route, status, took_ms = took.as_millis(), request_id, trace_id, "request");
            }
            None => {
                let took = self.started.elapsed();
                let took_ms = took.as_millis();
                tracing::info!(%method, route, took_ms, request_id, trace_id, "request aborted by client");
            }
        }
    }
}
