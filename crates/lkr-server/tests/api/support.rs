//! The application on in-memory stores, and a client for it.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use actix_web::{
    body::{BoxBody, MessageBody, to_bytes},
    dev::{Service, ServiceResponse},
    http::{Method, StatusCode, header::HeaderMap},
    test,
    web::Data,
};
use lkr::{
    Builder, Clock, IngestOptions, KnowledgeBase, TaskStatus,
    files::{FileReader, FileTools, Format},
    ports::{
        Embedder,
        models::{self, MemoryEmbedder},
    },
};
use lkr_auth::{Actor, Auth, AuthOptions, NewAccount, Role};
use lkr_outgoing::{Outgoing, Policy};
use lkr_server::{
    AppOptions, AppState, ChatModels, ConnectEmbedder, Deletions, EmbedderReconciler, Rerankers, Services,
    address_check, available_plugins, connect, create_app, open_webhooks, outbox,
};
use lkr_settings::{SealingKey, Settings};
use lkr_spaces::Spaces;
use lkr_state::{FailingQueue, FailingState, MemoryQueue, MemoryState, StateStore, TaskQueue};
use lkr_vectors::{FailingVectors, MemoryVectors, VectorStore};
use lkr_webhooks::Webhooks;
use serde_json::{Value, json};

use crate::conformance;

/// The size limit of uploads in these tests.
pub(crate) const MAX_UPLOAD_BYTES: u64 = 1024 * 1024;

pub(crate) const PASSWORD: &str = "correct horse battery";

pub(crate) const TEXT: &str = "# Moons\n\nJupiter has many moons.\n\n## Io\n\nIo has volcanoes. They never rest.\n\n\
    ## Europa\n\nEuropa hides an ocean under its ice.\n";

/// Makes one operation of one store fail.
#[derive(Debug, Clone, Default)]
pub(crate) struct FaultInjector(Arc<Mutex<Option<StoreFault>>>);

/// A store, an operation, and whether its error is retryable.
type StoreFault = (&'static str, &'static str, bool);

impl FaultInjector {
    /// Makes `operation` of `store` fail from now on.
    pub(crate) fn set(&self, store: &'static str, operation: &'static str, retryable: bool) {
        *self.0.lock().unwrap() = Some((store, operation, retryable));
    }

    pub(crate) fn clear(&self) {
        *self.0.lock().unwrap() = None;
    }

    fn find(&self, store: &str, operation: &str) -> Option<bool> {
        let fault = *self.0.lock().unwrap();
        fault.filter(|fault| fault.0 == store && fault.1 == operation).map(|fault| fault.2)
    }
}

/// A response.
#[derive(Debug)]
pub(crate) struct TestResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl TestResponse {
    /// Reads the body of a response.
    pub(crate) async fn of(response: ServiceResponse<BoxBody>) -> Self {
        let (status, headers) = (response.status(), response.headers().clone());
        let body = to_bytes(response.into_body().boxed()).await.unwrap().to_vec();
        Self { status, headers, body }
    }

    /// A response without its body.
    fn head_of(response: &ServiceResponse<BoxBody>) -> Self {
        Self { status: response.status(), headers: response.headers().clone(), body: Vec::new() }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| panic!("not JSON: {:?}", String::from_utf8_lossy(&self.body)))
    }

    pub(crate) fn data(&self) -> Value {
        assert!(self.status.is_success(), "{} {}", self.status, self.json());
        self.json()["data"].clone()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Asserts that the response is an error of the OpenAI API, and returns it.
    #[track_caller]
    pub(crate) fn expect_openai_error(&self, status: u16, code: &str) -> Value {
        let json = self.json();
        let keys: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["error"]);
        let error = &json["error"];
        let keys: Vec<_> = error.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["code", "message", "param", "type"]);
        assert_eq!((self.status.as_u16(), error["code"].as_str()), (status, Some(code)), "{json}");
        assert!(error["message"].is_string() && error["type"].is_string(), "{json}");
        assert!(self.header("x-request-id").is_some());
        error.clone()
    }

    /// Asserts that the response is an error as Dify expects it, and returns its message.
    #[track_caller]
    pub(crate) fn expect_dify_error(&self, status: u16, code: u64) -> String {
        let json = self.json();
        let keys: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["error_code", "error_msg"]);
        assert_eq!((self.status.as_u16(), json["error_code"].as_u64()), (status, Some(code)), "{json}");
        assert!(self.header("x-request-id").is_some());
        json["error_msg"].as_str().unwrap().to_owned()
    }

    /// Asserts that the response is an error in the envelope, and returns its message.
    #[track_caller]
    pub(crate) fn expect_error(&self, code: u32, status: u16) -> String {
        let json = self.json();
        let keys: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["code", "data", "message", "request_id"]);
        assert_eq!((json["code"].as_u64(), self.status.as_u16()), (Some(code.into()), status), "{json}");
        assert_eq!(json["data"], Value::Null);
        assert_eq!(json["request_id"].as_str(), self.header("x-request-id"));
        json["message"].as_str().unwrap().to_owned()
    }
}

