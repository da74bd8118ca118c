//! Every route of the table against every kind of caller (lesson 21).

use actix_web::http::Method;
use lkr_auth::{AccountChange, Actor, Role};
use lkr_server::{Access, Endpoint, endpoints};
use serde_json::{Value, json};

use crate::support::{Answer, Api, App, Setting, api, api_with};

const ID: &str = "00000000000000000000000000000000";

/// Who may call what, written down a second time: a route that is missing here fails the test.
const RIGHTS: &[(&str, &str, Access)] = &[
    ("POST", "/api/v1/auth/login", Access::Open),
    ("POST", "/api/v1/auth/register", Access::Open),
    ("POST", "/api/v1/auth/logout", Access::Flagged),
    ("GET", "/api/v1/auth/me", Access::Flagged),
    ("POST", "/api/v1/auth/password", Access::Flagged),
    ("POST", "/api/v1/auth/keys", Access::Member),
    ("GET", "/api/v1/auth/keys", Access::Member),
    ("DELETE", "/api/v1/auth/keys/{id}", Access::Member),
    ("GET", "/api/v1/users", Access::Admin),
    ("POST", "/api/v1/users", Access::Admin),
    ("PATCH", "/api/v1/users/{username}", Access::Admin),
    ("DELETE", "/api/v1/users/{username}", Access::Admin),
    ("POST", "/api/v1/users/{username}/password", Access::Admin),
    ("GET", "/api/v1/audit", Access::Admin),
    ("GET", "/api/v1/settings", Access::Member),
    ("PUT", "/api/v1/settings", Access::Admin),
    ("GET", "/api/v1/settings/schema", Access::Member),
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
    ("POST", "/api/v1/documents", Access::Member),
    ("POST", "/api/v1/documents/batch", Access::Member),
    ("PUT", "/api/v1/documents/{doc_id}", Access::Owner),
    ("PUT", "/api/v1/documents/{doc_id}/file", Access::Owner),
    ("GET", "/api/v1/documents", Access::Reader),
    ("POST", "/api/v1/documents/upload", Access::Member),
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
    ("GET", "/api/v1/openapi.json", Access::Unlisted),
    ("GET", "/healthz", Access::Open),
    ("GET", "/readyz", Access::Open),
    ("GET", "/metrics", Access::Open),
    ("GET", "/docs", Access::Open),
    ("GET", "/", Access::Open),
];

/// Who calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Nobody,
    /// With a token that nobody was given.
    ModelMismatch,
    /// With a session that was good until the account was disabled.
    Disabled,
    /// With a key of an account that is disabled.
    KeyOfDisabled,
    /// With a session of an account that must change its password.
    Flagged,
    /// An account of role user that the document is not of.
    User,
    /// The account that the document is of.
    Owner,
    /// A key of that account.
    KeyOfOwner,
    /// A key of another account of role user.
    KeyOfUser,
    Admin,
    KeyOfAdmin,
    /// An admin that must change its password.
    FlaggedAdmin,
}

impl Who {
    const ALL: [Self; 12] = [
        Self::Nobody,
        Self::ModelMismatch,
        Self::Disabled,
        Self::KeyOfDisabled,
        Self::Flagged,
        Self::User,
        Self::Owner,
        Self::KeyOfOwner,
        Self::KeyOfUser,
        Self::Admin,
        Self::KeyOfAdmin,
        Self::FlaggedAdmin,
    ];

    /// The code that keeps the caller out, as the contract has it.
    fn refusal(self, access: Access, login_for_reads: bool) -> Option<u64> {
        use Access::{Admin, Flagged, Member, Open, Owner, Reader, TaskOwner, Unlisted};
        let needs_login = matches!(access, Member | Flagged | Admin | Owner | TaskOwner)
            || (access == Reader && login_for_reads);
        match self {
            _ if access == Open => None,
            Self::ModelMismatch | Self::Disabled | Self::KeyOfDisabled => Some(1005),
            _ if !needs_login || access == Unlisted => None,
            Self::Nobody => Some(1005),
            Self::Flagged | Self::FlaggedAdmin => (access != Flagged).then_some(1008),
            Self::User | Self::KeyOfUser => matches!(access, Admin | Owner | TaskOwner).then_some(1006),
            Self::Owner | Self::KeyOfOwner => (access == Admin).then_some(1006),
            Self::Admin | Self::KeyOfAdmin => None,
        }
    }
}

