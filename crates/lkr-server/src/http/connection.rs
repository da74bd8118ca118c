//! A connection below the framework, which completes the responses that the framework makes itself.
//!
//! A request whose head is malformed, too large or late never reaches the application: the framework answers 400, 431 or
//! 408 without a body and closes the connection. This type follows the framing of the responses on a connection, and
//! replaces such a response by one with the envelope and a request id, as the contract asks of every response. A head with a URI that is
//! too long for the framework is answered 431 like other large heads.

use std::{
    cell::RefCell,
    collections::VecDeque,
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
    time::Duration,
};

use actix_web::rt::net::{ActixStream, Ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{
    error_format::ErrorFormat,
    request_id::RequestId,
    request_line::RequestLine,
    response_framing::{Framing, Next},
    write_timeout::WriteTimeout,
};
use crate::error::ApiError;

/// The responses of the application that a connection has not written yet: for each, whether it answers a HEAD request
/// and so has no body.
///
/// Requests of a connection are handled one after the other, and each has one response.
#[derive(Debug, Clone, Default)]
pub(crate) struct PendingResponses(Rc<RefCell<VecDeque<bool>>>);

impl PendingResponses {
    /// Announces the response to a request.
    pub(super) fn push(&self, is_head: bool) {
        self.0.borrow_mut().push_back(is_head);
    }

    /// Whether no request is being handled.
    fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Whether the next response answers a HEAD request.
    pub(super) fn pop(&self) -> bool {
        self.0.borrow_mut().pop_front().unwrap_or_default()
    }
}

/// A connection.
pub(crate) struct Connection<T> {
    io: WriteTimeout<T>,
    framing: Framing,
    pending: PendingResponses,
    /// The first line of the request whose head is being read.
    request_line: RequestLine,
    /// The bytes of the framework's next write that were examined already.
    examined: usize,
    /// A response in place of one of the framework, and how much of it is written.
    replacement: Vec<u8>,
    written: usize,
    /// Called with the status of each response that is replaced.
    observer: Rc<dyn Fn(u16)>,
}

/// How long a write waits until the client accepts a byte. A response stays in memory for as long. Chosen, not measured.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

impl<T> Connection<T> {
    pub(crate) fn new(io: T, observer: Rc<dyn Fn(u16)>) -> Self {
        let (framing, pending) = (Framing::default(), PendingResponses::default());
        let io = WriteTimeout::new(io, WRITE_TIMEOUT);
        let (request_line, replacement) = (RequestLine::default(), Vec::new());
        Self { io, framing, pending, request_line, examined: 0, replacement, written: 0, observer }
    }

    /// Where the application announces its responses.
    pub(crate) fn pending(&self) -> PendingResponses {
        self.pending.clone()
    }
}

impl<T: AsyncWrite + Unpin> Connection<T> {
    /// Writes the rest of the replacement.
    fn poll_replacement(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self.replacement.get(self.written..).filter(|rest| !rest.is_empty()) {
            let written = ready!(Pin::new(&mut self.io).poll_write(cx, rest))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += written;
        }
        Poll::Ready(Ok(()))
    }

    /// Examines what was not examined yet, up to a response to replace. Returns that response's length if it is next.
    fn examine(&mut self, bytes: &[u8]) -> Option<usize> {
        let fresh = bytes.get(self.examined..).unwrap_or_default();
        let (pending, mut is_answered) = (&self.pending, false);
        let next = self.framing.advance(fresh, || {
            is_answered = true;
            pending.pop()
        });
        if is_answered {
            self.request_line = RequestLine::default();
        }
        match next {
            Next::All => self.examined = bytes.len(),
            Next::Replace { before, status, length } => {
                self.examined += before;
                if self.examined == 0 {
                    let is_too_long = status == 400 && self.request_line.is_too_long();
                    let status = if is_too_long { 431 } else { status };
                    (self.observer)(status);
                    self.replacement = replacement(status);
                    self.written = 0;
                    return Some(length);
                }
            }
        }
        None
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Connection<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_replacement(cx))?;
        if let Some(length) = self.examine(bytes) {
            return Poll::Ready(Ok(length));
        }
        let examined = bytes.get(..self.examined).unwrap_or(bytes);
        let written = ready!(Pin::new(&mut self.io).poll_write(cx, examined))?;
        self.examined = self.examined.saturating_sub(written);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_replacement(cx))?;
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_replacement(cx))?;
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Connection<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.io.inner).poll_read(cx, buffer);
        // While a request is handled, what arrives is its body.
        if self.pending.is_empty() {
            self.request_line.count(buffer.filled().get(before..).unwrap_or_default());
        }
        polled
    }
}

impl<T: ActixStream> ActixStream for Connection<T> {
    fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<Ready>> {
        self.io.inner.poll_read_ready(cx)
    }

    fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<Ready>> {
        self.io.inner.poll_write_ready(cx)
    }
}

/// The response in place of one of the framework with this status.
fn replacement(status: u16) -> Vec<u8> {
    let (phrase, message) = match status {
        408 => ("Request Timeout", "the head of the request did not arrive in time"),
        431 => ("Request Header Fields Too Large", "the head of the request is too large"),
        _ => ("Bad Request", "the head of the request is malformed"),
    };
    let id = RequestId::generate();
    let body = ErrorFormat::Envelope.body(&ApiError::invalid(message), &id);
    let date = httpdate::fmt_http_date(std::time::SystemTime::now());
    let head = format!(
        "HTTP/1.1 {status} {phrase}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         x-content-type-options: nosniff\r\ncache-control: no-store\r\nx-request-id: {}\r\n\
         connection: close\r\ndate: {date}\r\n\r\n",
        body.len(),
        id.as_str(),
    );
    [head.into_bytes(), body].concat()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn client_that_accepts_nothing_is_cut_off() {
        let (near, mut far) = duplex(4);
        let mut connection = Connection::new(near, Rc::new(|_| {}));
        connection.pending().push(false);
        let response = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
        let read_slowly = async {
            // Something within each timeout keeps the write going.
            for _ in 0..3 {
                tokio::time::sleep(WRITE_TIMEOUT - Duration::from_secs(1)).await;
                far.read_exact(&mut [0; 4]).await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(connection.write_all(response), read_slowly);
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
