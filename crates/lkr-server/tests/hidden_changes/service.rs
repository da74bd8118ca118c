//! One of the two services, its accounts and its spaces.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use actix_web::{http::Method, test::TestRequest};
use lkr::{Catalog, IngestOptions, ports::Embedder};
use lkr_store_lmdb::{LmdbOptions, LmdbStore};
use serde_json::{Value, json};

use crate::support::{Api, App, TestOptions, TestStores, api_with};
use crate::{
    operation_clock::{OperationClock, Place},
    refusing_embedder::RefusingEmbedder,
};

/// The path of the Model Context Protocol, which is not below `/api/v1`.
pub(crate) const AGENTS: &str = "/mcp";

/// Who sends a request. The answers to the first four are compared; they may not read `legal`, `vault` and `archive`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Caller {
    /// Reads `default`, `desk` and `team`, and writes to the first two.
    Bob,
    /// A key of Bob's that is limited to `default` and `team`.
    BobsKey,
    /// Reads and writes `default`.
    Carl,
    Anonymous,
    /// Writes to `team` and `archive`.
    Alice,
    /// Writes to `legal`, `vault` and `archive`.
    Wim,
    Admin,
}

impl Caller {
    /// Those whose answers are compared.
    pub(crate) const OBSERVERS: [Self; 4] = [Self::Bob, Self::BobsKey, Self::Carl, Self::Anonymous];
}

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Operation {
    pub(crate) caller: Caller,
    pub(crate) method: Method,
    /// Without `/api/v1`, or [`AGENTS`].
    pub(crate) path: String,
    pub(crate) body: Option<Value>,
    pub(crate) idempotency_key: Option<String>,
}

/// The status, headers and body of a response, without durations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// What differs between the worlds that are tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Setup {
    /// Whether the stores are embedded ones; in memory otherwise.
    pub(crate) is_embedded: bool,
    /// Whether there is an embedding model.
    pub(crate) has_model: bool,
    /// Whether near duplicates are duplicates.
    pub(crate) finds_near_duplicates: bool,
}

/// A service with a clock that the test sets.
pub(crate) struct Service<S> {
    api: Api<S>,
    catalog: Catalog,
    clock: Arc<OperationClock>,
    tokens: BTreeMap<Caller, String>,
    _folder: tempfile::TempDir,
}

/// Starts a service with its accounts and the spaces that both services have.
pub(crate) async fn start(setup: Setup) -> Service<impl App> {
    let clock = Arc::new(OperationClock::default());
    let folder = tempfile::tempdir().unwrap();
    let stores = setup.is_embedded.then(|| {
        let store = LmdbStore::open(folder.path(), LmdbOptions::default()).unwrap();
        TestStores {
            vectors: Arc::new(store.vectors()),
            state: Arc::new(store.state()),
            queue: Arc::new(store.queue()),
        }
    });
    let embedder = setup.has_model.then(|| Arc::new(RefusingEmbedder::default()) as Arc<dyn Embedder>);
    // One worker, so that of two equal texts in a batch the first becomes a document.
    let ingest = IngestOptions { workers: 1, ..IngestOptions::default() };
    let options = TestOptions {
        ingest,
        stores,
        embedder,
        clock: Some(Arc::<OperationClock>::clone(&clock)),
        ..TestOptions::default()
    };
    let api = api_with(options).await;
    let catalog = Catalog::new(api.kb.state());
    let mut service = Service { api, catalog, clock, tokens: BTreeMap::new(), _folder: folder };
    service.open_accounts_and_spaces(setup.finds_near_duplicates).await;
    service
}

