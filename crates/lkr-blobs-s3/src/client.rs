//! The HTTP client under `object_store`: pooled connections, no proxy, no redirects, nothing from the environment.

use std::{error::Error as StdError, fmt, iter::successors, time::Duration};

use async_trait::async_trait;
use hyper::{
    Method, StatusCode,
    header::{HeaderValue, USER_AGENT},
};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector as TcpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use object_store::{
    ClientOptions,
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
        HttpService,
    },
};
use tokio_rustls::rustls::ClientConfig;

use crate::body::{Receiving, Sending};

/// The longest time for a TCP connection to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Bytes that a connection may have sent to the kernel and not to the store. The default grows to megabytes, whose way to the
/// store over a slow line looks like a pause.
const SEND_BUFFER: usize = 256 * 1024;

/// Idle connections are closed after this, before servers usually close them.
const POOL_IDLE: Duration = Duration::from_secs(15);

/// The most idle connections that are kept.
const POOL_CONNECTIONS: usize = 32;

const NO_SUCH_BUCKET: &[u8] = b"<Code>NoSuchBucket</Code>";

const AGENT: HeaderValue = HeaderValue::from_static(concat!("lkr/", env!("CARGO_PKG_VERSION")));

/// Makes the client that `object_store` sends its requests with.
#[derive(Debug)]
pub(crate) struct Connector {
    pub(crate) tls: ClientConfig,
    /// How long a request may make no progress.
    pub(crate) limit: Duration,
}

impl HttpConnector for Connector {
    /// The options are left at their defaults by this crate and not read.
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let mut tcp = TcpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_send_buffer_size(Some(SEND_BUFFER));
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT.min(self.limit)));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(self.tls.clone())
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE)
            .pool_max_idle_per_host(POOL_CONNECTIONS)
            .build(connector);
        Ok(HttpClient::new(Service { client, limit: self.limit }))
    }
}

#[derive(Debug)]
struct Service {
    client: Client<HttpsConnector<TcpConnector>, Sending>,
    limit: Duration,
}

#[async_trait]
impl HttpService for Service {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        // `object_store` repeats a delete only after an error that says it may.
        let lost = match *request.method() {
            Method::DELETE => HttpErrorKind::Request,
            _ => HttpErrorKind::Interrupted,
        };
        // The response to it has no body.
        let is_head = request.method() == Method::HEAD;
        request.headers_mut().insert(USER_AGENT, AGENT);
        let (head, body) = request.into_parts();
        let (body, progress) = Sending::new(body);
        let response = tokio::select! {
            response = self.client.request(hyper::Request::from_parts(head, body)) => response,
            () = progress.stalled(self.limit) => return Err(stalled(self.limit)),
        };
        let response = response.map_err(|error| {
            let kind = if error.is_connect() { HttpErrorKind::Connect } else { lost };
            failed(kind, &error)
        })?;
        let response = response.map(|body| HttpResponseBody::new(Receiving::new(body, self.limit)));
        if response.status() == StatusCode::NOT_FOUND && !is_head {
            return bucket_exists(response).await;
        }
        Ok(response)
    }
}

/// A response that says that the bucket does not exist.
#[derive(Debug)]
pub(crate) struct NoSuchBucket;

impl fmt::Display for NoSuchBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bucket does not exist")
    }
}

impl StdError for NoSuchBucket {}

/// Makes an error of a missing bucket, which to `object_store` is the same as a missing object. To lkr it is not: a record names
/// texts that are damaged if they are missing.
async fn bucket_exists(response: HttpResponse) -> Result<HttpResponse, HttpError> {
    let (head, body) = response.into_parts();
    let body = body.bytes().await?;
    if body.windows(NO_SUCH_BUCKET.len()).any(|window| window == NO_SUCH_BUCKET) {
        return Err(HttpError::new(HttpErrorKind::Unknown, NoSuchBucket));
    }
    Ok(HttpResponse::from_parts(head, body.into()))
}

/// An error with the messages of all its causes, because those of hyper name only the last step.
pub(crate) fn failed(kind: HttpErrorKind, error: &(dyn StdError + 'static)) -> HttpError {
    let causes: Vec<String> =
        successors(Some(error), |&error| error.source()).map(ToString::to_string).collect();
    HttpError::new_boxed(kind, causes.join(": ").into())
}

/// A request that made no progress for this long.
pub(crate) fn stalled(limit: Duration) -> HttpError {
    HttpError::new_boxed(HttpErrorKind::Timeout, format!("no progress for {limit:?}").into())
}
