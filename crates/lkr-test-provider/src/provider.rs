use std::{
    collections::VecDeque,
    fmt,
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use serde_json::{Value, json};

use crate::{
    chat,
    check::{check_chat, check_embeddings},
    embeddings,
    fault::Fault,
    http::{Answer, Body, End, Request, wait_for_close},
};

type Script = dyn Fn(&Value) -> String + Send + Sync;

/// A model provider on a local port. It serves until the process ends; clones share their state.
#[derive(Clone)]
pub struct TestProvider {
    port: u16,
    shared: Arc<Mutex<ProviderState>>,
}

struct ProviderState {
    behavior: ProviderBehavior,
    script: Arc<Script>,
    next: VecDeque<Fault>,
    always: Option<Fault>,
    seen: Vec<ReceivedRequest>,
    violations: Vec<String>,
}

/// The features that a provider has and lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderBehavior {
    /// The API key that requests must have.
    pub key: Option<String>,
    /// The only model that exists; `None` if every name is accepted.
    pub model: Option<String>,
    /// Lacks the response format `json_schema`.
    pub no_json_schema: bool,
    /// Lacks the response format `json_object`.
    pub no_json_object: bool,
    /// Lacks `stream_options`.
    pub no_stream_options: bool,
    /// Ignores `stream`.
    pub no_streams: bool,
    /// Lacks `max_tokens` and supports `max_completion_tokens`.
    pub no_max_tokens: bool,
    /// Lacks `temperature`.
    pub no_temperature: bool,
    /// The most tokens (words) of a request.
    pub context_tokens: usize,
    /// The dimensions of vectors.
    pub dims: usize,
    /// The most texts of an embedding request.
    pub most_texts: usize,
    /// The most tokens (words) of a text to embed.
    pub most_text_tokens: usize,
}

impl Default for ProviderBehavior {
    fn default() -> Self {
        Self {
            key: None,
            model: None,
            no_json_schema: false,
            no_json_object: false,
            no_stream_options: false,
            no_streams: false,
            no_max_tokens: false,
            no_temperature: false,
            context_tokens: usize::MAX,
            dims: 64,
            most_texts: usize::MAX,
            most_text_tokens: usize::MAX,
        }
    }
}

/// A request that was received.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceivedRequest {
    /// The method and the path.
    pub line: String,
    /// The value of `Authorization`.
    pub authorization: Option<String>,
    /// The body.
    pub body: Value,
}

impl TestProvider {
    /// Starts a provider that has all features.
    #[must_use]
    pub fn start() -> Self {
        Self::with(ProviderBehavior::default())
    }

