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
    http::{Answer, Body, End, Request, wait_for_the_end},
};

type Script = dyn Fn(&Value) -> String + Send + Sync;

/// A provider of models on this machine. It serves until the process ends; clones are the same one.
#[derive(Clone)]
pub struct TestProvider {
    port: u16,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    quirks: ProviderBehavior,
    script: Arc<Script>,
    next: VecDeque<Fault>,
    always: Option<Fault>,
    seen: Vec<Seen>,
    badly_asked: Vec<String>,
}

/// What a provider knows and what not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderBehavior {
    /// Who does not show this key is refused.
    pub key: Option<String>,
    /// The one model that it has; `None` where it has every one.
    pub model: Option<String>,
    /// Answers are not held to schemas.
    pub no_json_schema: bool,
    /// Nor to be JSON.
    pub no_json_object: bool,
    /// What streams cost is not told.
    pub no_stream_options: bool,
    /// Answers come whole, whatever is asked for.
    pub no_streams: bool,
    /// `max_completion_tokens` is what it wants.
    pub no_max_tokens: bool,
    /// It chooses its words as it likes.
    pub no_temperature: bool,
    /// The most words that a request may have.
    pub context_tokens: usize,
    /// The dimensions of its vectors.
    pub dims: usize,
    /// The most texts that it embeds at a time.
    pub most_texts: usize,
    /// The most words that such a text may have.
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

/// A request that came.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// The method and the path.
    pub line: String,
    /// What `Authorization` says.
    pub authorization: Option<String>,
    /// The body.
    pub body: Value,
}

impl TestProvider {
    /// A provider that knows everything and answers well.
    #[must_use]
    pub fn start() -> Self {
        Self::with(ProviderBehavior::default())
    }

    /// A provider with quirks.
    ///
    /// # Panics
    /// Where it cannot listen.
    #[must_use]
    pub fn with(quirks: ProviderBehavior) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let shared = Shared {
            quirks,
            script: Arc::new(last_said),
            next: VecDeque::new(),
            always: None,
            seen: Vec::new(),
            badly_asked: Vec::new(),
        };
        let provider = Self { port, shared: Arc::new(Mutex::new(shared)) };
        let serving = provider.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = serving.clone();
                thread::spawn(move || serving.serve(stream));
            }
        });
        provider
    }

    /// Where it is.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// What its language model says from now on, by the body of the request.
    pub fn script(&self, script: impl Fn(&Value) -> String + Send + Sync + 'static) {
        self.shared().script = Arc::new(script);
    }

    /// The next requests are answered so, one after the other.
    pub fn next(&self, faults: impl IntoIterator<Item = Fault>) {
        self.shared().next.extend(faults);
    }

    /// From now on every request is answered so; `None` for well.
    pub fn always(&self, fault: Option<Fault>) {
        self.shared().always = fault;
    }

    /// What it was asked so far.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        self.shared().seen.clone()
    }

    /// Asserts that every request was one that the provider's schema allows.
    ///
    /// # Panics
    /// Where one was not.
    #[track_caller]
    pub fn assert_well_asked(&self) {
        let badly_asked = self.shared().badly_asked.clone();
        assert!(badly_asked.is_empty(), "requests that no provider takes: {badly_asked:?}");
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, mut stream: TcpStream) {
        let Some(request) = Request::read(&stream) else { return };
        let body = serde_json::from_slice(&request.body).unwrap_or_default();
        let mut line = request.line.split(' ');
        let seen = Seen {
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
            Some(Fault::Hang) => return wait_for_the_end(&mut stream),
            Some(Fault::HangUp) => return,
            _ => {}
        }
        self.answer(&request, &seen, fault.as_ref()).send(&mut stream);
    }

    fn answer(&self, request: &Request, seen: &Seen, fault: Option<&Fault>) -> Answer {
        let (quirks, script) = {
            let shared = self.shared();
            (shared.quirks.clone(), Arc::clone(&shared.script))
        };
        let refused = |status, message: &str, code: &str| {
            Answer::json(
                status,
                &json!({ "error": { "message": message, "type": "invalid_request_error", "param": null, "code": code } }),
            )
        };
        if let Err(reason) = well_asked(request, seen) {
            self.shared().badly_asked.push(reason.clone());
            return refused(400, &reason, "invalid");
        }
        let key = quirks.key.as_ref().map(|key| format!("Bearer {key}"));
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
        if quirks.model.as_ref().is_some_and(|model| seen.body["model"] != *model) {
            let said = format!("The model {} does not exist", seen.body["model"]);
            return refused(404, &said, "model_not_found");
        }
        if seen.line.ends_with("/embeddings") {
            return match embeddings::refusal(&quirks, &seen.body) {
                Some((status, message, code)) => refused(status, &message, code),
                None => embeddings::answer(&seen.body, fault, &quirks),
            };
        }
        match chat::refusal(&quirks, &seen.body) {
            Some((message, code)) => refused(400, &message, code),
            None => chat::answer(&seen.body, &script(&seen.body), fault, &quirks),
        }
    }
}

impl fmt::Debug for TestProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestProvider").field("port", &self.port).finish_non_exhaustive()
    }
}

fn last_said(body: &Value) -> String {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let said =
        messages.iter().rfind(|message| message["role"] == "user").and_then(|last| last["content"].as_str());
    said.unwrap_or_default().to_owned()
}

fn well_asked(request: &Request, seen: &Seen) -> Result<(), String> {
    if request.header("content-type") != Some("application/json") {
        return Err("Content-Type is not application/json".to_owned());
    }
    if seen.authorization.as_ref().is_some_and(|shown| !shown.starts_with("Bearer ")) {
        return Err("Authorization does not begin with Bearer".to_owned());
    }
    match seen.line.as_str() {
        "POST /v1/chat/completions" => check_chat(&seen.body),
        "POST /v1/embeddings" => check_embeddings(&seen.body),
        line => Err(format!("there is no {line}")),
    }
}

/// A whole answer as a fault makes it.
pub(crate) fn spoilt(mut answer: Answer, fault: Option<&Fault>) -> Answer {
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
