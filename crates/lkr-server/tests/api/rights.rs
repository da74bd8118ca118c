//! Every route of the table against every kind of caller (lesson 21).

use actix_web::http::Method;
use lkr_auth::{AccountChange, Actor, Role};
use lkr_server::{Access, Endpoint, endpoints};
use lkr_spaces::{MemberId, NewSpace, ReadPolicy, SpaceName, SpaceRole, WritePolicy};
use serde_json::{Value, json};

use crate::support::{Api, App, TestOptions, TestResponse, api, api_with};

const ID: &str = "00000000000000000000000000000000";

/// A space for members.
const SPACE: &str = "legal";

/// The expected access of every route. A route that is missing here fails the test.
const RIGHTS: &[(&str, &str, Access)] = &[
    ("POST", "/api/v1/auth/login", Access::Public),
    ("POST", "/api/v1/auth/register", Access::Public),
    ("POST", "/api/v1/auth/logout", Access::PendingPassword),
    ("GET", "/api/v1/auth/me", Access::PendingPassword),
    ("POST", "/api/v1/auth/password", Access::PendingUnrestricted),
    ("POST", "/api/v1/auth/keys", Access::Unrestricted),
    ("GET", "/api/v1/auth/keys", Access::Unrestricted),
    ("DELETE", "/api/v1/auth/keys/{id}", Access::Unrestricted),
    ("GET", "/api/v1/users", Access::Admin),
    ("POST", "/api/v1/users", Access::Admin),
    ("PATCH", "/api/v1/users/{username}", Access::Admin),
    ("DELETE", "/api/v1/users/{username}", Access::Admin),
    ("POST", "/api/v1/users/{username}/password", Access::Admin),
    ("GET", "/api/v1/spaces", Access::Reader),
    ("POST", "/api/v1/spaces", Access::Admin),
    ("GET", "/api/v1/spaces/{space}", Access::SpaceReader),
    ("PATCH", "/api/v1/spaces/{space}", Access::SpaceManager),
    ("DELETE", "/api/v1/spaces/{space}", Access::SpaceManager),
    ("GET", "/api/v1/spaces/{space}/members", Access::SpaceManager),
    ("PUT", "/api/v1/spaces/{space}/members/{member}", Access::SpaceManager),
    ("DELETE", "/api/v1/spaces/{space}/members/{member}", Access::SpaceManager),
    ("GET", "/api/v1/groups", Access::AnyManager),
    ("POST", "/api/v1/groups", Access::Admin),
    ("DELETE", "/api/v1/groups/{group}", Access::Admin),
    ("GET", "/api/v1/groups/{group}/members", Access::Admin),
    ("PUT", "/api/v1/groups/{group}/members/{username}", Access::Admin),
    ("DELETE", "/api/v1/groups/{group}/members/{username}", Access::Admin),
    ("GET", "/api/v1/audit", Access::Admin),
    ("GET", "/api/v1/settings", Access::Unrestricted),
    ("PUT", "/api/v1/settings", Access::Admin),
    ("GET", "/api/v1/settings/schema", Access::Unrestricted),
    ("POST", "/api/v1/settings/reset", Access::Admin),
    ("POST", "/api/v1/settings/test", Access::Admin),
    ("GET", "/api/v1/webhooks", Access::Admin),
    ("POST", "/api/v1/webhooks", Access::Admin),
    ("DELETE", "/api/v1/webhooks/{id}", Access::Admin),
    ("GET", "/api/v1/webhooks/{id}/deliveries", Access::Admin),
    ("GET", "/api/v1/documents/tasks", Access::Reader),
    ("GET", "/api/v1/documents/tasks/events", Access::Reader),
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
    ("GET", "/api/v1/documents/{doc_id}/pages/{n}", Access::Reader),
    ("GET", "/api/v1/documents/{doc_id}/pages/{n}/boxes", Access::Reader),
    ("POST", "/api/v1/search", Access::Reader),
    ("POST", "/api/v1/search/stream", Access::Reader),
    ("POST", "/api/v1/context", Access::Reader),
    ("POST", "/mcp", Access::Reader),
    ("GET", "/api/v1/openai/vector_stores", Access::Reader),
    ("GET", "/api/v1/openai/vector_stores/{space}", Access::SpaceReader),
    ("POST", "/api/v1/openai/vector_stores/{space}/search", Access::SpaceReader),
    ("GET", "/api/v1/openai/vector_stores/{space}/files", Access::SpaceReader),
    ("GET", "/api/v1/openai/vector_stores/{space}/files/{doc_id}", Access::SpaceReader),
    ("GET", "/api/v1/openai/vector_stores/{space}/files/{doc_id}/content", Access::SpaceReader),
    ("POST", "/api/v1/dify/retrieval", Access::AuthenticatedReader),
    ("GET", "/api/v1/knowledge/categories", Access::Reader),
    ("GET", "/api/v1/knowledge/stats", Access::Reader),
    ("POST", "/api/v1/knowledge/reclassify", Access::Admin),
    ("POST", "/api/v1/eval", Access::Admin),
    ("GET", "/api/v1/backup", Access::Admin),
    ("GET", "/api/v1/openapi.json", Access::PublicVerified),
    ("GET", "/healthz", Access::Public),
    ("GET", "/readyz", Access::Public),
    ("GET", "/metrics", Access::Public),
    ("GET", "/console/{asset}", Access::Public),
    ("GET", "/docs", Access::Public),
    ("GET", "/docs/{file}", Access::Public),
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
    /// An API key of an admin that may only read.
    ReadKeyOfAdmin,
    /// An API key of an admin that sees another space alone.
    OtherSpaceKeyOfAdmin,
    /// An API key of the owner that may only read.
    ReadKeyOfOwner,
    /// A member of the space with role reader.
    SpaceReader,
    /// A member of the space with role writer.
    SpaceWriter,
    /// A member of the space with role manager.
    SpaceManager,
    /// An API key of a manager of the space that sees the space alone.
    SpaceKeyOfManager,
    /// An admin that must change its password.
    PendingAdmin,
}

