//! Every route of the table against every kind of caller (lesson 21).

use actix_web::http::Method;
use lkr_server::{Access, Endpoint, endpoints};

use crate::support::{Answer, Api, App, Setting, api, api_with};

const ID: &str = "00000000000000000000000000000000";

async fn ask<S: App>(api: &Api<S>, endpoint: &Endpoint, token: &str) -> Answer {
    let path = endpoint.path.replace("{doc_id}", ID).replace("{task_id}", ID);
    api.call(endpoint.method.clone(), &path, token, None).await
}

/// The code of a refusal; 0 for bodies that are no envelope.
fn code(answer: &Answer) -> u64 {
    let json: Option<serde_json::Value> = serde_json::from_slice(&answer.body).ok();
    json.and_then(|json| json["code"].as_u64()).unwrap_or(0)
}

fn refuses_login(answer: &Answer) -> bool {
    matches!(code(answer), 1005..=1008)
}

#[actix_web::test]
async fn lesson_21_every_route_for_every_caller() {
    for require_login_for_reads in [false, true] {
        let api = api_with(Setting { require_login_for_reads, ..Setting::default() }).await;
        for endpoint in endpoints() {
            let needs_login = match endpoint.access {
                Access::Open | Access::Unlisted => false,
                Access::Reader => require_login_for_reads,
                Access::Member | Access::Flagged => true,
            };
            let nobody = ask(&api, &endpoint, "").await;
            assert_eq!(code(&nobody) == 1005, needs_login, "nobody: {endpoint:?}");
            let stranger = ask(&api, &endpoint, &"0".repeat(64)).await;
            assert_eq!(code(&stranger) == 1005, endpoint.access != Access::Open, "bad token: {endpoint:?}");
            // A fresh session for each, because logout is one of them.
            let member = ask(&api, &endpoint, &api.admin().await).await;
            assert!(!refuses_login(&member), "{endpoint:?}: {}", code(&member));
        }
    }
}

#[actix_web::test]
async fn lesson_21_every_route_for_a_flagged_account() {
    for require_login_for_reads in [false, true] {
        let setting = Setting { require_login_for_reads, must_change_password: true, ..Setting::default() };
        let api = api_with(setting).await;
        for endpoint in endpoints() {
            let answer = ask(&api, &endpoint, &api.admin().await).await;
            let shut_out = match endpoint.access {
                Access::Member => true,
                Access::Reader => require_login_for_reads,
                Access::Open | Access::Unlisted | Access::Flagged => false,
            };
            assert_eq!(code(&answer) == 1008, shut_out, "{endpoint:?}");
        }
    }
}

#[actix_web::test]
async fn a_wrong_method_is_refused_before_a_credential_where_none_is_looked_at() {
    let api = api_with(Setting { require_login_for_reads: true, ..Setting::default() }).await;
    let bad = "0".repeat(64);
    for path in ["/api/v1/auth/login", "/healthz"] {
        for token in ["", &bad] {
            api.call(Method::PATCH, path, token, None).await.refused(1001, 405);
        }
    }
    api.call(Method::PATCH, "/api/v1/openapi.json", "", None).await.refused(1001, 405);
    api.call(Method::PATCH, "/api/v1/openapi.json", &bad, None).await.refused(1005, 401);
    api.call(Method::PATCH, "/api/v1/documents", "", None).await.refused(1005, 401);
}

#[actix_web::test]
async fn what_the_contract_leaves_open_and_closes() {
    let access = |method: Method, path: &str| {
        let rows = endpoints();
        rows.iter().find(|row| row.method == method && row.path == path).unwrap().access
    };
    for path in ["/", "/docs", "/healthz", "/readyz", "/metrics"] {
        assert_eq!(access(Method::GET, path), Access::Open);
    }
    assert_eq!(access(Method::POST, "/api/v1/auth/login"), Access::Open);
    assert_eq!(access(Method::GET, "/api/v1/openapi.json"), Access::Unlisted);
    assert_eq!(access(Method::POST, "/api/v1/search"), Access::Reader);
    assert_eq!(access(Method::GET, "/api/v1/documents"), Access::Reader);
    assert_eq!(access(Method::POST, "/api/v1/documents"), Access::Member);
    assert_eq!(access(Method::DELETE, "/api/v1/documents/{doc_id}"), Access::Member);
    for (method, path) in [(Method::GET, "me"), (Method::POST, "password"), (Method::POST, "logout")] {
        assert_eq!(access(method, &format!("/api/v1/auth/{path}")), Access::Flagged);
    }
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
