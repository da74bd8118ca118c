use std::{
    io::{self, Write},
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::Value;
use ureq::{
    Agent, Body, RequestBuilder,
    http::{Response, Uri},
    typestate::{WithBody, WithoutBody},
    unversioned::multipart::Form,
};

use crate::http::ApiError;

/// The timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The most idle connections; never fewer than concurrent requests.
const CONNECTIONS: usize = 64;

/// The most idle time after which a connection is reused: less than servers keep it open.
const MAX_IDLE: Duration = Duration::from_secs(3);

/// How often it is said that requests wait for the server.
const SAID_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// The largest response that is read, in bytes.
const MAX_RESPONSE_BYTES: u64 = 256 << 20;

/// A client of one server. Connections are kept open between requests.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    agent: Agent,
    base: String,
    bearer: Option<String>,
    /// When it was last said that a request waits for the server.
    said: Arc<Mutex<Option<Instant>>>,
}

/// A successful response.
#[derive(Debug)]
pub(crate) struct ApiResponse {
    /// The value of `data`.
    pub(crate) data: Value,
    /// Whether it came from the search cache.
    pub(crate) cached: bool,
}

/// The parts of the envelope that are used.
#[derive(Debug, Deserialize)]
struct Envelope {
    code: u64,
    message: String,
    #[serde(default)]
    data: Value,
}

impl Client {
    /// A client of the server at `url`, such as `http://127.0.0.1:8080`. A proxy that the environment names is used for other machines
    /// alone.
    pub(crate) fn new(url: &str) -> Self {
        let config = Agent::config_builder();
        let config = if is_this_machine(url) { config.proxy(None) } else { config };
        let config = config
            .http_status_as_error(false)
            .timeout_global(Some(TIMEOUT))
            .max_idle_age(MAX_IDLE)
            .max_idle_connections(CONNECTIONS)
            .max_idle_connections_per_host(CONNECTIONS)
            .build();
        Self {
            agent: config.new_agent(),
            base: url.trim_end_matches('/').to_owned(),
            bearer: None,
            said: Arc::default(),
        }
    }

    /// The same client with a credential.
    #[must_use]
    pub(crate) fn with_bearer(self, token: &str) -> Self {
        Self { bearer: Some(format!("Bearer {token}")), ..self }
    }

    /// Whether it may be said that a request waits: once in a while, whatever the number of requests that do.
    pub(crate) fn may_say_that_it_waits(&self) -> bool {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let may = said.is_none_or(|said| said.elapsed() >= SAID_AGAIN_AFTER);
        if may {
            *said = Some(Instant::now());
        }
        may
    }

    /// Whether it has a credential.
    pub(crate) const fn has_credential(&self) -> bool {
        self.bearer.is_some()
    }

    /// The access token or API key; `None` without a credential.
    pub(crate) fn token(&self) -> Option<&str> {
        self.bearer.as_deref().and_then(|bearer| bearer.strip_prefix("Bearer "))
    }

    /// The address of the server.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Sends `GET` to `path` below `/api/v1`.
    pub(crate) fn get(&self, path: &str) -> Result<ApiResponse> {
        let url = self.url(path);
        self.send("GET", &url, self.agent.get(&url))
    }

