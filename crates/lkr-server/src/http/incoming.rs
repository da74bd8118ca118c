//! A request's body as it comes: in bounded time, and to its end, though nobody may ask for all of it.

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

/// How long a body may stand still.
const PATIENCE: Duration = Duration::from_secs(20);

/// How many bytes must come in a second, all in all, beyond that: nobody holds a request open by trickling.
const LEAST_RATE: u64 = 4 * 1024;

/// How many bytes are taken that nobody asks for any more.
const MAX_UNREAD_BYTES: u64 = 256 * 1024 * 1024;

/// For how long they are taken, however they come.
const UNREAD_TIME: Duration = Duration::from_secs(60);

/// How long an answer is held back for the rest of the body, so that the connection can be kept: in all, and while
/// nothing comes.
const HOLD: Duration = Duration::from_secs(3);
const HOLD_STILL: Duration = Duration::from_secs(1);

/// The body of a request. Those who hold it share it: what one has read, another does not get.
///
/// The server reads a connection only as far as the body is asked for, and one that is let go of before its end leaves
/// the connection in a state in which nobody reads it and its sender waits for ever. So it is held from the request's
/// begin until the last byte of its answer, and read to its end by then, within bounds.
#[derive(Clone)]
pub(super) struct Incoming(Rc<RefCell<Paced>>);

impl Incoming {
    /// Takes the body of a request, if it has one, and leaves it with the request for [`Incoming::of`].
    pub(super) fn take(request: &mut ServiceRequest) -> Option<Self> {
        let payload = request.take_payload();
        if matches!(payload, Payload::None) {
            return None;
        }
        let incoming = Self(Rc::new(RefCell::new(Paced::new(payload))));
        request.extensions_mut().insert(incoming.clone());
        Some(incoming)
    }

    /// The body of a request.
    pub(super) fn of(request: &HttpRequest) -> Option<Self> {
        request.extensions().get::<Self>().cloned()
    }

    /// Reads what is left, as [`Self::poll_drained`] does.
    pub(super) async fn drain(&self) {
        poll_fn(|cx| self.poll_drained(cx)).await;
    }

    /// Reads what is left as long as it comes at once, so that an answer need not wait for it for long.
    pub(super) async fn drain_soon(&self) {
        self.0.borrow_mut().begin_anew();
        let until = Instant::now() + HOLD;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let more = timeout(left.min(HOLD_STILL), poll_fn(|cx| self.poll_unread(cx))).await;
            if left.is_zero() || !matches!(more, Ok(true)) {
                return;
            }
        }
    }

    /// Reads what is left; ready at its end, where it is too much, and where it does not come in time.
    pub(super) fn poll_drained(&self, cx: &mut Context<'_>) -> Poll<()> {
        while ready!(self.poll_unread(cx)) {}
        Poll::Ready(())
    }

    /// Reads a part that nobody asks for; whether there may be more.
    fn poll_unread(&self, cx: &mut Context<'_>) -> Poll<bool> {
        let mut paced = self.0.borrow_mut();
        let until = *paced.unread_until.get_or_insert_with(|| Instant::now() + UNREAD_TIME);
        if paced.unread >= MAX_UNREAD_BYTES || Instant::now() >= until {
            return Poll::Ready(false);
        }
        let Some(Ok(chunk)) = ready!(paced.poll(cx)) else { return Poll::Ready(false) };
        paced.unread += chunk.len() as u64;
        Poll::Ready(true)
    }
}

impl Stream for Incoming {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.borrow_mut().poll(cx)
    }
}

/// A body that ends with an error where it does not come in time.
struct Paced {
    payload: Payload,
    begun: Instant,
    received: u64,
    /// How many bytes came that nobody asked for.
    unread: u64,
    /// Until when they are taken; none before the first one.
    unread_until: Option<Instant>,
    alarm: Pin<Box<Sleep>>,
    ended: bool,
}

impl Paced {
    fn new(payload: Payload) -> Self {
        let begun = Instant::now();
        let alarm = Box::pin(sleep_until(begun + PATIENCE));
        Self { payload, begun, received: 0, unread: 0, unread_until: None, alarm, ended: false }
    }

    /// Counts from now on: what was not asked for until now could not come.
    fn begin_anew(&mut self) {
        self.begun = Instant::now();
        self.received = 0;
        self.alarm.as_mut().reset(self.begun + PATIENCE);
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, PayloadError>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let next = match Pin::new(&mut self.payload).poll_next(cx) {
            Poll::Pending if self.alarm.as_mut().poll(cx).is_ready() => {
                let late = std::io::Error::other("it did not arrive in time");
                Some(Err(PayloadError::Io(late)))
            }
            next => ready!(next),
        };
        match &next {
            Some(Ok(chunk)) => self.take(chunk.len() as u64),
            _ => self.ended = true,
        }
        Poll::Ready(next)
    }

    fn take(&mut self, bytes: u64) {
        self.received += bytes;
        let earned = Duration::from_secs(self.received / LEAST_RATE);
        let now = Instant::now();
        let until = self.begun.checked_add(PATIENCE + earned).unwrap_or(now).min(now + PATIENCE);
        self.alarm.as_mut().reset(until);
    }
}
