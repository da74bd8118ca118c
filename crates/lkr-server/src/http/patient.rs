//! Writing for somebody who may not read.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::AsyncWrite,
    time::{Instant, Sleep, sleep},
};

/// A writer that fails where nothing of what is written is taken for too long.
#[derive(Debug)]
pub(crate) struct Patient<W> {
    inner: W,
    patience: Duration,
    waited: Pin<Box<Sleep>>,
}

impl<W: AsyncWrite + Unpin> Patient<W> {
    pub(crate) fn new(inner: W, patience: Duration) -> Self {
        Self { inner, patience, waited: Box::pin(sleep(patience)) }
    }

    /// What came of an attempt, unless nobody took anything for too long.
    fn patiently<T>(&mut self, cx: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            let patience = self.patience;
            self.waited.as_mut().reset(Instant::now() + patience);
            return polled;
        }
        self.waited.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Patient<W> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.patiently(cx, polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_flush(cx);
        self.patiently(cx, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_shutdown(cx);
        self.patiently(cx, polled)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test]
    async fn who_takes_nothing_is_given_up() {
        let (to, mut from) = duplex(4);
        let mut to = Patient::new(to, Duration::from_millis(200));
        // As long as something is taken now and then, it goes on.
        let writing = tokio::spawn(async move {
            let written = to.write_all(&[1; 100]).await;
            written.map_err(|error| error.kind())
        });
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_millis(5)).await;
            from.read_exact(&mut [0; 4]).await.unwrap();
        }
        assert_eq!(writing.await.unwrap(), Err(io::ErrorKind::TimedOut));
    }
}