    /// Sends `POST` with `body` to `path` below `/api/v1`.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<ApiResponse> {
        let url = self.url(path);
        send_json("POST", &url, self.authorized(self.agent.post(&url)), body)
    }

    /// Sends `PUT` with `body` to `path` below `/api/v1`.
    pub(crate) fn put(&self, path: &str, body: &Value) -> Result<ApiResponse> {
        let url = self.url(path);
        send_json("PUT", &url, self.authorized(self.agent.put(&url)), body)
    }

    /// Sends `PATCH` with `body` to `path` below `/api/v1`.
    pub(crate) fn patch(&self, path: &str, body: &Value) -> Result<ApiResponse> {
        let url = self.url(path);
        send_json("PATCH", &url, self.authorized(self.agent.patch(&url)), body)
    }

    /// Sends a form with a file to `path` below `/api/v1`.
    pub(crate) fn post_form(&self, path: &str, form: Form<'_>) -> Result<ApiResponse> {
        let url = self.url(path);
        let context = || format!("POST {url}");
        // A large file takes as long as it takes.
        let request = self.authorized(self.agent.post(&url).config().timeout_global(None).build());
        parse_response(request.send(form).with_context(context)?).with_context(context)
    }

    /// Sends `DELETE` to `path` below `/api/v1`.
    pub(crate) fn delete(&self, path: &str) -> Result<ApiResponse> {
        let url = self.url(path);
        self.send("DELETE", &url, self.agent.delete(&url))
    }

    /// Sends a message of another protocol to `path`, and returns the JSON of the response whatever its status; `None` if it has
    /// no body.
    pub(crate) fn pass_on(
        &self,
        path: &str,
        headers: &[(&str, String)],
        body: &str,
    ) -> Result<Option<Value>> {
        let url = format!("{}{path}", self.base);
        let request = self.authorized(self.agent.post(&url));
        let request = request
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, value));
        let context = || format!("POST {url}");
        let mut response = request.send(body).with_context(context)?;
        let limited = response.body_mut().with_config().limit(MAX_RESPONSE_BYTES);
        let body = limited.read_to_vec().with_context(context)?;
        if body.is_empty() {
            ensure!(response.status().is_success(), "POST {url}: HTTP {} without a body", response.status());
            return Ok(None);
        }
        let status = response.status();
        let parsed = serde_json::from_slice(&body);
        parsed.map(Some).with_context(|| format!("POST {url}: HTTP {status} with a body that is not JSON"))
    }

    /// Streams the response of `path` below `/api/v1` to a writer, without a timeout.
    pub(crate) fn download(&self, path: &str, to: &mut impl Write) -> Result<()> {
        let url = self.url(path);
        let request = self.agent.get(&url).config().timeout_global(None).build();
        let context = || format!("GET {url}");
        let mut response = self.authorized(request).call().with_context(context)?;
        if !response.status().is_success() {
            return parse_response(response).with_context(context).map(drop);
        }
        io::copy(&mut response.body_mut().as_reader(), to).with_context(context)?;
        Ok(())
    }

    /// The body of the response of a path that is not below `/api/v1`, whatever its status.
    pub(crate) fn page(&self, path: &str) -> Result<String> {
        let url = format!("{}{path}", self.base);
        let context = || format!("GET {url}");
        let mut response = self.agent.get(&url).call().with_context(context)?;
        response.body_mut().with_config().limit(MAX_RESPONSE_BYTES).read_to_string().with_context(context)
    }

    /// Sends a request without a body.
    fn send(&self, method: &str, url: &str, request: RequestBuilder<WithoutBody>) -> Result<ApiResponse> {
        let request = self.authorized(request);
        let context = || format!("{method} {url}");
        parse_response(request.call().with_context(context)?).with_context(context)
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

/// Whether the host of an address is this machine.
fn is_this_machine(url: &str) -> bool {
    let uri: Option<Uri> = url.parse().ok();
    let host = uri.as_ref().and_then(Uri::host).unwrap_or_default();
    let address: Result<IpAddr, _> = host.trim_matches(['[', ']']).parse();
    address.map_or_else(|_| host.eq_ignore_ascii_case("localhost"), |address| address.is_loopback())
}

/// Sends a request with a JSON body.
fn send_json(
    method: &str,
    url: &str,
    request: RequestBuilder<WithBody>,
    body: &Value,
) -> Result<ApiResponse> {
    let context = || format!("{method} {url}");
    parse_response(request.send_json(body).with_context(context)?).with_context(context)
}

fn parse_response(mut response: Response<Body>) -> Result<ApiResponse> {
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    let retry_after = header("retry-after").and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
    let cached = header("x-cache") == Some("hit");
    let status = response.status().as_u16();
    let body = response.body_mut().with_config().limit(MAX_RESPONSE_BYTES).read_to_vec()?;
    match serde_json::from_slice::<Envelope>(&body) {
        Ok(Envelope { code: 0, data, .. }) => Ok(ApiResponse { data, cached }),
        Ok(Envelope { code, message, .. }) => {
            Err(ApiError { status, code: Some(code), message, retry_after }.into())
        }
        Err(_) => Err(ApiError { status, code: None, message: String::new(), retry_after }.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_proxy_is_used_for_this_machine() {
        for url in ["http://127.0.0.1:8080", "https://127.1.2.3", "http://[::1]:8080", "http://LocalHost:80/"]
        {
            assert!(is_this_machine(url), "{url}");
            assert!(Client::new(url).agent.config().proxy().is_none(), "{url}");
        }
        for url in
            ["http://10.0.0.1", "https://kb.example.org", "http://127.0.0.1.example.org", "http://[::2]"]
        {
            assert!(!is_this_machine(url), "{url}");
        }
    }
}
