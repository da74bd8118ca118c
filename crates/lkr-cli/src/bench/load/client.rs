//! One client of a load: a connection of its own.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    bench::{
        connection::{Connection, Response},
        load::{
            documents::Documents,
            kind::{Kind, Mix},
            pace::{Clock, Pace},
            requests::{Request, Requests},
            tally::{Answered, Failure, Tally},
        },
        random::XorShift64,
    },
    http::Client,
    wait::retry_while_overloaded,
};

/// An idle connection is opened anew after this time. Servers close them a little later.
const MAX_IDLE: Duration = Duration::from_secs(3);

/// The code of a failure that came with no response, or with an unreadable one.
const NO_RESPONSE: &str = "no response";

/// What all clients share.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) url: String,
    /// Empty without a credential.
    pub(super) token: String,
    pub(super) mix: Mix,
    pub(super) requests: Requests,
    pub(super) documents: Documents,
}

/// A client.
#[derive(Debug)]
pub(super) struct LoadClient<'a> {
    load: &'a Load,
    connection: Option<Connection>,
    last_used: Instant,
    random: XorShift64,
}

/// The parts of an error response that are used.
#[derive(Debug, Deserialize)]
struct ErrorBody {
    code: u64,
    message: String,
}

/// The parts of the response to an added document that are used.
#[derive(Debug, Deserialize)]
struct AcceptedBody {
    data: Accepted,
}

#[derive(Debug, Deserialize)]
struct Accepted {
    task_id: String,
}

impl Load {
    /// Sends every cached search once, so that the cache can answer it.
    pub(super) fn cache(&self, client: &Client) -> Result<()> {
        let search = |body: Value| retry_while_overloaded(client, || client.post("/search", &body)).map(drop);
        self.requests.all_cached().try_for_each(search)
    }

    /// Adds documents and waits until they are searchable.
    pub(super) fn add_stock(&self, client: &Client, count: u64) -> Result<()> {
        for _ in 0..count {
            let Request { path, body, .. } = self.requests.added();
            let body = body.unwrap_or_default();
            let accepted = retry_while_overloaded(client, || client.post(&path, &body))?.data;
            let task_id = accepted.get("task_id").and_then(Value::as_str).context("no task_id")?;
            self.documents.accepted(task_id.to_owned());
        }
        self.documents.drain(client).map(drop)
    }
}

impl<'a> LoadClient<'a> {
    /// The n-th client.
    pub(super) fn new(load: &'a Load, number: usize) -> Self {
        let seed = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self { load, connection: None, last_used: Instant::now(), random: XorShift64::new(seed) }
    }

    /// Sends requests until the pace ends.
    pub(super) fn run(&mut self, pace: &Pace<'_, impl Clock>, tally: &Mutex<Tally>) -> Result<()> {
        while let Some(since) = pace.next() {
            // The low bits of this generator repeat too regularly.
            let random = self.random.next() >> 16;
            let (kind, request) = self.request(self.load.mix.pick(random));
            let outcome = self.send(kind, &request);
            let latency = pace.elapsed(since);
            tally.lock().unwrap_or_else(PoisonError::into_inner).record(kind, latency, outcome)?;
        }
        Ok(())
    }

    /// The next request of a kind. A deletion that finds no document is replaced by an addition.
    fn request(&self, kind: Kind) -> (Kind, Request) {
        let Load { requests, documents, .. } = self.load;
        let made = match kind {
            Kind::Delete => documents.take().map(|doc_id| {
                let path = format!("/documents/{doc_id}");
                Request { method: "DELETE", path, body: None }
            }),
            kind => requests.next(kind),
        };
        match made {
            Some(request) => (kind, request),
            None => (Kind::Add, requests.added()),
        }
    }

    fn send(&mut self, kind: Kind, request: &Request) -> Result<Answered, Failure> {
        if self.last_used.elapsed() > MAX_IDLE {
            self.connection = None;
        }
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(&self.load.url).map_err(|error| no_response(&error))?,
        };
        let Request { method, path, body } = request;
        let body = body.as_ref().map(Value::to_string).unwrap_or_default();
        let bytes = connection.encode(method, &format!("/api/v1{path}"), &self.load.token, &body);
        let response = connection.send(&bytes).map_err(|error| no_response(&error))?;
        let closes = response.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        let outcome = self.outcome(kind, &response);
        self.last_used = Instant::now();
        self.connection = (!closes).then_some(connection);
        outcome
    }

    fn outcome(&self, kind: Kind, response: &Response<'_>) -> Result<Answered, Failure> {
        if !(200..300).contains(&response.status) {
            return Err(refused(response));
        }
        if kind == Kind::Add {
            let accepted = serde_json::from_slice(response.body).context("read the response to a document");
            let AcceptedBody { data } = accepted.map_err(|error| no_response(&error))?;
            self.load.documents.accepted(data.task_id);
        }
        Ok(Answered { is_hit: response.header("x-cache") == Some("hit") })
    }
}

fn no_response(error: &anyhow::Error) -> Failure {
    Failure { code: NO_RESPONSE.to_owned(), message: format!("{error:#}") }
}

fn refused(response: &Response<'_>) -> Failure {
    match serde_json::from_slice(response.body) {
        Ok(ErrorBody { code, message }) => Failure { code: code.to_string(), message },
        Err(_) => Failure { code: format!("HTTP {}", response.status), message: String::new() },
    }
}
