//! Rights and quotas of streamed responses.

use std::time::Duration;

use actix_web::{
    body::{BoxBody, MessageBody},
    dev::ServiceResponse,
    http::Method,
    test::TestRequest,
    web::Bytes,
};
use futures_util::future::poll_fn;
use serde_json::json;

use crate::support::{Api, App, TestOptions, TestResponse, api, api_with};

/// The longest time that a stream may take to notice that its right ended, and as much again for a busy machine.
const NOTICED_WITHIN: Duration = Duration::from_secs(10);

/// A response whose body is read part by part.
pub(crate) struct OpenStream(std::pin::Pin<Box<BoxBody>>);

impl OpenStream {
    pub(crate) async fn next(&mut self) -> Option<Result<Bytes, String>> {
        let part = poll_fn(|cx| self.0.as_mut().poll_next(cx)).await;
        part.map(|part| part.map_err(|error| error.to_string()))
    }

    /// Reads to the end, or to the first error as a connection does, and returns the last part.
    pub(crate) async fn last(&mut self) -> Option<Result<Bytes, String>> {
        let mut last = None;
        let reading = async {
            while let Some(part) = self.next().await {
                let is_error = part.is_err();
                last = Some(part);
                if is_error {
                    return;
                }
            }
        };
        tokio::time::timeout(NOTICED_WITHIN, reading).await.unwrap();
        last
    }
}

impl<S: App> Api<S> {
    pub(crate) async fn open(&self, path: &str, token: &str, address: &str) -> ServiceResponse<BoxBody> {
        let mut request = TestRequest::with_uri(path).peer_addr(format!("{address}:1234").parse().unwrap());
        if !token.is_empty() {
            request = request.insert_header(("authorization", format!("Bearer {token}")));
        }
        self.respond(request).await
    }

    /// Submits a document whose task stays pending.
    async fn pending_task(&self, token: &str) -> String {
        self.faults.set("queue", "push", true);
        let accepted = self.post("/api/v1/documents", token, json!({ "text": "Basalt." })).await.data();
        format!("/api/v1/documents/tasks/{}/events", accepted["task_id"].as_str().unwrap())
    }
}

pub(crate) fn stream(response: ServiceResponse<BoxBody>) -> OpenStream {
    assert_eq!(response.status().as_u16(), 200);
    OpenStream(Box::pin(response.into_body()))
}

async fn refused(response: ServiceResponse<BoxBody>) -> String {
    TestResponse::of(response).await.expect_error(1010, 503)
}

#[actix_web::test]
async fn event_stream_ends_when_its_account_is_disabled_or_deleted() {
    let api = api_with(TestOptions { require_login_for_reads: true, ..TestOptions::default() }).await;
    let admin = api.admin().await;
    let events = api.pending_task(&admin).await;
    for (name, method, body) in
        [("disabled", Method::PATCH, Some(json!({ "disabled": true }))), ("deleted", Method::DELETE, None)]
    {
        let token = api.user(name).await;
        let mut watched = stream(api.open(&events, &token, "192.0.2.1").await);
        assert!(watched.next().await.unwrap().unwrap().starts_with(b"event: task\n"));
        let path = format!("/api/v1/users/{name}");
        assert!(api.call(method, &path, &admin, body).await.status.is_success(), "{name}");
        assert_eq!(watched.last().await, None, "{name}: no event after the right ended");
    }
}

#[actix_web::test]
async fn event_stream_of_a_logged_out_session_ends() {
    let api = api().await;
    let admin = api.admin().await;
    let events = api.pending_task(&admin).await;
    let token = api.user("reader").await;
    let mut watched = stream(api.open(&events, &token, "192.0.2.1").await);
    watched.next().await.unwrap().unwrap();
    api.post("/api/v1/auth/logout", &token, json!({})).await.data();
    assert_eq!(watched.last().await, None);
    // Anonymous clients may still watch.
    assert!(stream(api.open(&events, "", "192.0.2.1").await).next().await.is_some());
}

#[actix_web::test]
async fn download_is_cut_off_when_its_account_is_disabled() {
    let api = api_with(TestOptions { require_login_for_reads: true, ..TestOptions::default() }).await;
    let admin = api.admin().await;
    let token = api.user("reader").await;
    let text = "granite basalt marble ".repeat(20_000);
    let doc_id = api.add(&admin, json!({ "text": text })).await;
    let path = format!("/api/v1/documents/{doc_id}/text");
    let mut download = stream(api.open(&path, &token, "192.0.2.1").await);
    download.next().await.unwrap().unwrap();
    let body = Some(json!({ "disabled": true }));
    assert!(api.call(Method::PATCH, "/api/v1/users/reader", &admin, body).await.status.is_success());
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(6)).await;
    tokio::time::resume();
    let last = download.last().await.unwrap();
    assert!(last.unwrap_err().contains("permission"), "a partial download must not look complete");
}

#[actix_web::test]
async fn one_address_cannot_take_the_event_streams_of_others() {
    let api = api().await;
    let admin = api.admin().await;
    let events = api.pending_task(&admin).await;
    let mut open = Vec::new();
    let refusal = loop {
        let response = api.open(&events, "", "192.0.2.1").await;
        if !response.status().is_success() {
            break refused(response).await;
        }
        open.push(stream(response));
        assert!(open.len() <= 1_000);
    };
    assert_eq!(refusal, "too many clients watch tasks");
    assert_eq!(open.len(), 50);
    assert!(api.open(&events, "", "192.0.2.2").await.status().is_success());
    assert!(api.open(&events, &admin, "192.0.2.1").await.status().is_success());
    // A stream that ends makes room.
    open.pop();
    assert!(api.open(&events, "", "192.0.2.1").await.status().is_success());
}

#[actix_web::test]
async fn anonymous_clients_together_leave_event_streams_to_accounts() {
    let api = api().await;
    let admin = api.admin().await;
    let events = api.pending_task(&admin).await;
    let mut open = Vec::new();
    for n in 0..=10 {
        for _ in 0..50 {
            let response = api.open(&events, "", &format!("192.0.2.{n}")).await;
            if response.status().is_success() {
                open.push(stream(response));
            } else {
                refused(response).await;
            }
        }
    }
    assert_eq!(open.len(), 500);
    assert!(api.open(&events, &admin, "192.0.2.99").await.status().is_success());
}