/// Options of the application under test.
#[derive(Debug, Clone, Default)]
pub(crate) struct TestOptions {
    pub(crate) require_login_for_reads: bool,
    pub(crate) must_change_password: bool,
    pub(crate) starting: bool,
    pub(crate) register_enabled: bool,
    pub(crate) trusted_proxies: &'static [&'static str],
    pub(crate) cors_origins: &'static [&'static str],
    /// Stores in memory unless given.
    pub(crate) stores: Option<TestStores>,
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
    pub(crate) ingest: IngestOptions,
    pub(crate) slow_search: Option<Duration>,
    /// The lifetime of sessions; twelve hours unless given.
    pub(crate) session_ttl: Option<Duration>,
    /// The tools of parsers; none unless given.
    pub(crate) tools: FileTools,
}

/// The stores of the application under test.
#[derive(Debug, Clone)]
pub(crate) struct TestStores {
    pub(crate) vectors: Arc<dyn VectorStore>,
    pub(crate) state: Arc<dyn StateStore>,
    pub(crate) queue: Arc<dyn TaskQueue>,
}

impl Default for TestStores {
    fn default() -> Self {
        Self {
            vectors: Arc::new(MemoryVectors::default()),
            state: Arc::new(MemoryState::default()),
            queue: Arc::new(MemoryQueue::default()),
        }
    }
}

/// The application under test with its stores.
pub(crate) struct Api<S> {
    app: S,
    pub(crate) kb: KnowledgeBase,
    pub(crate) auth: Auth,
    pub(crate) spaces: Spaces,
    pub(crate) settings: Settings,
    pub(crate) chat_models: ChatModels,
    /// None while the service is starting.
    pub(crate) webhooks: Option<Webhooks>,
    pub(crate) app_state: Data<AppState>,
    pub(crate) faults: FaultInjector,
    _spool: tempfile::TempDir,
}

pub(crate) trait App:
    Service<actix_http::Request, Response = ServiceResponse<BoxBody>, Error = actix_web::Error>
{
}

impl<S> App for S where
    S: Service<actix_http::Request, Response = ServiceResponse<BoxBody>, Error = actix_web::Error>
{
}

pub(crate) async fn api() -> Api<impl App> {
    api_with(TestOptions::default()).await
}

pub(crate) async fn api_with(options: TestOptions) -> Api<impl App> {
    let faults = FaultInjector::default();
    let (outbox, rerankers, chat_models) = (outbox(), Rerankers::default(), ChatModels::default());
    let deletions = Deletions::default();
    let (builder, state) = builder(&options, &faults);
    let app_options = AppOptions {
        require_login_for_reads: options.require_login_for_reads,
        register_enabled: options.register_enabled,
        trusted_proxies: options.trusted_proxies.iter().map(|network| network.parse().unwrap()).collect(),
        cors_origins: options.cors_origins.iter().map(|&origin| origin.to_owned()).collect(),
        upload_extensions: Format::extensions().map(str::to_owned).collect(),
        upload_max_bytes: MAX_UPLOAD_BYTES,
        upload_spool_bytes: 16 * MAX_UPLOAD_BYTES,
        slow_search: options.slow_search,
        ..AppOptions::default()
    };
    let app_state = Data::new(AppState::new(app_options));
    let builder = builder
        .outbox(Arc::new(outbox.clone()))
        .reranker_source(Arc::new(rerankers.clone()))
        .chat_models(Arc::new(chat_models.clone()))
        .deletion_policy(Arc::new(deletions.clone()))
        .task_observer(app_state.task_observer());
    let kb = builder.build().await.unwrap();
    let mut auth_options = AuthOptions { iterations: 1_000, ..AuthOptions::default() };
    auth_options.session_ttl = options.session_ttl.unwrap_or(auth_options.session_ttl);
    let auth = Auth::new(Arc::clone(&state), &auth_options).unwrap();
    auth.initialise(PASSWORD, options.must_change_password).await.unwrap();
    let spaces = Spaces::new(Arc::clone(&state));
    let spaces = match &options.clock {
        Some(clock) => spaces.with_clock(Arc::clone(clock)),
        None => spaces,
    };
    spaces.ensure_default().await.unwrap();
    deletions.follow(auth.clone(), spaces.clone());
    let tools = options.tools.clone();
    let policy = Policy::any();
    let (key, check) = (SealingKey::generate(), address_check(policy.clone()));
    let settings =
        Settings::open_checking(Arc::clone(&state), key.clone(), available_plugins(&tools), check).unwrap();
    let spool = tempfile::tempdir().unwrap();
    let files = FileReader::in_process(spool.path().to_owned(), tools).unwrap();
    let mut opened = None;
    if !options.starting {
        let (kb, auth, spaces, settings) = (kb.clone(), auth.clone(), spaces.clone(), settings.clone());
        let outgoing = Outgoing::new(policy).unwrap();
        rerankers.follow(&settings, outgoing.clone(), app_state.call_observer("rerank"));
        chat_models.follow(&settings, outgoing.clone(), |purpose| app_state.call_observer(purpose));
        let chat_models = chat_models.clone();
        let webhooks = open_webhooks(state, key, outgoing.clone(), outbox, &app_state).await.unwrap();
        opened = Some(webhooks.clone());
        let embedder_reconciler = EmbedderReconciler::follow(
            kb.clone(),
            settings.clone(),
            outgoing.clone(),
            (PathBuf::from("no-model"), None),
            connect_by_name(),
        )
        .await;
        app_state.open(Services {
            kb,
            files,
            auth,
            spaces,
            settings,
            embedder_reconciler,
            webhooks,
            chat_models,
            outgoing,
            fallback: None,
        });
    }
    let app = test::init_service(create_app(app_state.clone())).await;
    let webhooks = opened;
    Api { app, kb, auth, spaces, settings, chat_models, webhooks, app_state, faults, _spool: spool }
}

