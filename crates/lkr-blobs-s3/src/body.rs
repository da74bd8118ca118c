//! The bodies of requests and responses, with the time at which they last made progress.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use object_store::client::{HttpError, HttpErrorKind, HttpRequestBody};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use crate::client::{failed, stalled};

/// Bytes that are handed to a connection at once. It takes the next ones when it has sent most of those before.
const PIECE_BYTES: usize = 64 * 1024;

/// The body of a request, in small pieces.
#[derive(Debug)]
pub(crate) struct Sending {
    whole: HttpRequestBody,
    /// What is left of the frame that `whole` gave.
    rest: Bytes,
    progress: Progress,
}

/// When a piece of a request was last taken.
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    start: Instant,
    /// Milliseconds since `start`.
    moved: Arc<AtomicU64>,
}

impl Sending {
    pub(crate) fn new(whole: HttpRequestBody) -> (Self, Progress) {
        let progress = Progress { start: Instant::now(), moved: Arc::default() };
        (Self { whole, rest: Bytes::new(), progress: progress.clone() }, progress)
    }
}

impl Progress {
    fn touch(&self) {
        let elapsed = self.start.elapsed().as_millis();
        self.moved.store(u64::try_from(elapsed).unwrap_or(u64::MAX), Relaxed);
    }

    /// Returns when nothing has moved for this long.
    pub(crate) async fn stalled(&self, limit: Duration) {
        loop {
            let end = self.start + Duration::from_millis(self.moved.load(Relaxed)) + limit;
            if end <= Instant::now() {
                return;
            }
            sleep_until(end).await;
        }
    }
}

impl Body for Sending {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        self.progress.touch();
        while self.rest.is_empty() {
            match ready!(Pin::new(&mut self.whole).poll_frame(cx)?) {
                None => return Poll::Ready(None),
                Some(frame) => self.rest = frame.into_data().unwrap_or_default(),
            }
        }
        let piece = PIECE_BYTES.min(self.rest.len());
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.whole.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let whole = self.whole.size_hint().lower();
        SizeHint::with_exact(whole + self.rest.len() as u64)
    }
}

/// The body of a response. It fails if the next part takes longer than `limit` while a reader waits for it.
#[derive(Debug)]
pub(crate) struct Receiving {
    parts: Incoming,
    limit: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Receiving {
    pub(crate) const fn new(parts: Incoming, limit: Duration) -> Self {
        Self { parts, limit, waiting: None }
    }
}

impl Body for Receiving {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.parts).poll_frame(cx) {
            self.waiting = None;
            return Poll::Ready(
                frame.map(|frame| frame.map_err(|error| failed(HttpErrorKind::Interrupted, &error))),
            );
        }
        let limit = self.limit;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(limit)));
        ready!(waiting.as_mut().poll(cx));
        Poll::Ready(Some(Err(stalled(limit))))
    }

    fn is_end_stream(&self) -> bool {
        self.parts.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.parts.size_hint()
    }
}
