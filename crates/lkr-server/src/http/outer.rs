//! What surrounds every request: its id, its place among those in flight, its line in the log and its metrics.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
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

use super::{RequestId, incoming::Incoming, room::Share};
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

/// The body of an answer. It counts as in flight until it is sent or dropped, and ends when the request's body has
/// ended too: who sends a request to its end before it listens hears the answer all the same.
struct Outgoing {
    body: BoxBody,
    is_sent: bool,
    ticket: Option<Ticket>,
    /// Held although it may have ended: the server has to know of what is left when it decides on the connection.
    incoming: Option<Incoming>,
    /// The memory that it takes.
    _share: Option<Share>,
}

impl MessageBody for Outgoing {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        if !self.is_sent {
            if let Some(next) = ready!(Pin::new(&mut self.body).poll_next(cx)) {
                return Poll::Ready(Some(next));
            }
            (self.is_sent, self.ticket) = (true, None);
        }
        if let Some(incoming) = &self.incoming {
            ready!(incoming.poll_drained(cx));
        }
        Poll::Ready(None)
    }
}

/// Surrounds a request.
pub(crate) async fn outer(
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let id = RequestId::choose(request.headers());
    let mut line = Line::new(&request, &id);
    let state = request.app_data::<Data<AppState>>().cloned();
    let ticket = state.as_ref().map(|state| state.in_flight.enter());
    let incoming = Incoming::take(&mut request);
    request.extensions_mut().insert(id.clone());
    let mut response = next.call(request).await?.map_into_boxed_body();
    line.answered(&response);
    if let Some(incoming) = &incoming {
        incoming.drain_soon().await;
    }
    if let Ok(value) = HeaderValue::from_str(id.as_str()) {
        response.headers_mut().insert(HeaderName::from_static("x-request-id"), value);
    }
    if let Some(state) = state {
        line.count(&state);
        if state.is_stopping() {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
    }
    let share = Share::of(response.request());
    Ok(response
        .map_body(|_, body| BoxBody::new(Outgoing { body, is_sent: false, ticket, incoming, _share: share })))
}

/// What the log says of a request, also of one whose client hangs up before it is answered.
struct Line {
    method: Method,
    route: String,
    id: RequestId,
    started: Instant,
    /// The status of the answer, and after how long it was known.
    answer: Option<(u16, Duration)>,
}

impl Line {
    fn new(request: &ServiceRequest, id: &RequestId) -> Self {
        let (method, id) = (request.method().clone(), id.clone());
        Self { method, route: route(request.match_pattern()), id, started: Instant::now(), answer: None }
    }

    fn answered(&mut self, response: &ServiceResponse<BoxBody>) {
        // The path alone told the route until now.
        self.route = route(response.request().match_pattern());
        self.answer = Some((response.status().as_u16(), self.started.elapsed()));
    }

    fn count(&self, state: &AppState) {
        if let Some((status, took)) = self.answer {
            state.metrics.request(self.method.as_str(), &self.route, status, took);
        }
    }
}

fn route(pattern: Option<String>) -> String {
    pattern.unwrap_or_else(|| "unknown".to_owned())
}

impl Drop for Line {
    fn drop(&mut self) {
        let (method, route, request_id) = (&self.method, &self.route, self.id.as_str());
        match self.answer {
            Some((status, took)) => {
                tracing::info!(%method, route, status, took_ms = took.as_millis(), request_id, "request");
            }
            None => {
                let took = self.started.elapsed();
                tracing::info!(%method, route, took_ms = took.as_millis(), request_id, "request cut off");
            }
        }
    }
}