/// A builder with the stores, clock and model of the options, and its state store.
fn builder(options: &TestOptions, faults: &FaultInjector) -> (Builder, Arc<dyn StateStore>) {
    let TestStores { vectors, state, queue } = options.stores.clone().unwrap_or_default();
    let (f1, f2, f3) = (faults.clone(), faults.clone(), faults.clone());
    let vectors = FailingVectors::new(vectors, move |operation| {
        let (unavailable, internal) = (lkr_vectors::ErrorKind::Unavailable, lkr_vectors::ErrorKind::Internal);
        f1.find("vectors", operation).map(|retryable| if retryable { unavailable } else { internal })
    });
    let state: Arc<dyn StateStore> =
        Arc::new(FailingState::new(state, move |operation| f2.find("state", operation).map(state_error)));
    let queue = FailingQueue::new(queue, move |operation| f3.find("queue", operation).map(state_error));
    let builder =
        KnowledgeBase::builder().vectors(Arc::new(vectors)).state(Arc::clone(&state)).queue(Arc::new(queue));
    let builder = match &options.clock {
        Some(clock) => builder.clock(Arc::clone(clock)),
        None => builder,
    };
    let builder = match &options.embedder {
        Some(embedder) => builder.embedder(Arc::clone(embedder)),
        None => builder,
    };
    (builder.ingest_options(options.ingest.clone()), state)
}

/// Connects to in-memory embedders by model name: `memory-32` has 32 dimensions, and so has `stuck-32`, which never answers.
/// Other models connect over HTTP.
fn connect_by_name() -> ConnectEmbedder {
    let connect_http = connect(Arc::new(NoCallCounts));
    Arc::new(move |entry, outgoing| {
        if let Some(dims) = entry.model.strip_prefix("stuck-").and_then(|dims| dims.parse().ok()) {
            let embedder: Arc<dyn Embedder> = Arc::new(StuckEmbedder(MemoryEmbedder::with_dims(dims)));
            return Box::pin(std::future::ready(Ok(embedder)));
        }
        let dims = entry.model.strip_prefix("memory-").and_then(|dims| dims.parse().ok());
        match dims {
            Some(dims) => {
                let embedder: Arc<dyn Embedder> = Arc::new(MemoryEmbedder::with_dims(dims));
                Box::pin(std::future::ready(Ok(embedder)))
            }
            None => connect_http(entry, outgoing),
        }
    })
}

/// An embedder whose calls never end.
#[derive(Debug)]
struct StuckEmbedder(MemoryEmbedder);

#[async_trait::async_trait]
impl Embedder for StuckEmbedder {
    fn profile(&self) -> &models::EmbedderProfile {
        self.0.profile()
    }

    async fn embed(&self, _: models::EmbedKind, _: &[String]) -> models::Result<Vec<Vec<f32>>> {
        std::future::pending().await
    }

    fn letters_per_piece(&self, text: &str) -> Option<f32> {
        self.0.letters_per_piece(text)
    }
}

/// Ignores the calls of models.
#[derive(Debug)]
struct NoCallCounts;

impl models::CallObserver for NoCallCounts {
    fn ended(&self, _: &models::ModelCall) {}
}

fn state_error(retryable: bool) -> lkr_state::ErrorKind {
    if retryable { lkr_state::ErrorKind::Unavailable } else { lkr_state::ErrorKind::Internal }
}