/// The credential of a caller. Sessions are new ones each time, because logout is among the routes.
async fn credential<S: App>(api: &Api<S>, who: Who) -> String {
    let by = Actor::program("a test");
    let change = |disabled| AccountChange { disabled: Some(disabled), ..AccountChange::default() };
    match who {
        Who::Nobody => String::new(),
        Who::ModelMismatch => "0".repeat(64),
        Who::User => api.login("user").await,
        Who::Owner => api.login("owner").await,
        Who::Admin => api.login("admin").await,
        Who::Flagged => api.login("flagged").await,
        Who::FlaggedAdmin => api.login("flagged-admin").await,
        Who::KeyOfUser => api.key(&api.login("user").await).await,
        Who::KeyOfOwner => api.key(&api.login("owner").await).await,
        Who::KeyOfAdmin => api.key(&api.login("admin").await).await,
        Who::Disabled | Who::KeyOfDisabled => {
            api.auth.change_account("disabled", change(false), by).await.unwrap();
            let session = api.login("disabled").await;
            // An account has so many keys at most, and there are many routes.
            let credential = if who == Who::Disabled { session } else { api.key(&session).await };
            api.auth.change_account("disabled", change(true), by).await.unwrap();
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

async fn ask<S: App>(api: &Api<S>, endpoint: &Endpoint, thing: &str, token: &str) -> Answer {
    let path = endpoint.path.replace("{doc_id}", thing).replace("{task_id}", thing);
    let path = path.replace("{username}", "nobody-here").replace("{id}", ID);
    api.call(endpoint.method.clone(), &path, token, None).await
}

/// The code of an answer; 0 for bodies that are no envelope.
fn code(answer: &Answer) -> u64 {
    let json: Option<Value> = serde_json::from_slice(&answer.body).ok();
    json.and_then(|json| json["code"].as_u64()).unwrap_or(0)
}

#[actix_web::test]
async fn lesson_21_every_route_stands_in_the_table() {
    let built: Vec<_> =
        endpoints().iter().map(|row| (row.method.to_string(), row.path, row.access)).collect();
    for (method, path, access) in &built {
        let known = RIGHTS.iter().any(|row| (row.0, row.1, row.2) == (method, *path, *access));
        assert!(known, "{method} {path} is {access:?}, which is not in the table");
    }
    assert_eq!(built.len(), RIGHTS.len(), "a route of the table is not served");
}

#[actix_web::test]
async fn lesson_21_every_route_for_every_caller() {
    for require_login_for_reads in [false, true] {
        let api = api_with(Setting { require_login_for_reads, ..Setting::default() }).await;
        populate(&api).await;
        for endpoint in endpoints() {
            let row = RIGHTS.iter().find(|row| row.0 == endpoint.method.as_str() && row.1 == endpoint.path);
            let access = row.unwrap_or_else(|| panic!("{endpoint:?} is not in the table")).2;
            for who in Who::ALL {
                // A document or task of its own for each, because deleting is among the routes.
                let mine = json!({ "text": "mine", "force": true });
                let thing = match access {
                    Access::Owner => api.add(&api.login("owner").await, mine).await,
                    Access::TaskOwner => {
                        let owner = api.login("owner").await;
                        let doc_id = api.add(&owner, mine).await;
                        let path = "/api/v1/documents/tasks?limit=1";
                        let tasks = api.call(Method::GET, path, &owner, None).await.data();
                        assert_eq!(tasks["items"][0]["doc_id"], doc_id.as_str());
                        tasks["items"][0]["task_id"].as_str().unwrap().to_owned()
                    }
                    _ => ID.to_owned(),
                };
                let answer = ask(&api, &endpoint, &thing, &credential(&api, who).await).await;
                let got = Some(code(&answer)).filter(|code| matches!(code, 1005 | 1006 | 1008));
                assert_eq!(got, who.refusal(access, require_login_for_reads), "{who:?}: {endpoint:?}");
            }
        }
    }
}

/// An account of the same name as one that was deleted is another account.
#[actix_web::test]
async fn lesson_21_a_name_that_comes_back_owns_nothing() {
    let api = api().await;
    let admin = api.admin().await;
    let owner = api.user("owner").await;
    let doc_id = api.add(&owner, json!({ "text": "mine" })).await;
    let path = format!("/api/v1/documents/{doc_id}");
    assert_eq!(api.call(Method::DELETE, "/api/v1/users/owner", &admin, None).await.status.as_u16(), 200);
    let again = api.user("owner").await;
    api.call(Method::DELETE, &path, &owner, None).await.refused(1005, 401);
    api.call(Method::DELETE, &path, &again, None).await.refused(1006, 403);
    api.call(Method::PATCH, &path, &again, Some(json!({ "title": "x" }))).await.refused(1006, 403);
    assert_eq!(api.get(&path).await.data()["l1"]["created_by"], "owner");
    assert_eq!(api.call(Method::DELETE, &path, &admin, None).await.data()["deleted_total"], 4);
}

#[actix_web::test]
async fn a_wrong_method_is_refused_before_a_credential_where_none_is_looked_at() {
    let api = api_with(Setting { require_login_for_reads: true, ..Setting::default() }).await;
    let bad = "0".repeat(64);
    for path in ["/api/v1/auth/login", "/api/v1/auth/register", "/healthz"] {
        for token in ["", &bad] {
            api.call(Method::PATCH, path, token, None).await.refused(1001, 405);
        }
    }
    api.call(Method::PATCH, "/api/v1/openapi.json", "", None).await.refused(1001, 405);
    api.call(Method::PATCH, "/api/v1/openapi.json", &bad, None).await.refused(1005, 401);
    api.call(Method::PATCH, "/api/v1/documents", "", None).await.refused(1005, 401);
}

#[actix_web::test]
async fn credentials_that_are_malformed_are_refused_everywhere() {
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
            api.send(request).await.refused(1005, 401);
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
    api.send(twice).await.refused(1005, 401);
}
