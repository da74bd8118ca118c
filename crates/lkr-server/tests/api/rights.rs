//! Every route of the table against every kind of caller (lesson 21).

use actix_web::http::Method;
use lkr_auth::{AccountChange, Actor, Role};
use lkr_server::{Access, Endpoint, endpoints};
use serde_json::{Value, json};

use crate::support::{Api, App, TestOptions, TestResponse, api, api_with};

const ID: &str = "00000000000000000000000000000000";

/// The expected access of every route. A route that is missing here fails the test.
const RIGHTS: &[(&str, &str, Access)] = &[
    ("POST", "/api/v1/auth/login", Access::Public),
    ("POST", "/api/v1/auth/register", Access::Public),
    ("POST", "/api/v1/auth/logout", Access::PendingPassword),
    ("GET", "/api/v1/auth/me", Access::PendingPassword),
    ("POST", "/api/v1/auth/password", Access::PendingPassword),
    ("POST", "/api/v1/auth/keys", Access::Authenticated),
    ("GET", "/api/v1/auth/keys", Access::Authenticated),
    ("DELETE", "/api/v1/auth/keys/{id}", Access::Authenticated),
    ("GET", "/api/v1/users", Access::Admin),
    ("POST", "/api/v1/users", Access::Admin),
    ("PATCH", "/api/v1/users/{username}", Access::Admin),
    ("DELETE", "/api/v1/users/{username}", Access::Admin),
    ("POST", "/api/v1/users/{username}/password", Access::Admin),
    ("GET", "/api/v1/audit", Access::Admin),
    ("GET", "/api/v1/settings", Access::Authenticated),
    ("PUT", "/api/v1/settings", Access::Admin),
    ("GET", "/api/v1/settings/schema", Access::Authenticated),
    ("POST", "/api/v1/settings/reset", Access::Admin),
    ("POST", "/api/v1/settings/test", Access::Admin),
    ("GET", "/api/v1/webhooks", Access::Admin),
    ("POST", "/api/v1/webhooks", Access::Admin),
    ("DELETE", "/api/v1/webhooks/{id}", Access::Admin),
    ("GET", "/api/v1/documents/tasks", Access::Reader),
    ("GET", "/api/v1/documents/tasks/{task_id}", Access::Reader),
    ("DELETE", "/api/v1/documents/tasks/{task_id}", Access::TaskOwner),
    ("POST", "/api/v1/documents/tasks/{task_id}/cancel", Access::TaskOwner),
    ("POST", "/api/v1/documents/tasks/{task_id}/retry", Access::TaskOwner),
    ("GET", "/api/v1/documents/tasks/{task_id}/events", Access::Reader),
    ("POST", "/api/v1/documents", Access::Authenticated),
    ("POST", "/api/v1/documents/batch", Access::Authenticated),
    ("POST", "/api/v1/documents/delete", Access::Authenticated),
    ("PUT", "/api/v1/documents/{doc_id}", Access::Owner),
    ("PUT", "/api/v1/documents/{doc_id}/file", Access::Owner),
    ("GET", "/api/v1/documents", Access::Reader),
    ("POST", "/api/v1/documents/upload", Access::Authenticated),
    ("GET", "/api/v1/documents/{doc_id}/file", Access::Reader),
    ("GET", "/api/v1/documents/{doc_id}", Access::Reader),
    ("PATCH", "/api/v1/documents/{doc_id}", Access::Owner),
    ("DELETE", "/api/v1/documents/{doc_id}", Access::Owner),
    ("GET", "/api/v1/documents/{doc_id}/chunks", Access::Reader),
    ("GET", "/api/v1/documents/{doc_id}/text", Access::Reader),
    ("POST", "/api/v1/search", Access::Reader),
    ("POST", "/api/v1/search/stream", Access::Reader),
    ("GET", "/api/v1/knowledge/categories", Access::Reader),
    ("GET", "/api/v1/knowledge/stats", Access::Reader),
    ("POST", "/api/v1/knowledge/reclassify", Access::Admin),
    ("POST", "/api/v1/eval", Access::Admin),
    ("GET", "/api/v1/backup", Access::Admin),
    ("GET", "/api/v1/openapi.json", Access::PublicVerified),
    ("GET", "/healthz", Access::Public),
    ("GET", "/readyz", Access::Public),
    ("GET", "/metrics", Access::Public),
    ("GET", "/docs", Access::Public),
    ("GET", "/", Access::Public),
];

/// A kind of caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallerKind {
    Anonymous,
    /// A token that was never issued.
    InvalidToken,
    /// A session of an account that was disabled afterwards.
    Disabled,
    /// An API key of a disabled account.
    KeyOfDisabled,
    /// A session of an account that must change its password.
    PendingPassword,
    /// An account of role user that does not own the document.
    User,
    /// The owner of the document.
    Owner,
    /// An API key of the owner.
    KeyOfOwner,
    /// An API key of another account of role user.
    KeyOfUser,
    Admin,
    KeyOfAdmin,
    /// An admin that must change its password.
    PendingAdmin,
}