impl<S: App> Service<S> {
    async fn open_accounts_and_spaces(&mut self, finds_near_duplicates: bool) {
        let mut tokens =
            BTreeMap::from([(Caller::Admin, self.api.admin().await), (Caller::Anonymous, String::new())]);
        for (caller, name) in
            [(Caller::Bob, "bob"), (Caller::Carl, "carl"), (Caller::Alice, "alice"), (Caller::Wim, "wim")]
        {
            tokens.insert(caller, self.api.user(name).await);
        }
        self.tokens = tokens;
        for space in ["team", "desk", "legal", "vault", "archive"] {
            self.admin(Method::POST, "/spaces", json!({ "space": space })).await;
        }
        for (member, space, role) in [
            ("bob", "team", "reader"),
            ("bob", "desk", "writer"),
            ("alice", "team", "writer"),
            ("alice", "archive", "writer"),
            ("wim", "legal", "writer"),
            ("wim", "vault", "writer"),
            ("wim", "archive", "writer"),
        ] {
            let path = format!("/spaces/{space}/members/user:{member}");
            self.admin(Method::PUT, &path, json!({ "role": role })).await;
        }
        if finds_near_duplicates {
            let dedup = json!({ "dedup": { "strategy": "simhash", "simhash_threshold": 12 } });
            self.admin(Method::PUT, "/settings", dedup).await;
        }
        let key = json!({ "name": "k", "spaces": ["default", "team"] });
        self.tokens.insert(Caller::BobsKey, self.api.key_with(&self.tokens[&Caller::Bob], key).await);
    }

    async fn admin(&self, method: Method, path: &str, body: Value) {
        let operation = Operation {
            caller: Caller::Admin,
            method,
            path: path.to_owned(),
            body: Some(body),
            idempotency_key: None,
        };
        let answer = self.send(&operation, "setup").await;
        assert!((200..300).contains(&answer.status), "{path}: {}", answer.body);
    }

    /// Sends an operation at its time and waits for what it started.
    pub(crate) async fn perform(&self, operation: &Operation, number: usize, place: Place) -> Answer {
        self.clock.set(number, place);
        let answer = self.send(operation, &format!("operation-{number}")).await;
        let is_write = operation.method != Method::GET;
        if is_write && answer.status < 300 {
            self.settle().await;
        }
        answer
    }

    async fn send(&self, operation: &Operation, request_id: &str) -> Answer {
        let Operation { caller, method, path, body, idempotency_key } = operation;
        let uri = if path == AGENTS { path.clone() } else { format!("/api/v1{path}") };
        let mut request = TestRequest::with_uri(&uri)
            .insert_header(("accept", "application/json, text/event-stream"))
            .method(method.clone())
            .insert_header(("x-request-id", request_id));
        let token = &self.tokens[caller];
        if !token.is_empty() {
            request = request.insert_header(("authorization", format!("Bearer {token}")));
        }
        if let Some(key) = idempotency_key {
            request = request.insert_header(("idempotency-key", key.as_str()));
        }
        if let Some(body) = body {
            request = request.set_json(body);
        }
        let response = self.api.send(request).await;
        let header =
            |(name, value): (&actix_web::http::header::HeaderName, &actix_web::http::header::HeaderValue)| {
                (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
            };
        let mut headers: Vec<_> = response.headers.iter().map(header).collect();
        headers.sort_unstable();
        let body = without_durations(&String::from_utf8_lossy(&response.body));
        Answer { status: response.status.as_u16(), headers, body }
    }

    /// Waits until no task is unfinished and no deleted point is left, which would count in the frequencies of its terms.
    async fn settle(&self) {
        for round in 0_u32.. {
            if self.catalog.unfinished(None, 1).await.unwrap().0.is_empty()
                && self.catalog.garbage(None, 1).await.unwrap().is_empty()
            {
                return;
            }
            assert!(round < 30_000, "a task or the collection of garbage does not end");
            match round {
                0..20 => tokio::task::yield_now().await,
                _ => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
    }
}

/// A body with 0 for each duration.
fn without_durations(body: &str) -> String {
    let mut left = body;
    let mut kept = String::with_capacity(body.len());
    while let Some((at, key)) = ["\"took_ms\":", "\"elapsed_ms\":", "\"ms\":"]
        .iter()
        .filter_map(|key| left.find(key).map(|at| (at, key)))
        .min()
    {
        let (before, after) = left.split_at(at + key.len());
        kept.push_str(before);
        kept.push('0');
        left = after.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    }
    kept + left
}