impl CallerKind {
    const ALL: [Self; 19] = [
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
        Self::ReadKeyOfAdmin,
        Self::OtherSpaceKeyOfAdmin,
        Self::ReadKeyOfOwner,
        Self::SpaceReader,
        Self::SpaceWriter,
        Self::SpaceManager,
        Self::SpaceKeyOfManager,
        Self::PendingAdmin,
    ];

    /// The error code that the contract demands for a route about a space for members; `None` if the caller is admitted.
    fn expected_error(self, access: Access, login_for_reads: bool) -> Option<u64> {
        use Access::{
            Admin, AnyManager, AuthenticatedReader, Owner, PendingPassword, PendingUnrestricted, Public,
            PublicVerified, Reader, SpaceManager, SpaceReader, TaskOwner,
        };
        let is_read = matches!(access, Reader | SpaceReader);
        let needs_login = !matches!(access, Public | PublicVerified) && (!is_read || login_for_reads);
        let pending = matches!(access, PendingPassword | PendingUnrestricted);
        match self {
            _ if access == Public => None,
            Self::InvalidToken | Self::Disabled | Self::KeyOfDisabled => Some(1005),
            Self::Anonymous if needs_login => Some(1005),
            Self::PendingPassword | Self::PendingAdmin if needs_login && !pending => Some(1008),
            // To those who may not read the space, it does not exist.
            _ if access == SpaceReader => (!self.reads_the_space()).then_some(1004),
            _ if !needs_login || pending && !self.is_restricted() => None,
            _ if self.is_restricted() => match access {
                Reader | AuthenticatedReader | PendingPassword => None,
                Access::Authenticated if !self.is_read_only() => None,
                // The document and the task are in a space that the key is not for.
                Owner | TaskOwner if matches!(self, Self::SpaceKeyOfManager) => None,
                _ => Some(1006),
            },
            Self::Admin | Self::KeyOfAdmin => None,
            Self::SpaceManager => matches!(access, Admin | Owner | TaskOwner).then_some(1006),
            _ if access == SpaceManager => Some(if self.reads_the_space() { 1006 } else { 1004 }),
            Self::Owner | Self::KeyOfOwner => matches!(access, Admin | AnyManager).then_some(1006),
            _ => matches!(access, Admin | AnyManager | Owner | TaskOwner).then_some(1006),
        }
    }

    /// Whether it is an API key that may do less than its owner.
    fn is_restricted(self) -> bool {
        matches!(self, Self::OtherSpaceKeyOfAdmin | Self::SpaceKeyOfManager) || self.is_read_only()
    }

    fn is_read_only(self) -> bool {
        matches!(self, Self::ReadKeyOfAdmin | Self::ReadKeyOfOwner)
    }

