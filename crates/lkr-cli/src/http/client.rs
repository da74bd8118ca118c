use std::{
    io::{self, Write},
    time::Duration,
};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;
use ureq::{Agent, Body, RequestBuilder, http::Response, typestate::WithoutBody};

use crate::http::ApiError;

/// How long one request may take.
const TIMEOUT: Duration = Duration::from_secs(120);

/// How many connections are kept open; more requests than that never run at once.
const CONNECTIONS: usize = 64;

/// How long a connection may be idle before it is not used again: less than servers keep them.
const IDLE: Duration = Duration::from_secs(3);

/// The largest answer that is read, in bytes.
const MAX_ANSWER: u64 = 256 << 20;

/// A client of one server. Connections are kept open between requests.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    agent: Agent,
    base: String,
    bearer: Option<String>,
}

/// The payload of an answer.
#[derive(Debug)]
pub(crate) struct Answer {
    /// What the key `data` held.
    pub(crate) data: Value,
    /// Whether it came from the search cache.
    pub(crate) cached: bool,
}

/// The envelope of every answer, as far as it is looked at.
#[derive(Debug, Deserialize)]
struct Envelope {
    code: u64,
    message: String,
    #[serde(default)]
    data: Value,
}

impl Client {
    /// A client of the server at `url`, such as `http://127.0.0.1:8080`.
    pub(crate) fn new(url: &str) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(TIMEOUT))
            .max_idle_age(IDLE)
            .max_idle_connections(CONNECTIONS)
            .max_idle_connections_per_host(CONNECTIONS)
            .build();
        Self { agent: config.new_agent(), base: url.trim_end_matches('/').to_owned(), bearer: None }
    }

    /// The same client with a credential.
    #[must_use]
    pub(crate) fn with_bearer(self, token: &str) -> Self {
        Self { bearer: Some(format!("Bearer {token}")), ..self }
    }

    /// Reads what is at `path`, below `/api/v1`.
    pub(crate) fn get(&self, path: &str) -> Result<Answer> {
        let url = self.url(path);
        self.ask("GET", &url, self.agent.get(&url))
    }

    /// Sends `body` to `path`, below `/api/v1`.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Answer> {
        let url = self.url(path);
        let request = self.agent.post(&url);
        let request = self.authorized(request);
        let context = || format!("POST {url}");
        read(request.send_json(body).with_context(context)?).with_context(context)
    }

    /// Deletes what is at `path`, below `/api/v1`.
    pub(crate) fn delete(&self, path: &str) -> Result<Answer> {
        let url = self.url(path);
        self.ask("DELETE", &url, self.agent.delete(&url))
    }

    /// Writes what is at `path`, below `/api/v1`, as it comes, however long that takes.
    pub(crate) fn download(&self, path: &str, to: &mut impl Write) -> Result<()> {
        let url = self.url(path);
        let request = self.agent.get(&url).config().timeout_global(None).build();
        let context = || format!("GET {url}");
        let mut response = self.authorized(request).call().with_context(context)?;
        if !response.status().is_success() {
            return read(response).with_context(context).map(drop);
        }
        io::copy(&mut response.body_mut().as_reader(), to).with_context(context)?;
        Ok(())
    }

    /// Sends a request without a body.
    fn ask(&self, method: &str, url: &str, request: RequestBuilder<WithoutBody>) -> Result<Answer> {
        let request = self.authorized(request);
        let context = || format!("{method} {url}");
        read(request.call().with_context(context)?).with_context(context)
    }

    fn authorized<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        match &self.bearer {
            Some(bearer) => request.header("Authorization", bearer),
            None => request,
        }
    }

    fn url(&self, path: &str) -> String {
        format!("{}/api/v1{path}", self.base)
    }
}

fn read(mut response: Response<Body>) -> Result<Answer> {
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    let retry_after = header("retry-after").and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
    let cached = header("x-cache") == Some("hit");
    let status = response.status().as_u16();
    let body = response.body_mut().with_config().limit(MAX_ANSWER).read_to_vec()?;
    match serde_json::from_slice::<Envelope>(&body) {
        Ok(Envelope { code: 0, data, .. }) => Ok(Answer { data, cached }),
        Ok(Envelope { code, message, .. }) => {
            Err(ApiError { status, code: Some(code), message, retry_after }.into())
        }
        Err(_) => Err(ApiError { status, code: None, message: String::new(), retry_after }.into()),
    }
}
