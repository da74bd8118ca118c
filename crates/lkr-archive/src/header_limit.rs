//! A bound of what the tar library reads in front of an entry. It keeps all of a long path, and of other extensions of a header, in
//! memory, whatever their size is.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, ReadBuf};

/// The most bytes in front of the content of an entry: the padding of the entry before, its header, and its path, if that is too long
/// for a header.
const MAX_HEADER_BYTES: u64 = 16 * 1024;

/// How many bytes may still be read before the content of the next entry.
#[derive(Debug, Clone)]
pub(crate) struct HeaderLimit(Arc<AtomicU64>);

impl HeaderLimit {
    /// A header is to be read next.
    pub(crate) fn begin_header(&self) {
        self.0.store(MAX_HEADER_BYTES, Ordering::Relaxed);
    }

    /// A content is to be read next, in parts.
    pub(crate) fn begin_content(&self) {
        self.0.store(u64::MAX, Ordering::Relaxed);
    }
}

/// What an archive is read from, within the limit.
#[derive(Debug)]
pub(crate) struct LimitedReader<R> {
    inner: R,
    limit: HeaderLimit,
}

impl<R> LimitedReader<R> {
    pub(crate) fn new(inner: R) -> (Self, HeaderLimit) {
        let limit = HeaderLimit(Arc::new(AtomicU64::new(MAX_HEADER_BYTES)));
        (Self { inner, limit: limit.clone() }, limit)
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for LimitedReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let left = self.limit.0.load(Ordering::Relaxed);
        let room = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.remaining());
        if room == 0 && buffer.remaining() > 0 {
            let reason = format!("the header of an entry is longer than {MAX_HEADER_BYTES} bytes");
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, reason)));
        }
        let mut limited = ReadBuf::new(buffer.initialize_unfilled_to(room));
        ready!(Pin::new(&mut self.inner).poll_read(cx, &mut limited))?;
        let read = limited.filled().len();
        buffer.advance(read);
        self.limit.0.store(left.saturating_sub(read as u64), Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}
