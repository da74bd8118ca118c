//! A body as it comes, in bounded time.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use actix_web::{
    error::PayloadError,
    web::{Bytes, Payload},
};
use futures_util::Stream;
use tokio::time::{Instant, Sleep, sleep_until};

/// How long a body may stand still.
const PATIENCE: Duration = Duration::from_secs(20);

/// How many bytes must come in a second, all in all, beyond that: nobody holds a request open by trickling.
const LEAST_RATE: u64 = 4 * 1024;

/// A body that ends with an error where it does not come in time.
pub(super) struct Paced {
    payload: Payload,
    begun: Instant,
    received: u64,
    alarm: Pin<Box<Sleep>>,
}

impl Paced {
    pub(super) fn new(payload: Payload) -> Self {
        let begun = Instant::now();
        Self { payload, begun, received: 0, alarm: Box::pin(sleep_until(begun + PATIENCE)) }
    }

    /// How many bytes came.
    pub(super) const fn received(&self) -> u64 {
        self.received
    }

    fn take(&mut self, chunk: &Bytes) {
        self.received += chunk.len() as u64;
        let earned = Duration::from_secs(self.received / LEAST_RATE);
        let now = Instant::now();
        let until = self.begun.checked_add(PATIENCE + earned).unwrap_or(now).min(now + PATIENCE);
        self.alarm.as_mut().reset(until);
    }
}

impl Stream for Paced {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match Pin::new(&mut self.payload).poll_next(cx) {
            Poll::Ready(Some(Ok(chunk))) => {
                self.take(&chunk);
                Poll::Ready(Some(Ok(chunk)))
            }
            Poll::Pending if self.alarm.as_mut().poll(cx).is_ready() => {
                Poll::Ready(Some(Err(PayloadError::Io(std::io::Error::other("it did not arrive in time")))))
            }
            other => other,
        }
    }
}
