use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::{HeaderMap, StatusCode, body::Incoming};
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use crate::{Error, ErrorKind, Result};

/// An answer, whose body comes part by part. The connection ends with it.
#[derive(Debug)]
pub struct Response {
    /// The status. One that leads elsewhere is answered like any other: nobody follows it.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    pub(crate) body: Incoming,
    /// How many more bytes the caller takes.
    pub(crate) left: usize,
    pub(crate) deadline: Instant,
    /// How long the next part may take.
    pub(crate) idle: Duration,
    pub(crate) _connection: AbortOnDropHandle<()>,
}

impl Response {
    /// The next part of the body as it comes; `None` after the last.
    ///
    /// # Errors
    /// `TooLarge` where it is longer than was asked for, `TimedOut`, and `Broken` where it breaks off.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>> {
        let deadline =
            Instant::now().checked_add(self.idle).map_or(self.deadline, |idle| idle.min(self.deadline));
        loop {
            let frame = timeout_at(deadline, self.body.frame()).await;
            let Some(frame) = frame.map_err(|_| Error::timed_out("read answer"))? else { return Ok(None) };
            // What stands behind a body is of no interest.
            let Ok(data) = frame?.into_data() else { continue };
            let left = self.left.checked_sub(data.len());
            let too_large =
                || Error::new(ErrorKind::TooLarge, "read answer", "it is longer than what is taken");
            self.left = left.ok_or_else(too_large)?;
            return Ok(Some(data));
        }
    }

    /// The whole body.
    ///
    /// # Errors
    /// As [`chunk`](Self::chunk).
    pub async fn bytes(mut self) -> Result<Bytes> {
        let mut whole = BytesMut::new();
        while let Some(part) = self.chunk().await? {
            whole.extend_from_slice(&part);
        }
        Ok(whole.freeze())
    }
}
