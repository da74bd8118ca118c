//! HTTP requests to a server.

use std::{
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use ureq::{Body, http};

use crate::{
    Response, Server,
    server::{ADMIN_PASSWORD, TIMEOUT},
};

impl Server {
    /// An access token of the account `admin`.
    pub fn admin(&self) -> &str {
        self.admin.get_or_init(|| {
            let body = json!({"username": "admin", "password": ADMIN_PASSWORD});
            let response = self.call("POST", "/auth/login", Some(&body), None);
            response.data()["access_token"].as_str().expect("a token").to_owned()
        })
    }

    /// Sends a GET for `path` below `/api/v1`.
    #[must_use]
    pub fn get(&self, path: &str) -> Response {
        self.call("GET", path, None, None)
    }

    /// Sends JSON without a credential.
    #[must_use]
    pub fn post(&self, path: &str, body: &Value) -> Response {
        self.call("POST", path, Some(body), None)
    }

    /// Sends a request to `path` below `/api/v1`.
    ///
    /// # Panics
    /// If no response arrives.
    #[must_use]
    pub fn call(&self, method: &str, path: &str, body: Option<&Value>, token: Option<&str>) -> Response {
        let response = self.try_call(method, &format!("/api/v1{path}"), body, token);
        response.unwrap_or_else(|e| panic!("{method} {path}: {e}\n{}", self.log()))
    }

    /// Sends a request to `path` from the root, to a server that may be down.
    pub fn try_call(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        token: Option<&str>,
    ) -> Result<Response, ureq::Error> {
        let mut headers = Vec::new();
        headers.extend(token.map(|token| ("Authorization", format!("Bearer {token}"))));
        headers.extend(body.map(|_| ("Content-Type", "application/json".to_owned())));
        self.try_send(method, path, &headers, body.map(|body| body.to_string().into_bytes()))
    }

    /// Sends any body with any headers to `path` from the root.
    pub fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: Option<Vec<u8>>,
    ) -> Result<Response, ureq::Error> {
        let url = format!("http://127.0.0.1:{}{path}", self.port());
        let mut request = http::Request::builder().method(method).uri(url);
        for (key, value) in headers {
            request = request.header(*key, value);
        }
        match body {
            Some(body) => read(self.agent.run(request.body(body)?)?),
            None => read(self.agent.run(request.body(())?)?),
        }
    }

    /// Submits a document as admin and returns its task.
    #[must_use]
    pub fn submit(&self, document: &Value) -> Value {
        let response = self.call("POST", "/documents", Some(document), Some(self.admin()));
        assert_eq!(response.status, 202, "{}", response.json);
        response.data().clone()
    }

    /// Ingests a document and returns its id.
    #[must_use]
    pub fn add(&self, document: &Value) -> String {
        let task = self.wait_for_task(self.submit(document)["task_id"].as_str().expect("an id"));
        assert_eq!(task["status"], "done", "{task}");
        task["result"]["doc_id"].as_str().expect("an id").to_owned()
    }

    /// A task. One about all documents is read with a login.
    #[must_use]
    pub fn task(&self, task_id: &str) -> Value {
        let path = format!("/documents/tasks/{task_id}");
        let shown = self.get(&path);
        if shown.code() != 1004 {
            return shown.data().clone();
        }
        self.call("GET", &path, None, Some(self.admin())).data().clone()
    }

    /// Waits until a task has ended, and returns it.
    ///
    /// # Panics
    /// If it does not end within two minutes.
    #[must_use]
    pub fn wait_for_task(&self, task_id: &str) -> Value {
        self.wait_until(|| {
            let task = self.task(task_id);
            matches!(task["status"].as_str(), Some("done" | "failed")).then_some(task)
        })
    }

    /// Waits until `poll` returns a value.
    ///
    /// # Panics
    /// If that takes more than two minutes.
    pub fn wait_until<T>(&self, poll: impl Fn() -> Option<T>) -> T {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(value) = poll() {
                return value;
            }
            assert!(Instant::now() < deadline, "timed out:\n{}", self.log());
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// The data of a search response.
    #[must_use]
    pub fn search(&self, request: &Value) -> Value {
        self.post("/search", request).data().clone()
    }

    /// All items of a listing.
    #[must_use]
    pub fn list_all(&self, path: &str) -> Vec<Value> {
        self.list_all_as(path, None)
    }

    /// All items of a listing that the holder of a token sees.
    ///
    /// # Panics
    /// If the response has no items.
    #[must_use]
    pub fn list_all_as(&self, path: &str, token: Option<&str>) -> Vec<Value> {
        let (mut items, mut after) = (Vec::new(), String::new());
        let mark = if path.contains('?') { '&' } else { '?' };
        loop {
            let path = format!("{path}{mark}limit=100{after}");
            let page = self.call("GET", &path, None, token).data().clone();
            items.extend(page["items"].as_array().expect("items").iter().cloned());
            match page["next_offset"].as_str() {
                Some(next) => after = format!("&offset={next}"),
                None => return items,
            }
        }
    }
}

fn read(mut response: http::Response<Body>) -> Result<Response, ureq::Error> {
    let status = response.status().as_u16();
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers =
        response.headers().iter().map(|(key, value)| (key.as_str().to_owned(), text(value))).collect();
    let body = response.body_mut().with_config().limit(1 << 30).read_to_vec()?;
    Ok(Response::new(status, headers, body))
}