impl CallerKind {
    const ALL: [Self; 12] = [
        Self::Anonymous,
        Self::InvalidToken,
        Self::Disabled,
        Self::KeyOfDisabled,
        Self::PendingPassword,
        Self::User,
        Self::Owner,
        Self::KeyOfOwner,
        Self::KeyOfUser,
        Self::Admin,
        Self::KeyOfAdmin,
        Self::PendingAdmin,
    ];

    /// The error code that the contract demands; `None` if the caller is admitted.
    fn expected_error(self, access: Access, login_for_reads: bool) -> Option<u64> {
        use Access::{
            Admin, Authenticated, Owner, PendingPassword, Public, PublicVerified, Reader, TaskOwner,
        };
        let needs_login = matches!(access, Authenticated | PendingPassword | Admin | Owner | TaskOwner)
            || (access == Reader && login_for_reads);
        match self {
            _ if access == Public => None,
            Self::InvalidToken | Self::Disabled | Self::KeyOfDisabled => Some(1005),
            _ if !needs_login || access == PublicVerified => None,
            Self::Anonymous => Some(1005),
            Self::PendingPassword | Self::PendingAdmin => (access != PendingPassword).then_some(1008),
            Self::User | Self::KeyOfUser => matches!(access, Admin | Owner | TaskOwner).then_some(1006),
            Self::Owner | Self::KeyOfOwner => (access == Admin).then_some(1006),
            Self::Admin | Self::KeyOfAdmin => None,
        }
    }
}

/// The credential of a caller. Each call gets a new session, because logout is one of the routes.
async fn credential<S: App>(api: &Api<S>, caller: CallerKind) -> String {
    let actor = Actor::program("a test");
    let change = |disabled| AccountChange { disabled: Some(disabled), ..AccountChange::default() };
    match caller {
        CallerKind::Anonymous => String::new(),
        CallerKind::InvalidToken => "0".repeat(64),
        CallerKind::User => api.login("user").await,
        CallerKind::Owner => api.login("owner").await,
        CallerKind::Admin => api.login("admin").await,
        CallerKind::PendingPassword => api.login("flagged").await,
        CallerKind::PendingAdmin => api.login("flagged-admin").await,
        CallerKind::KeyOfUser => api.key(&api.login("user").await).await,
        CallerKind::KeyOfOwner => api.key(&api.login("owner").await).await,
        CallerKind::KeyOfAdmin => api.key(&api.login("admin").await).await,
        CallerKind::Disabled | CallerKind::KeyOfDisabled => {
            api.auth.change_account("disabled", change(false), actor).await.unwrap();
            let session = api.login("disabled").await;
            // A key only if it is needed: the number of keys of an account is limited.
            let credential = if caller == CallerKind::Disabled { session } else { api.key(&session).await };
            api.auth.change_account("disabled", change(true), actor).await.unwrap();
            credential
        }
    }
}

async fn populate<S: App>(api: &Api<S>) {
    for name in ["user", "owner", "disabled"] {
        api.account(name, Role::User, false).await;
    }
    api.account("flagged", Role::User, true).await;
    api.account("flagged-admin", Role::Admin, true).await;
}

async fn call_endpoint<S: App>(api: &Api<S>, endpoint: &Endpoint, target: &str, token: &str) -> TestResponse {
    let path = endpoint.path.replace("{doc_id}", target).replace("{task_id}", target);
    let path = path.replace("{username}", "nobody-here").replace("{id}", ID);
    api.call(endpoint.method.clone(), &path, token, None).await
}

/// The code of a response; 0 for a body without an envelope.
fn code(response: &TestResponse) -> u64 {
    let json: Option<Value> = serde_json::from_slice(&response.body).ok();
    json.and_then(|json| json["code"].as_u64()).unwrap_or(0)
}

#[actix_web::test]
async fn lesson_21_every_route_has_the_access_of_the_table() {
    let built: Vec<_> =
        endpoints().iter().map(|row| (row.method.to_string(), row.path, row.access)).collect();
    for (method, path, access) in &built {
        let is_listed = RIGHTS.iter().any(|row| (row.0, row.1, row.2) == (method, *path, *access));
        assert!(is_listed, "{method} {path} is {access:?}, which is not in the table");
    }
    assert_eq!(built.len(), RIGHTS.len(), "a route of the table is not served");
}

