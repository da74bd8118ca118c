//! Rights that are taken away: the next request gets nothing, open event streams end, downloads are cut off.

use std::time::Duration;

use actix_web::{http::Method, test::TestRequest};
use serde_json::{Value, json};

use crate::{
    streams::{OpenStream, stream},
    support::{Api, App, TestResponse, api},
};

const TIDES: &str = "# Tides\n\nThe moon pulls the sea, and the basalt coast drowns twice a day.\n";

/// A way to lose the right to read the space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Revocation {
    Member,
    GroupMember,
    Group,
    GroupOfSpace,
    SpaceClosed,
    SpaceDeleted,
    AdminDemoted,
    AccountDisabled,
    AccountDeleted,
    KeyRevoked,
    LoggedOut,
}

use Revocation::{
    AccountDeleted, AccountDisabled, AdminDemoted, Group, GroupMember, GroupOfSpace, KeyRevoked, LoggedOut,
    Member, SpaceClosed, SpaceDeleted,
};

const ALL: [Revocation; 11] = [
    Member,
    GroupMember,
    Group,
    GroupOfSpace,
    SpaceClosed,
    SpaceDeleted,
    AdminDemoted,
    AccountDisabled,
    AccountDeleted,
    KeyRevoked,
    LoggedOut,
];

impl Revocation {
    /// Whether the credential itself ends.
    fn ends_credential(self) -> bool {
        matches!(self, AccountDisabled | AccountDeleted | KeyRevoked | LoggedOut)
    }
}

/// The service with the space `legal`, and the account rita, which reads it.
struct Fixture<S> {
    api: Api<S>,
    admin: String,
    /// The credential of rita.
    token: String,
    doc_id: String,
    /// A document from a file.
    file: String,
}

impl<S: App> Fixture<S> {
    async fn admin(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        let response = self.api.call(method, &format!("/api/v1{path}"), &self.admin, body).await;
        assert!(response.status.is_success(), "{path}: {}", response.json());
        response.json()["data"].clone()
    }

    async fn get(&self, path: &str) -> TestResponse {
        self.api.call(Method::GET, &format!("/api/v1{path}"), &self.token, None).await
    }

    async fn post(&self, path: &str, body: Value) -> TestResponse {
        self.api.post(&format!("/api/v1{path}"), &self.token, body).await
    }

    /// Gives rita the right that `revocation` takes away.
    async fn grant(&self, revocation: Revocation) {
        let role = || Some(json!({ "role": "reader" }));
        match revocation {
            GroupMember | Group | GroupOfSpace => {
                self.admin(Method::POST, "/groups", Some(json!({ "group": "lawyers" }))).await;
                self.admin(Method::PUT, "/groups/lawyers/members/rita", None).await;
                self.admin(Method::PUT, "/spaces/legal/members/group:lawyers", role()).await;
            }
            SpaceClosed => {
                self.admin(Method::PATCH, "/spaces/legal", Some(json!({ "read": "everyone" }))).await;
            }
            AdminDemoted => {
                self.admin(Method::PATCH, "/users/rita", Some(json!({ "role": "admin" }))).await;
            }
            _ => {
                self.admin(Method::PUT, "/spaces/legal/members/user:rita", role()).await;
            }
        }
    }

    async fn revoke(&self, revocation: Revocation) {
        let delete = Method::DELETE;
        match revocation {
            Member => self.admin(delete, "/spaces/legal/members/user:rita", None).await,
            GroupMember => self.admin(delete, "/groups/lawyers/members/rita", None).await,
            Group => self.admin(delete, "/groups/lawyers", None).await,
            GroupOfSpace => self.admin(delete, "/spaces/legal/members/group:lawyers", None).await,
            SpaceClosed => {
                self.admin(Method::PATCH, "/spaces/legal", Some(json!({ "read": "members" }))).await
            }
            SpaceDeleted => self.admin(delete, "/spaces/legal?documents=delete", None).await,
            AdminDemoted => self.admin(Method::PATCH, "/users/rita", Some(json!({ "role": "user" }))).await,
            AccountDisabled => {
                self.admin(Method::PATCH, "/users/rita", Some(json!({ "disabled": true }))).await
            }
            AccountDeleted => self.admin(delete, "/users/rita", None).await,
            KeyRevoked => {
                let login = self.api.login("rita").await;
                let keys = self.api.call(Method::GET, "/api/v1/auth/keys", &login, None).await.data();
                let path = format!("/api/v1/auth/keys/{}", keys["items"][0]["id"].as_str().unwrap());
                self.api.call(Method::DELETE, &path, &login, None).await.data()
            }
            LoggedOut => self.post("/auth/logout", json!({})).await.data(),
        };
    }

