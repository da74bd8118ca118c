use std::{fmt, time::Duration};

use bytes::Bytes;
use hyper::{HeaderMap, Method};

/// A request, and the limits of its response.
#[derive(Clone)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The address (URL); its fragment is not sent.
    pub address: String,
    /// The headers. `Host` is always set from the address.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// The time and size limits.
    pub limits: Limits,
}

/// Time and size limits of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The time to resolve the host, to connect and for the TLS handshake.
    pub connect: Duration,
    /// The total time, to the last byte of the response.
    pub total: Duration,
    /// The longest time between two parts of the response body.
    pub idle: Duration,
    /// The most bytes of the response body.
    pub body: usize,
}

impl Default for Limits {
    fn default() -> Self {
        let (connect, total) = (Duration::from_secs(10), Duration::from_secs(60));
        Self { connect, total, idle: total, body: 16 * 1024 * 1024 }
    }
}

impl Request {
    /// A request without headers and body.
    pub fn new(method: Method, address: impl Into<String>) -> Self {
        let (headers, body, limits) = (HeaderMap::new(), Bytes::new(), Limits::default());
        Self { method, address: address.into(), headers, body, limits }
    }
}

impl fmt::Debug for Request {
    /// Addresses, headers and bodies may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("method", &self.method).finish_non_exhaustive()
    }
}
