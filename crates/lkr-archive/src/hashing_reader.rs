//! A reader that counts and hashes what is read.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use lkr_domain::hex;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncRead, ReadBuf};

/// Reads to the end; returns the length and the SHA-256 in lower-case hexadecimal.
pub async fn digest(from: impl AsyncRead + Unpin) -> io::Result<(u64, String)> {
    let mut reader = HashingReader::new(from);
    tokio::io::copy(&mut reader, &mut tokio::io::sink()).await?;
    Ok(reader.finish())
}

#[derive(Debug)]
pub(crate) struct HashingReader<R> {
    inner: R,
    hash: Sha256,
    length: u64,
}

impl<R> HashingReader<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, hash: Sha256::new(), length: 0 }
    }

    /// The length and the SHA-256 of what was read.
    pub(crate) fn finish(self) -> (u64, String) {
        (self.length, hex(&self.hash.finalize()))
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for HashingReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buffer))?;
        let read = buffer.filled().get(before..).unwrap_or_default();
        self.hash.update(read);
        self.length += read.len() as u64;
        Poll::Ready(Ok(()))
    }
}