    fn reads_the_space(self) -> bool {
        matches!(
            self,
            Self::Admin
                | Self::KeyOfAdmin
                | Self::ReadKeyOfAdmin
                | Self::SpaceReader
                | Self::SpaceWriter
                | Self::SpaceManager
                | Self::SpaceKeyOfManager
        )
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
        CallerKind::ReadKeyOfAdmin => restricted_key(api, "admin", json!({ "scope": "read" })).await,
        CallerKind::ReadKeyOfOwner => restricted_key(api, "owner", json!({ "scope": "read" })).await,
        CallerKind::OtherSpaceKeyOfAdmin => {
            restricted_key(api, "admin", json!({ "spaces": ["default"] })).await
        }
        CallerKind::SpaceKeyOfManager => restricted_key(api, "manager", json!({ "spaces": [SPACE] })).await,
        CallerKind::SpaceReader => api.login("reader").await,
        CallerKind::SpaceWriter => api.login("writer").await,
        CallerKind::SpaceManager => api.login("manager").await,
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

/// A new API key with these limits, and no other key of the account: the number of keys of an account is limited.
async fn restricted_key<S: App>(api: &Api<S>, username: &str, mut body: Value) -> String {
    body["name"] = json!("restricted");
    let token = api.login(username).await;
    for key in api.auth.keys(username, None, 100).await.unwrap().items {
        api.auth.delete_key(username, key.id, Actor::program("a test")).await.unwrap();
    }
    api.key_with(&token, body).await
}

async fn populate<S: App>(api: &Api<S>) {
    for name in ["user", "owner", "disabled", "reader", "writer", "manager"] {
        api.account(name, Role::User, false).await;
    }
    space_with_members(api, SPACE).await;
    api.account("flagged", Role::User, true).await;
    api.account("flagged-admin", Role::Admin, true).await;
}

/// Creates a space for members with one of each role.
async fn space_with_members<S: App>(api: &Api<S>, name: &str) {
    let space = SpaceName::new(name).unwrap();
    let new = NewSpace {
        name: space.clone(),
        title: String::new(),
        description: String::new(),
        read: ReadPolicy::Members,
        write: WritePolicy::Members,
        created_by: String::new(),
    };
    api.spaces.create(new, vec![]).await.unwrap();
    for (name, role) in
        [("reader", SpaceRole::Reader), ("writer", SpaceRole::Writer), ("manager", SpaceRole::Manager)]
    {
        let id = MemberId::User(api.auth.account(name).await.unwrap().unwrap().id);
        api.spaces.put_member(&space, id, name, role, vec![]).await.unwrap();
    }
}

async fn call_endpoint<S: App>(api: &Api<S>, endpoint: &Endpoint, target: &str, token: &str) -> TestResponse {
    let path = endpoint.path.replace("{doc_id}", target).replace("{task_id}", target);
    let space = if target == ID { SPACE } else { target };
    let path = path.replace("{username}", "nobody-here").replace("{id}", ID).replace("{space}", space);
    let path = path.replace("{group}", "nobodies").replace("{member}", "user:nobody-here");
    let path = path.replace("{file}", "swagger-ui.css").replace("{asset}", "icon.svg");
    let path = path.replace("{n}", "1");
    api.call(endpoint.method.clone(), &path, token, None).await
}

/// The code of a refusal by lkr's numbers, whatever the form of its body. A document that a readable space does not have is
/// no refusal.
fn refusal(response: &TestResponse, access: Access) -> Option<u64> {
    let json: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    let openai = &json["error"];
    let message =
        [&json["message"], &openai["message"], &json["error_msg"]].into_iter().find_map(Value::as_str);
    let of_password = message.is_some_and(|message| message.contains("password must be changed"));
    let code = match (response.status.as_u16(), json["code"].as_u64()) {
        (_, Some(code)) => code,
        (401, None) => 1005,
        (403, None) if of_password => 1008,
        (403, None) => 1006,
        (404, None) if message == Some("no such space") => 1004,
        _ => 0,
    };
    let in_space = matches!(access, Access::SpaceReader | Access::SpaceManager);
    (matches!(code, 1005 | 1006 | 1008) || (code == 1004 && in_space)).then_some(code)
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
                    // A deleted space's name is never used again.
                    Access::SpaceManager if endpoint.path.ends_with("{space}") => {
                        let name = format!("{caller:?}-{}", endpoint.method).to_lowercase();
                        space_with_members(&api, &name).await;
                        name
                    }
                    _ => ID.to_owned(),
                };
                let response = call_endpoint(&api, &endpoint, &target, &credential(&api, caller).await).await;
                assert_eq!(
                    refusal(&response, access),
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
