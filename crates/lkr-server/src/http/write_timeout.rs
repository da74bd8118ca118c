//! A timeout for writes to a slow reader.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::AsyncWrite,
    time::{Sleep, sleep},
};

/// A writer that fails with `TimedOut` when its reader accepts no byte for the timeout.
#[derive(Debug)]
pub(crate) struct WriteTimeout<W> {
    pub(super) inner: W,
    timeout: Duration,
    /// When the write fails that waits for the reader.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<W> WriteTimeout<W> {
    pub(crate) const fn new(inner: W, timeout: Duration) -> Self {
        Self { inner, timeout, deadline: None }
    }

    /// Ends the timeout after progress; without progress, fails once the timeout has passed.
    fn check<T>(&mut self, cx: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.deadline = None;
            return polled;
        }
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(self.timeout)));
        deadline.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<W> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.check(cx, polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_flush(cx);
        self.check(cx, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_shutdown(cx);
        self.check(cx, polled)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn write_fails_once_the_reader_accepts_nothing_for_the_timeout() {
        let (to, mut from) = duplex(4);
        let mut to = WriteTimeout::new(to, Duration::from_millis(200));
        let writing = tokio::spawn(async move {
            let written = to.write_all(&[1; 100]).await;
            written.map_err(|error| error.kind())
        });
        // A slow reader that accepts something within each timeout keeps the write going.
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_millis(150)).await;
            from.read_exact(&mut [0; 4]).await.unwrap();
        }
        assert!(!writing.is_finished());
        assert_eq!(writing.await.unwrap(), Err(io::ErrorKind::TimedOut));
    }
}
