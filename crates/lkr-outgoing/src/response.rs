use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::{HeaderMap, StatusCode, body::Incoming};
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use crate::{Error, ErrorKind, Result};

/// A response whose body is read part by part. Dropping it closes the connection.
#[derive(Debug)]
pub struct Response {
    /// The status. Redirects are returned like other responses.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    pub(crate) body: Incoming,
    /// The remaining size limit in bytes.
    pub(crate) left: usize,
    pub(crate) deadline: Instant,
    /// The time limit for the next part.
    pub(crate) idle: Duration,
    pub(crate) _connection: AbortOnDropHandle<()>,
}

impl Response {
    /// The next part of the body; `None` after the last.
    ///
    /// # Errors
    /// `TooLarge` if the body exceeds the limit, `TimedOut`, and `Broken` if it is cut off.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>> {
        let deadline =
            Instant::now().checked_add(self.idle).map_or(self.deadline, |idle| idle.min(self.deadline));
        loop {
            let frame = timeout_at(deadline, self.body.frame()).await;
            let Some(frame) = frame.map_err(|_| Error::timed_out("read response"))? else { return Ok(None) };
            // Trailers are ignored.
            let Ok(data) = frame?.into_data() else { continue };
            let left = self.left.checked_sub(data.len());
            let too_large =
                || Error::new(ErrorKind::TooLarge, "read response", "the response exceeds the size limit");
            self.left = left.ok_or_else(too_large)?;
            return Ok(Some(data));
        }
    }

    /// The complete body.
    ///
    /// # Errors
    /// Those of [`chunk`](Self::chunk).
    pub async fn bytes(mut self) -> Result<Bytes> {
        let mut body = BytesMut::new();
        while let Some(part) = self.chunk().await? {
            body.extend_from_slice(&part);
        }
        Ok(body.freeze())
    }
}
