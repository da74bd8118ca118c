//! One provider: how it is asked, and whether it wants to be.

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

use crate::{RemoteOptions, error, said::Said};

/// The longest that a provider is left alone for.
const LONGEST_PAUSE: Duration = Duration::from_mins(10);
/// What any answer may have besides, in bytes.
const ANSWER_BYTES: usize = 1024 * 1024;
/// How much is read of what is said of an error.
const SAID_BYTES: usize = 16 * 1024;

/// A provider of models.
#[derive(Debug)]
pub(crate) struct Provider {
    outgoing: Outgoing,
    options: RemoteOptions,
    headers: HeaderMap,
    /// Until when it asks to be left alone.
    not_before: Mutex<Option<Instant>>,
}

/// A request that failed, and what the provider said of it, if it was that which refused it.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: Error,
    pub(crate) said: Said,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { error, said: Said::default() }
    }
}

impl Provider {
    /// # Errors
    /// `Config` where the address may not be called or the key cannot be sent.
    pub(crate) fn new(outgoing: Outgoing, options: RemoteOptions) -> Result<Self> {
        if options.base_url.trim().is_empty() {
            return Err(error::config("base_url is empty"));
        }
        outgoing.policy().check(&options.base_url).map_err(error::unanswered)?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(key) = &options.api_key {
            let value = HeaderValue::from_str(&format!("Bearer {}", key.expose()));
            let mut value = value.map_err(|_| error::config("api_key cannot be sent in a header"))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(Self { outgoing, options, headers, not_before: Mutex::default() })
    }

    pub(crate) const fn options(&self) -> &RemoteOptions {
        &self.options
    }

    /// The limits of a call whose answer may have so many bytes.
    pub(crate) fn limits(&self, body: usize) -> Limits {
        let whole = self.options.timeout;
        let connect = Limits::default().connect.min(whole);
        Limits { connect, whole, idle: whole, body: body.saturating_add(ANSWER_BYTES) }
    }

    /// Posts `body` as JSON to `path` behind the base address, unless that ends with it already. The answer may have so
    /// many bytes, and some more.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &(impl Serialize + Sync),
        answer_bytes: usize,
    ) -> Result<T, Failure> {
        let body = serde_json::to_vec(body).map_err(error::wrong_answer)?;
        let limits = self.limits(answer_bytes);
        let answer = self.open(path, body, limits).await?;
        let bytes = answer.bytes().await.map_err(error::unanswered)?;
        let wrong = || error::wrong_answer("it is none of the JSON that is expected");
        Ok(serde_json::from_slice(&bytes).map_err(|_| wrong())?)
    }

    /// Posts what is JSON already, and answers when the head of a success is there.
    pub(crate) async fn open(&self, path: &str, body: Vec<u8>, limits: Limits) -> Result<Response, Failure> {
        self.may_be_asked()?;
        let base = self.options.base_url.trim().trim_end_matches('/');
        let address = if base.ends_with(path) { base.to_owned() } else { format!("{base}{path}") };
        let headers = self.headers.clone();
        let request = Request { headers, body: body.into(), limits, ..Request::new(Method::POST, address) };
        let answer = self.outgoing.send(request).await.map_err(error::unanswered)?;
        if answer.status.is_success() {
            return Ok(answer);
        }
        let wait = retry_after(&answer.headers, SystemTime::now()).map(|wait| wait.min(LONGEST_PAUSE));
        let status = answer.status;
        let said = Said::read(&beginning(answer).await);
        let error = self.note(error::refused(status, wait, &said, &self.options));
        Err(Failure { error, said })
    }

    /// What is meant by an error that stands in what is a success by its status.
    pub(crate) fn refused_within(&self, error: &serde_json::Value) -> Error {
        let said = Said::of(error);
        let status = said.status.unwrap_or(lkr_outgoing::StatusCode::INTERNAL_SERVER_ERROR);
        error::refused(status, None, &said, &self.options)
    }

    /// Refuses while it asks to be left alone.
    fn may_be_asked(&self) -> Result<()> {
        let not_before = *self.not_before.lock().unwrap_or_else(PoisonError::into_inner);
        let left = not_before.and_then(|not_before| not_before.checked_duration_since(Instant::now()));
        left.filter(|left| !left.is_zero()).map_or(Ok(()), |left| Err(error::throttled(Some(left))))
    }

    /// Notes until when it asks to be left alone.
    fn note(&self, error: Error) -> Error {
        if let ErrorKind::Throttled { retry_after: Some(wait) } = error.kind() {
            let mut not_before = self.not_before.lock().unwrap_or_else(PoisonError::into_inner);
            *not_before = (*not_before).max(Instant::now().checked_add(wait));
        }
        error
    }
}

/// The beginning of a body, as much of it as comes.
async fn beginning(mut answer: Response) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Ok(Some(part)) = answer.chunk().await {
        bytes.extend(part.iter().take(SAID_BYTES - bytes.len()));
        if bytes.len() == SAID_BYTES {
            break;
        }
    }
    bytes
}
