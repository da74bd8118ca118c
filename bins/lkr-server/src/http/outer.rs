//! What surrounds every request: its id, its place among those in flight, its line in the log and its metrics.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Instant,
};

use actix_web::{
    Error, HttpMessage,
    body::{BodySize, BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::header::{self, HeaderName, HeaderValue},
    middleware::Next,
    web::{Bytes, Data},
};

use super::RequestId;
use crate::state::AppState;

/// How many requests are in flight, their bodies included.
#[derive(Debug, Clone, Default)]
pub(crate) struct InFlight(Arc<AtomicUsize>);

impl InFlight {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    fn enter(&self) -> Ticket {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ticket(self.clone())
    }
}

/// Counts a request as long as it lives.
struct Ticket(InFlight);

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A body that counts as in flight until it is sent or dropped.
struct Counted {
    body: BoxBody,
    _ticket: Ticket,
}

impl MessageBody for Counted {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(cx)
    }
}

/// Surrounds a request.
pub(crate) async fn outer(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let started = Instant::now();
    let id = RequestId::choose(request.headers());
    let state = request.app_data::<Data<AppState>>().cloned();
    let ticket = state.as_ref().map(|state| state.in_flight.enter());
    request.extensions_mut().insert(id.clone());
    let mut response = next.call(request).await?.map_into_boxed_body();
    if let Ok(value) = HeaderValue::from_str(id.as_str()) {
        response.headers_mut().insert(HeaderName::from_static("x-request-id"), value);
    }
    if let Some(state) = state {
        report(&state, &response, &id, started);
        if state.is_stopping() || may_have_more(&response) {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
    }
    Ok(match ticket {
        Some(ticket) => response.map_body(|_, body| BoxBody::new(Counted { body, _ticket: ticket })),
        None => response,
    })
}

/// Whether a refused request may have a body that nobody has read to its end, and that does not say where its end is:
/// then neither side would ever know when the next request begins.
fn may_have_more(response: &ServiceResponse<BoxBody>) -> bool {
    let status = response.status();
    let failed = status.is_client_error() || status.is_server_error();
    failed && response.request().headers().contains_key(header::TRANSFER_ENCODING)
}

fn report(state: &AppState, response: &ServiceResponse<BoxBody>, id: &RequestId, started: Instant) {
    let request = response.request();
    let (route, status, took) = (request.match_pattern(), response.status().as_u16(), started.elapsed());
    let route = route.as_deref().unwrap_or("unknown");
    state.metrics.request(request.method().as_str(), route, status, took);
    tracing::info!(
        method = %request.method(),
        route,
        status,
        took_ms = took.as_millis(),
        request_id = id.as_str(),
        "request"
    );
}