#[actix_web::test]
async fn lesson_21_every_route_admits_or_refuses_every_kind_of_caller() {
    for require_login_for_reads in [false, true] {
        let api = api_with(TestOptions { require_login_for_reads, ..TestOptions::default() }).await;
        populate(&api).await;
        for endpoint in endpoints() {
            let row = RIGHTS.iter().find(|row| row.0 == endpoint.method.as_str() && row.1 == endpoint.path);
            let access = row.unwrap_or_else(|| panic!("{endpoint:?} is not in the table")).2;
            for caller in CallerKind::ALL {
                // Each call gets its own document or task, because delete is one of the routes.
                let document = json!({ "text": "mine", "force": true });
                let target = match access {
                    Access::Owner => api.add(&api.login("owner").await, document).await,
                    Access::TaskOwner => {
                        let owner = api.login("owner").await;
                        let doc_id = api.add(&owner, document).await;
                        let path = "/api/v1/documents/tasks?limit=1";
                        let tasks = api.call(Method::GET, path, &owner, None).await.data();
                        assert_eq!(tasks["items"][0]["doc_id"], doc_id.as_str());
                        tasks["items"][0]["task_id"].as_str().unwrap().to_owned()
                    }
                    _ => ID.to_owned(),
                };
                let response = call_endpoint(&api, &endpoint, &target, &credential(&api, caller).await).await;
                let error = Some(code(&response)).filter(|code| matches!(code, 1005 | 1006 | 1008));
                assert_eq!(
                    error,
                    caller.expected_error(access, require_login_for_reads),
                    "{caller:?}: {endpoint:?}"
                );
            }
        }
    }
}

/// An account with the name of a deleted one is another account.
#[actix_web::test]
async fn lesson_21_new_account_with_a_deleted_name_owns_nothing() {
    let api = api().await;
    let admin = api.admin().await;
    let owner = api.user("owner").await;
    let doc_id = api.add(&owner, json!({ "text": "mine" })).await;
    let path = format!("/api/v1/documents/{doc_id}");
    assert_eq!(api.call(Method::DELETE, "/api/v1/users/owner", &admin, None).await.status.as_u16(), 200);
    let again = api.user("owner").await;
    api.call(Method::DELETE, &path, &owner, None).await.expect_error(1005, 401);
    api.call(Method::DELETE, &path, &again, None).await.expect_error(1006, 403);
    api.call(Method::PATCH, &path, &again, Some(json!({ "title": "x" }))).await.expect_error(1006, 403);
    assert_eq!(api.get(&path).await.data()["l1"]["created_by"], "owner");
    assert_eq!(api.call(Method::DELETE, &path, &admin, None).await.data()["deleted_total"], 4);
}

#[actix_web::test]
async fn wrong_method_on_a_public_path_is_refused_before_a_bad_credential() {
    let api = api_with(TestOptions { require_login_for_reads: true, ..TestOptions::default() }).await;
    let bad = "0".repeat(64);
    for path in ["/api/v1/auth/login", "/api/v1/auth/register", "/healthz"] {
        for token in ["", &bad] {
            api.call(Method::PATCH, path, token, None).await.expect_error(1001, 405);
        }
    }
    api.call(Method::PATCH, "/api/v1/openapi.json", "", None).await.expect_error(1001, 405);
    api.call(Method::PATCH, "/api/v1/openapi.json", &bad, None).await.expect_error(1005, 401);
    api.call(Method::PATCH, "/api/v1/documents", "", None).await.expect_error(1005, 401);
}

#[actix_web::test]
async fn malformed_credential_is_refused_on_every_api_path() {
    let api = api().await;
    let token = api.admin().await;
    for credential in [
        "",
        "Bearer",
        "Bearer ",
        &token,
        &format!("Basic {token}"),
        &format!("Bearer {token}0"),
        &format!("Bearer {token} {token}"),
        &format!("Bearer lkr_{token}"),
        "Bearer é",
    ] {
        for path in ["/api/v1/documents", "/api/v1/auth/me", "/api/v1/openapi.json", "/api/v1/nope"] {
            let request =
                actix_web::test::TestRequest::with_uri(path).insert_header(("authorization", credential));
            api.send(request).await.expect_error(1005, 401);
        }
        let request =
            actix_web::test::TestRequest::with_uri("/healthz").insert_header(("authorization", credential));
        assert!(api.send(request).await.status.is_success(), "the root paths ignore credentials");
    }
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let request = actix_web::test::TestRequest::with_uri("/api/v1/auth/me")
            .insert_header(("authorization", format!("{scheme} {token}")));
        assert!(api.send(request).await.status.is_success());
    }
    let twice = actix_web::test::TestRequest::with_uri("/api/v1/auth/me")
        .append_header(("authorization", format!("Bearer {token}")))
        .append_header(("authorization", format!("Bearer {token}")));
    api.send(twice).await.expect_error(1005, 401);
}