    /// Starts a provider with this behaviour.
    ///
    /// # Panics
    /// If it cannot listen on a port.
    #[must_use]
    pub fn with(behavior: ProviderBehavior) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let state = ProviderState {
            behavior,
            script: Arc::new(last_user_message),
            next: VecDeque::new(),
            always: None,
            seen: Vec::new(),
            violations: Vec::new(),
        };
        let provider = Self { port, shared: Arc::new(Mutex::new(state)) };
        let serving = provider.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = serving.clone();
                thread::spawn(move || serving.serve(stream));
            }
        });
        provider
    }

    /// The base URL of its API.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// Sets the output of the language model, computed from the body of the request.
    pub fn script(&self, script: impl Fn(&Value) -> String + Send + Sync + 'static) {
        self.shared().script = Arc::new(script);
    }

    /// Injects these faults into the next requests, one each.
    pub fn next(&self, faults: impl IntoIterator<Item = Fault>) {
        self.shared().next.extend(faults);
    }

    /// Injects a fault into every further request; `None` stops that.
    pub fn always(&self, fault: Option<Fault>) {
        self.shared().always = fault;
    }

    /// All requests so far.
    #[must_use]
    pub fn seen(&self) -> Vec<ReceivedRequest> {
        self.shared().seen.clone()
    }

    /// Asserts that every request was valid by the API's schema.
    ///
    /// # Panics
    /// If one was invalid.
    #[track_caller]
    pub fn assert_well_asked(&self) {
        let violations = self.shared().violations.clone();
        assert!(violations.is_empty(), "invalid requests: {violations:?}");
    }

    fn shared(&self) -> MutexGuard<'_, ProviderState> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, mut stream: TcpStream) {
        let Some(request) = Request::read(&stream) else { return };
        let body = serde_json::from_slice(&request.body).unwrap_or_default();
        let mut line = request.line.split(' ');
        let seen = ReceivedRequest {
            line: format!("{} {}", line.next().unwrap_or_default(), line.next().unwrap_or_default()),
            authorization: request.header("authorization").map(str::to_owned),
            body,
        };
        let fault = {
            let mut shared = self.shared();
            shared.seen.push(seen.clone());
            shared.next.pop_front().or_else(|| shared.always.clone())
        };
        match &fault {
            Some(Fault::Hang) => return wait_for_close(&mut stream),
            Some(Fault::HangUp) => return,
            _ => {}
        }
        self.answer(&request, &seen, fault.as_ref()).send(&mut stream);
    }

    fn answer(&self, request: &Request, seen: &ReceivedRequest, fault: Option<&Fault>) -> Answer {
        let (behavior, script) = {
            let shared = self.shared();
            (shared.behavior.clone(), Arc::clone(&shared.script))
        };
        let refused = |status, message: &str, code: &str| {
            Answer::json(
                status,
                &json!({ "error": { "message": message, "type": "invalid_request_error", "param": null, "code": code } }),
            )
        };
        if let Err(reason) = validate(request, seen) {
            self.shared().violations.push(reason.clone());
            return refused(400, &reason, "invalid");
        }
        let key = behavior.key.as_ref().map(|key| format!("Bearer {key}"));
        if key.is_some() && seen.authorization != key {
            let shown = seen.authorization.as_deref().unwrap_or("none");
            return refused(401, &format!("Incorrect API key provided: {shown}"), "invalid_api_key");
        }
        if let Some(Fault::Answer { status, headers, body }) = fault {
            return Answer {
                status: *status,
                headers: headers.clone(),
                body: Body::Whole(body.clone()),
                end: End::Good,
            };
        }
        if behavior.model.as_ref().is_some_and(|model| seen.body["model"] != *model) {
            let message = format!("The model {} does not exist", seen.body["model"]);
            return refused(404, &message, "model_not_found");
        }
        if seen.line.ends_with("/embeddings") {
            return match embeddings::refusal(&behavior, &seen.body) {
                Some((status, message, code)) => refused(status, &message, code),
                None => embeddings::answer(&seen.body, fault, &behavior),
            };
        }
        match chat::refusal(&behavior, &seen.body) {
            Some((message, code)) => refused(400, &message, code),
            None => chat::answer(&seen.body, &script(&seen.body), fault, &behavior),
        }
    }
}

impl fmt::Debug for TestProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestProvider").field("port", &self.port).finish_non_exhaustive()
    }
}

fn last_user_message(body: &Value) -> String {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let content =
        messages.iter().rfind(|message| message["role"] == "user").and_then(|last| last["content"].as_str());
    content.unwrap_or_default().to_owned()
}

fn validate(request: &Request, seen: &ReceivedRequest) -> Result<(), String> {
    if request.header("content-type") != Some("application/json") {
        return Err("Content-Type is not application/json".to_owned());
    }
    if seen.authorization.as_ref().is_some_and(|shown| !shown.starts_with("Bearer ")) {
        return Err("Authorization does not begin with Bearer".to_owned());
    }
    match seen.line.as_str() {
        "POST /v1/chat/completions" => check_chat(&seen.body),
        "POST /v1/embeddings" => check_embeddings(&seen.body),
        line => Err(format!("no such route: {line}")),
    }
}

/// Applies a fault to a complete response.
pub(crate) fn with_fault(mut answer: Answer, fault: Option<&Fault>) -> Answer {
    let Body::Whole(body) = &mut answer.body else { return answer };
    match fault {
        Some(Fault::InvalidJson) => body.truncate(body.len() / 2),
        Some(Fault::CutAfter(bytes)) => {
            body.truncate(*bytes);
            answer.end = End::Cut;
        }
        Some(Fault::HangAfter(bytes)) => {
            body.truncate(*bytes);
            answer.end = End::Hang;
        }
        _ => {}
    }
    answer
}
