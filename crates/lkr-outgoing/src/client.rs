use std::{fmt, sync::Arc};

use http_body_util::Full;
use hyper::{
    Uri,
    client::conn::http1,
    header::{self, HeaderValue},
};
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_util::task::AbortOnDropHandle;

use crate::{
    Error, Policy, Request, Resolve, Response, Result, Roots, SystemResolver,
    connect::{Stream, connect, tls},
    policy::Target,
};

/// The most bytes of a response head.
const HEAD_BYTES: usize = 64 * 1024;

const USER_AGENT: &str = concat!("lkr/", env!("CARGO_PKG_VERSION"));

/// The HTTP client of all outgoing requests. Cheap to clone.
///
/// Every request passes the policy, and its connection goes to an address that passed. Redirects are not followed,
/// proxies are not used, and the environment is not read.
#[derive(Clone)]
pub struct Outgoing {
    policy: Policy,
    resolver: Arc<dyn Resolve>,
    tls: TlsConnector,
}

impl Outgoing {
    /// A client with this policy. Reads the system's certificates, which may block.
    pub fn new(policy: Policy) -> Result<Self> {
        Self::with(policy, Arc::new(SystemResolver), &Roots::System)
    }

    /// A client with its own resolver and trusted certificates.
    ///
    /// # Errors
    /// `Invalid` if the certificates cannot be read.
    pub fn with(policy: Policy, resolver: Arc<dyn Resolve>, roots: &Roots) -> Result<Self> {
        Ok(Self { policy, resolver, tls: tls(roots)? })
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Sends a request and returns when the head of the response has arrived.
    ///
    /// # Errors
    /// `Refused` if the policy forbids the address; nothing was sent.
    pub async fn send(&self, request: Request) -> Result<Response> {
        let deadline = Instant::now() + request.limits.total;
        let target = self.policy.target(&request.address)?;
        let connecting = connect(&target, &*self.resolver, &self.tls, request.limits.connect);
        let connect_timeout = request.limits.connect.min(request.limits.total);
        let stream =
            timeout(connect_timeout, connecting).await.map_err(|_| Error::timed_out("connect"))??;
        let exchanged = timeout_at(deadline, exchange(stream, &target, request, deadline)).await;
        exchanged.map_err(|_| Error::timed_out("outgoing request"))?
    }
}

impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outgoing").field("policy", &self.policy).finish_non_exhaustive()
    }
}

async fn exchange(
    stream: Box<dyn Stream>,
    target: &Target,
    request: Request,
    deadline: Instant,
) -> Result<Response> {
    let (left, idle) = (request.limits.body, request.limits.idle);
    let mut builder = http1::Builder::new();
    let handshake = builder.max_buf_size(HEAD_BYTES).handshake(TokioIo::new(stream));
    let (mut sender, connection) = handshake.await?;
    let connection = AbortOnDropHandle::new(tokio::spawn(async move {
        // The caller that waits for the response gets the error.
        let _ = connection.await;
    }));
    let answer = sender.send_request(to_wire(target, request)?).await?;
    let (head, body) = answer.into_parts();
    let (status, headers) = (head.status, head.headers);
    Ok(Response { status, headers, body, left, deadline, idle, _connection: connection })
}

/// The request as it is sent.
fn to_wire(target: &Target, request: Request) -> Result<hyper::Request<Full<bytes::Bytes>>> {
    let url = &target.url;
    let invalid = |error: &dyn fmt::Display| Error::refused(format!("cannot be sent: {error}"));
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    let uri: Uri = format!("{}{query}", url.path()).parse().map_err(|e| invalid(&e))?;
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let host = HeaderValue::from_str(&format!("{}{port}", target.host)).map_err(|e| invalid(&e))?;
    let mut framed = hyper::Request::new(Full::new(request.body));
    *framed.method_mut() = request.method;
    *framed.uri_mut() = uri;
    *framed.headers_mut() = request.headers;
    framed.headers_mut().insert(header::HOST, host);
    framed.headers_mut().entry(header::USER_AGENT).or_insert(HeaderValue::from_static(USER_AGENT));
    Ok(framed)
}