impl<S: App> Api<S> {
    /// Follows the settings as another process on the same stores does.
    pub(crate) async fn follow_settings(&self) -> EmbedderReconciler {
        let outgoing = Outgoing::new(Policy::any()).unwrap();
        let folder = PathBuf::from("no-model");
        EmbedderReconciler::follow(
            self.kb.clone(),
            self.settings.clone(),
            outgoing,
            (folder, None),
            connect_by_name(),
        )
        .await
    }

    pub(crate) async fn send(&self, request: test::TestRequest) -> TestResponse {
        TestResponse::of(self.respond(request).await).await
    }

    /// Sends a request and returns the response before its body is read.
    pub(crate) async fn respond(&self, request: test::TestRequest) -> ServiceResponse<BoxBody> {
        self.app.call(request.to_request()).await.unwrap()
    }

    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        token: &str,
        body: Option<Value>,
    ) -> TestResponse {
        let mut request = test::TestRequest::with_uri(path).method(method.clone());
        if !token.is_empty() {
            request = request.insert_header(("authorization", format!("Bearer {token}")));
        }
        if let Some(body) = body {
            request = request.set_json(body);
        }
        let response = self.respond(request).await;
        let response = match response.status().is_success() && is_endless(path) {
            true => TestResponse::head_of(&response),
            false => TestResponse::of(response).await,
        };
        conformance::check(self.openapi().await, &method, path, &response);
        response
    }

    /// The OpenAPI document.
    pub(crate) async fn openapi(&self) -> &'static Value {
        match conformance::known_document() {
            Some(document) => document,
            None => {
                let response = self.send(test::TestRequest::with_uri("/api/v1/openapi.json")).await;
                assert_eq!(response.status, StatusCode::OK, "{}", response.json());
                conformance::keep_document(response.json())
            }
        }
    }

    pub(crate) async fn get(&self, path: &str) -> TestResponse {
        self.call(Method::GET, path, "", None).await
    }

    pub(crate) async fn post(&self, path: &str, token: &str, body: Value) -> TestResponse {
        self.call(Method::POST, path, token, Some(body)).await
    }

    /// Logs in and returns the token.
    pub(crate) async fn login(&self, username: &str) -> String {
        let body = json!({ "username": username, "password": PASSWORD });
        let response = self.post("/api/v1/auth/login", "", body).await;
        response.data()["access_token"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn admin(&self) -> String {
        self.login("admin").await
    }

    /// Creates an account with the password [`PASSWORD`].
    pub(crate) async fn account(&self, username: &str, role: Role, must_change_password: bool) {
        let account = NewAccount { username, password: PASSWORD, role, must_change_password };
        self.auth.create_account(account, Actor::program("a test")).await.unwrap();
    }

    /// Creates an account of role user and returns a token for it.
    pub(crate) async fn user(&self, username: &str) -> String {
        self.account(username, Role::User, false).await;
        self.login(username).await
    }

    /// Creates an API key for the account of a token.
    pub(crate) async fn key(&self, token: &str) -> String {
        self.key_with(token, json!({ "name": "a program" })).await
    }

    /// Creates an API key from a body.
    pub(crate) async fn key_with(&self, token: &str, body: Value) -> String {
        let response = self.post("/api/v1/auth/keys", token, body).await;
        response.data()["key"].as_str().unwrap().to_owned()
    }

    /// Adds a document, waits until it is searchable and returns its id.
    pub(crate) async fn add(&self, token: &str, body: Value) -> String {
        let accepted = self.post("/api/v1/documents", token, body).await;
        assert_eq!(accepted.status, StatusCode::ACCEPTED, "{}", accepted.json());
        let task_id = accepted.data()["task_id"].as_str().unwrap().to_owned();
        let task = self.ended(token, &task_id).await;
        assert_eq!(task["status"], "done", "{task}");
        task["doc_id"].as_str().unwrap().to_owned()
    }

    /// Waits for the end of a task and returns the task.
    pub(crate) async fn ended(&self, token: &str, task_id: &str) -> Value {
        loop {
            let task = self.kb.task(task_id.parse().unwrap()).await.unwrap().unwrap();
            if matches!(task.status, TaskStatus::Done | TaskStatus::Failed) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        self.call(Method::GET, &format!("/api/v1/documents/tasks/{task_id}"), token, None).await.data()
    }
}

/// Whether the body of a response has no end.
fn is_endless(path: &str) -> bool {
    path.split('?').next() == Some("/api/v1/documents/tasks/events")
}

/// The names and data of server-sent events.
pub(crate) fn events(response: &TestResponse) -> Vec<(String, Value)> {
    let text = String::from_utf8(response.body.clone()).unwrap();
    let parse = |event: &str| {
        let (name, data) = event.split_once('\n').unwrap();
        let data = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        (name.strip_prefix("event: ").unwrap().to_owned(), data)
    };
    text.split_terminator("\n\n").map(parse).collect()
}
