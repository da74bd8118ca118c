use std::{fmt, time::Duration};

use bytes::Bytes;
use hyper::{HeaderMap, Method};

/// What is sent, and how much of an answer is taken.
#[derive(Clone)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The whole address; its fragment is not sent.
    pub address: String,
    /// Headers. `Host` is set from the address, whatever stands here.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// How long it may take, and how large the answer may be.
    pub limits: Limits,
}

/// How long a request may take, and how large its answer may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Until somebody answers: finding the host's addresses, connecting, agreeing upon keys.
    pub connect: Duration,
    /// All of it, to the last byte of the answer.
    pub whole: Duration,
    /// From one part of the answer's body to the next.
    pub idle: Duration,
    /// The body of the answer, in bytes.
    pub body: usize,
}

impl Default for Limits {
    fn default() -> Self {
        let (connect, whole) = (Duration::from_secs(10), Duration::from_secs(60));
        Self { connect, whole, idle: whole, body: 16 * 1024 * 1024 }
    }
}

impl Request {
    /// A request without headers of its own and without a body.
    pub fn new(method: Method, address: impl Into<String>) -> Self {
        let (headers, body, limits) = (HeaderMap::new(), Bytes::new(), Limits::default());
        Self { method, address: address.into(), headers, body, limits }
    }
}

impl fmt::Debug for Request {
    /// Addresses, headers and bodies may hold what is secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("method", &self.method).finish_non_exhaustive()
    }
}
