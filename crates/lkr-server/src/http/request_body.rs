//! A request's body as it arrives. It is read in bounded time and to its end, even if no handler needs all of it.

use std::{
    cell::RefCell,
    future::{Future, poll_fn},
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
    time::Duration,
};

use actix_web::{
    HttpMessage, HttpRequest,
    dev::{Payload, ServiceRequest},
    error::PayloadError,
    web::Bytes,
};
use futures_util::Stream;
use tokio::time::{Instant, Sleep, sleep_until, timeout};

/// The longest pause between two parts of a body.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);

/// The lowest rate of a body beyond that pause, so that a slow trickle cannot hold a request open. See
/// docs/studies.md#limits-by-client.
const MIN_BYTES_PER_SECOND: u64 = 4 * 1024;

/// The most bytes that are read and discarded.
const MAX_DRAINED_BYTES: u64 = 256 * 1024 * 1024;

/// The longest time that bytes are read and discarded.
const MAX_DRAIN_TIME: Duration = Duration::from_secs(60);

/// How long a response is delayed for the rest of the body, so that the connection can be kept: in total, and between
/// two parts.
const RESPONSE_DELAY: Duration = Duration::from_secs(3);
const RESPONSE_DELAY_IDLE: Duration = Duration::from_secs(1);

/// The body of a request. Clones share it: each byte goes to one reader.
///
/// The server reads a connection only as far as its body is polled. A body that is dropped before its end leaves the
/// connection unread, and its sender waits for ever. Therefore the body is kept from the start of the request until
/// the last byte of the response, and is read to its end by then, within bounds.
#[derive(Clone)]
pub(super) struct RequestBody(Rc<RefCell<TimedBody>>);

impl RequestBody {
    /// Takes the body of a request, if there is one, and leaves a clone for [`RequestBody::of`].
    pub(super) fn take_from(request: &mut ServiceRequest) -> Option<Self> {
        let payload = request.take_payload();
        if matches!(payload, Payload::None) {
            return None;
        }
        let body = Self(Rc::new(RefCell::new(TimedBody::new(payload))));
        request.extensions_mut().insert(body.clone());
        Some(body)
    }

    /// The body of a request.
    pub(super) fn of(request: &HttpRequest) -> Option<Self> {
        request.extensions().get::<Self>().cloned()
    }

    /// Reads and discards the rest, as [`Self::poll_drain`] does.
    pub(super) async fn drain(&self) {
        poll_fn(|cx| self.poll_drain(cx)).await;
    }

    /// Reads and discards the rest while it arrives without delay, so that the response does not wait for long.
    pub(super) async fn drain_briefly(&self) {
        self.0.borrow_mut().restart_clock();
        let until = Instant::now() + RESPONSE_DELAY;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let more = timeout(left.min(RESPONSE_DELAY_IDLE), poll_fn(|cx| self.poll_discard(cx))).await;
            if left.is_zero() || !matches!(more, Ok(true)) {
                return;
            }
        }
    }

    /// Reads and discards the rest. Ready at the end of the body, at the byte limit and at the time limit.
    pub(super) fn poll_drain(&self, cx: &mut Context<'_>) -> Poll<()> {
        while ready!(self.poll_discard(cx)) {}
        Poll::Ready(())
    }

    /// Reads and discards one part. Returns whether there may be more.
    fn poll_discard(&self, cx: &mut Context<'_>) -> Poll<bool> {
        let mut body = self.0.borrow_mut();
        let until = *body.drain_until.get_or_insert_with(|| Instant::now() + MAX_DRAIN_TIME);
        if body.drained >= MAX_DRAINED_BYTES || Instant::now() >= until {
            return Poll::Ready(false);
        }
        let Some(Ok(chunk)) = ready!(body.poll(cx)) else { return Poll::Ready(false) };
        body.drained += chunk.len() as u64;
        Poll::Ready(true)
    }
}

impl Stream for RequestBody {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.borrow_mut().poll(cx)
    }
}

/// A body that ends with an error if it does not arrive in time.
struct TimedBody {
    payload: Payload,
    /// The number of bytes that were read and discarded.
    drained: u64,
    /// When discarding stops; none before the first discarded byte.
    drain_until: Option<Instant>,
    deadline: Pin<Box<Sleep>>,
    ended: bool,
}

impl TimedBody {
    fn new(payload: Payload) -> Self {
        let deadline = Box::pin(sleep_until(Instant::now() + IDLE_TIMEOUT));
        Self { payload, drained: 0, drain_until: None, deadline, ended: false }
    }

    /// Restarts the clock: nothing could arrive while nobody polled the body.
    fn restart_clock(&mut self) {
        self.deadline.as_mut().reset(Instant::now() + IDLE_TIMEOUT);
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, PayloadError>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let next = match Pin::new(&mut self.payload).poll_next(cx) {
            Poll::Pending if self.deadline.as_mut().poll(cx).is_ready() => {
                let late = std::io::Error::other("it did not arrive in time");
                Some(Err(PayloadError::Io(late)))
            }
            next => ready!(next),
        };
        match &next {
            Some(Ok(chunk)) => self.count(chunk.len() as u64),
            _ => self.ended = true,
        }
        Poll::Ready(next)
    }

    /// Extends the deadline by the time that these bytes may take. Nothing beyond the longest pause can be saved up, so
    /// that only steady progress keeps a request open (a token bucket).
    fn count(&mut self, bytes: u64) {
        let earned = Duration::from_micros(bytes.saturating_mul(1_000_000) / MIN_BYTES_PER_SECOND);
        let until = (self.deadline.deadline() + earned).min(Instant::now() + IDLE_TIMEOUT);
        self.deadline.as_mut().reset(until);
    }
}