    /// Submits a document to the space whose task stays pending, and returns the task.
    async fn pending_task(&self) -> String {
        self.api.faults.set("queue", "push", true);
        let pending = json!({ "text": "Basalt.", "space": "legal" });
        let pending = self.admin(Method::POST, "/documents", Some(pending)).await;
        pending["task_id"].as_str().unwrap().to_owned()
    }

    async fn open(&self, path: &str) -> OpenStream {
        stream(self.api.open(&format!("/api/v1{path}"), &self.token, "192.0.2.1").await)
    }

    async fn open_search(&self) -> OpenStream {
        let request = TestRequest::post()
            .uri("/api/v1/search/stream")
            .insert_header(("authorization", format!("Bearer {}", self.token)))
            .set_json(json!({ "query": "basalt coast", "summarize": true }));
        stream(self.api.respond(request).await)
    }

    /// The paths that answer only to readers of the space.
    fn paths(&self, task_id: &str) -> Vec<String> {
        let Self { doc_id, file, .. } = self;
        let mut paths: Vec<String> =
            ["", "/text", "/chunks"].iter().map(|part| format!("/documents/{doc_id}{part}")).collect();
        paths.extend([
            format!("/documents/{file}/file"),
            format!("/documents/tasks/{task_id}"),
            format!("/documents/tasks/{task_id}/events"),
            "/documents?space=legal".to_owned(),
            "/documents/tasks?space=legal".to_owned(),
            "/knowledge/stats?space=legal".to_owned(),
            "/spaces/legal".to_owned(),
        ]);
        paths
    }
}

async fn fixture(revocation: Revocation) -> Fixture<impl App> {
    let api = api().await;
    let admin = api.admin().await;
    let mut token = api.user("rita").await;
    if revocation == KeyRevoked {
        token = api.key(&token).await;
    }
    api.post("/api/v1/spaces", &admin, json!({ "space": "legal" })).await.data();
    let doc_id = api.add(&admin, json!({ "text": TIDES, "space": "legal" })).await;
    let content = "The basalt coast of the file drowns.\n".repeat(20_000);
    let parts = [("file", Some("tides.txt"), content.as_bytes()), ("space", None, b"legal".as_slice())];
    let accepted = api.upload(&admin, &parts).await.data();
    let task = api.ended(&admin, accepted["task_id"].as_str().unwrap()).await;
    let file = task["doc_id"].as_str().unwrap().to_owned();
    let fixture = Fixture { api, admin, token, doc_id, file };
    fixture.grant(revocation).await;
    fixture
}

fn results(response: &TestResponse) -> usize {
    response.data()["results"].as_array().unwrap().len()
}

