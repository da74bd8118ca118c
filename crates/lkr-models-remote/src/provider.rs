//! Sends requests to one provider and honours its `Retry-After`.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use lkr_models::{Error, ErrorKind, Result};
use lkr_outgoing::{
    HeaderMap, Limits, Method, Outgoing, Request, Response,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue},
    retry_after,
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{RemoteOptions, error, provider_error::ProviderError};

/// The longest `Retry-After` that is honoured. A longer one is shortened to it, so that a wrong value does not disable the
/// model for good.
const MAX_RETRY_AFTER: Duration = Duration::from_mins(10);
/// The bytes that any response may have in addition to the expected content.
const RESPONSE_OVERHEAD_BYTES: usize = 1024 * 1024;
/// The most bytes of an error body that are read.
const ERROR_BODY_BYTES: usize = 16 * 1024;

/// A provider of models.
#[derive(Debug)]
pub(crate) struct Provider {
    outgoing: Outgoing,
    options: RemoteOptions,
    headers: HeaderMap,
    /// No request is sent before this time.
    not_before: Mutex<Option<Instant>>,
}

/// A failed request with the error body of the provider, which is empty if the provider did not respond.
#[derive(Debug)]
pub(crate) struct RequestFailure {
    pub(crate) error: Error,
    pub(crate) reported: ProviderError,
}

impl From<Error> for RequestFailure {
    fn from(error: Error) -> Self {
        Self { error, reported: ProviderError::default() }
    }
}

impl Provider {
    /// # Errors
    /// `Config` if the policy forbids the address, or the key is not a valid header value.
    pub(crate) fn new(outgoing: Outgoing, options: RemoteOptions) -> Result<Self> {
        if options.base_url.trim().is_empty() {
            return Err(error::config("base_url is empty"));
        }
        outgoing.policy().check(&options.base_url).map_err(error::no_response)?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(key) = &options.api_key {
            let value = HeaderValue::from_str(&format!("Bearer {}", key.expose()));
            let mut value = value.map_err(|_| error::config("api_key is not a valid header value"))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(Self { outgoing, options, headers, not_before: Mutex::default() })
    }

    pub(crate) const fn options(&self) -> &RemoteOptions {
        &self.options
    }

    /// The limits of a call whose response has about `content_bytes` bytes.
    pub(crate) fn limits(&self, content_bytes: usize) -> Limits {
        let total = self.options.timeout;
        let connect = Limits::default().connect.min(total);
        let body = content_bytes.saturating_add(RESPONSE_OVERHEAD_BYTES);
        Limits { connect, total, idle: total, body }
    }

    /// Posts `body` as JSON to the base address and `path`, which is not repeated if the address ends with it. The
    /// response may have `content_bytes` bytes and some overhead.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &(impl Serialize + Sync),
        content_bytes: usize,
    ) -> Result<T, RequestFailure> {
        let body = serde_json::to_vec(body).map_err(error::unserializable)?;
        let response = self.send(path, body, self.limits(content_bytes)).await?;
        let bytes = response.bytes().await.map_err(error::no_response)?;
        Ok(serde_json::from_slice(&bytes).map_err(|_| error::unexpected_json())?)
    }

    /// Posts a JSON body and returns as soon as the head of a successful response has arrived.
    pub(crate) async fn send(
        &self,
        path: &str,
        body: Vec<u8>,
        limits: Limits,
    ) -> Result<Response, RequestFailure> {
        self.check_retry_after()?;
        let base = self.options.base_url.trim().trim_end_matches('/');
        let address = if base.ends_with(path) { base.to_owned() } else { format!("{base}{path}") };
        let headers = self.headers.clone();
        let request = Request { headers, body: body.into(), limits, ..Request::new(Method::POST, address) };
        let response = self.outgoing.send(request).await.map_err(error::no_response)?;
        if response.status.is_success() {
            return Ok(response);
        }
        let wait = retry_after(&response.headers, SystemTime::now()).map(|wait| wait.min(MAX_RETRY_AFTER));
        let status = response.status;
        let reported = ProviderError::parse(&read_error_body(response).await);
        let error = self.record_retry_after(error::refused(status, wait, &reported, &self.options));
        Err(RequestFailure { error, reported })
    }

    /// The error for an error object in a response whose status is a success.
    pub(crate) fn error_in_success(&self, error: &serde_json::Value) -> Error {
        let reported = ProviderError::from_value(error);
        let status = reported.status.unwrap_or(lkr_outgoing::StatusCode::INTERNAL_SERVER_ERROR);
        error::refused(status, None, &reported, &self.options)
    }

    /// Fails with `Throttled` until the provider's `Retry-After` is over.
    fn check_retry_after(&self) -> Result<()> {
        let not_before = *self.not_before.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = not_before.and_then(|not_before| not_before.checked_duration_since(Instant::now()));
        wait.filter(|wait| !wait.is_zero()).map_or(Ok(()), |wait| Err(error::throttled(Some(wait))))
    }

    /// Remembers the time to wait if `error` names one.
    fn record_retry_after(&self, error: Error) -> Error {
        if let ErrorKind::Throttled { retry_after: Some(wait) } = error.kind() {
            let mut not_before = self.not_before.lock().unwrap_or_else(PoisonError::into_inner);
            *not_before = (*not_before).max(Instant::now().checked_add(wait));
        }
        error
    }
}

/// The first [`ERROR_BODY_BYTES`] of a body, or less if the connection breaks.
async fn read_error_body(mut response: Response) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        bytes.extend(chunk.iter().take(ERROR_BODY_BYTES - bytes.len()));
        if bytes.len() == ERROR_BODY_BYTES {
            break;
        }
    }
    bytes
}