#[actix_web::test]
async fn lesson_36_right_that_is_taken_away_ends_with_the_next_request() {
    for revocation in ALL {
        let f = fixture(revocation).await;
        let pending = f.pending_task().await;
        let task_id = pending;
        let search = || json!({ "query": "basalt coast" });
        let named = || json!({ "query": "basalt coast", "spaces": ["legal"] });
        for body in [search(), search(), named(), named()] {
            assert!(results(&f.post("/search", body).await) > 0, "{revocation:?}");
        }
        let mut is_cached = false;
        while !is_cached {
            is_cached = f.post("/search", search()).await.header("x-cache") == Some("hit");
        }
        for path in f.paths(&task_id).iter().filter(|path| !path.ends_with("/events")) {
            assert!(f.get(path).await.status.is_success(), "{revocation:?} {path}");
        }

        f.revoke(revocation).await;

        let error = if revocation.ends_credential() { (1005, 401) } else { (1004, 404) };
        for path in f.paths(&task_id) {
            let response = f.get(&path).await;
            assert!(!response.status.is_success(), "{revocation:?} {path}: {}", response.status);
            response.expect_error(error.0, error.1);
        }
        for path in ["/search", "/search/stream"] {
            f.post(path, named()).await.expect_error(error.0, error.1);
        }
        if revocation.ends_credential() {
            f.post("/search", search()).await.expect_error(1005, 401);
            f.get("/documents").await.expect_error(1005, 401);
            continue;
        }
        for _ in 0..2 {
            assert_eq!(results(&f.post("/search", search()).await), 0, "{revocation:?}");
        }
        let streamed = f.post("/search/stream", search()).await;
        assert!(!String::from_utf8_lossy(&streamed.body).contains("coast drowns"), "{revocation:?}");
        for list in ["/documents", "/documents/tasks"] {
            assert_eq!(f.get(list).await.data()["items"], json!([]), "{revocation:?} {list}");
        }
        assert_eq!(f.get("/knowledge/stats").await.data()["documents_total"], 0, "{revocation:?}");
        assert!(!f.get("/spaces").await.data().to_string().contains("legal"), "{revocation:?}");
    }
}

#[actix_web::test]
async fn lesson_36_open_streams_end_with_the_right() {
    for revocation in ALL {
        let f = fixture(revocation).await;
        let pending = f.pending_task().await;
        let mut watched = f.open(&format!("/documents/tasks/{pending}/events")).await;
        let event = watched.next().await.unwrap().unwrap();
        assert!(String::from_utf8_lossy(&event).contains("\"status\":\"pending\""), "{event:?}");
        let mut searched = f.open_search().await;
        assert!(searched.next().await.unwrap().unwrap().starts_with(b"event: results\n"));
        let mut text = f.open(&format!("/documents/{}/text", f.file)).await;
        text.next().await.unwrap().unwrap();

        f.revoke(revocation).await;

        // The time after which the right is checked.
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(6)).await;
        tokio::time::resume();
        // The deletion of the space cancels the task. That is not shown either.
        assert_eq!(searched.last().await, None, "{revocation:?}: no event after the right ended");
        assert_eq!(watched.last().await, None, "{revocation:?}: no event after the right ended");
        let last = text.last().await.unwrap();
        assert!(last.unwrap_err().contains("permission"), "{revocation:?}: a download is cut off");
    }
}

#[actix_web::test]
async fn bulk_delete_stops_with_the_credential_that_asked_for_it() {
    for revocation in [KeyRevoked, AccountDisabled, AccountDeleted] {
        let f = fixture(KeyRevoked).await;
        let own = f.api.add(&f.token, json!({ "text": "Own basalt." })).await;
        f.api.faults.set("queue", "push", true);
        let all = json!({ "where": { "field": "title", "exists": true }, "dry_run": false });
        let accepted = f.post("/documents/delete", all.clone()).await.data();
        f.revoke(revocation).await;
        f.api.faults.clear();
        // It wakes the janitor, which queues the task.
        f.admin(Method::DELETE, &format!("/documents/{}", f.doc_id), None).await;
        let task = f.api.ended(&f.admin, accepted["task_id"].as_str().unwrap()).await;
        assert_eq!((&task["status"], &task["result"]["deleted_total"]), (&json!("done"), &json!(0)));
        assert!(f.api.get(&format!("/api/v1/documents/{own}")).await.status.is_success(), "{revocation:?}");
    }
    let f = fixture(KeyRevoked).await;
    let own = f.api.add(&f.token, json!({ "text": "Own basalt." })).await;
    let all = json!({ "where": { "field": "title", "exists": true }, "dry_run": false });
    let accepted = f.post("/documents/delete", all).await.data();
    let task = f.api.ended(&f.admin, accepted["task_id"].as_str().unwrap()).await;
    assert_eq!(task["result"]["deleted"]["l1"], 1, "a valid key deletes what its owner added");
    f.api.get(&format!("/api/v1/documents/{own}")).await.expect_error(1004, 404);
}
