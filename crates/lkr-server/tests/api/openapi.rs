//! The OpenAPI document against the table of routes.

use std::collections::BTreeSet;

use lkr_server::{Access, Endpoint, endpoints};
use serde_json::{Value, json};

use crate::support::api;

async fn document() -> Value {
    let api = api().await;
    let response = api.get("/api/v1/openapi.json").await;
    assert_eq!(response.header("content-type"), Some("application/json"));
    response.json()
}

#[actix_web::test]
async fn openapi_lists_exactly_the_registered_routes() {
    let document = document().await;
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let mut documented = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            documented.insert((method.to_uppercase(), path.clone()));
        }
    }
    let listed: Vec<_> = endpoints().into_iter().filter(Endpoint::is_listed).collect();
    let registered: BTreeSet<_> =
        listed.iter().map(|row| (row.method.to_string(), row.path.to_owned())).collect();
    assert_eq!(documented, registered);
    assert_eq!(registered.len(), listed.len(), "a route is registered twice");
}

#[actix_web::test]
async fn every_registered_route_is_served() {
    let api = api().await;
    let id = "0".repeat(32);
    for row in endpoints() {
        let path = row.path.replace("{doc_id}", &id).replace("{task_id}", &id);
        let path = path.replace("{username}", "nobody").replace("{id}", &id).replace("{space}", "default");
        let path = path.replace("{group}", "nobodies").replace("{member}", "user:nobody");
        let path = path.replace("{file}", "swagger-ui.css").replace("{asset}", "icon.svg");
        let path = path.replace("{n}", "1");
        let response = api.call(row.method.clone(), &path, "", None).await;
        assert_ne!(response.status.as_u16(), 405, "{row:?}");
        let body = String::from_utf8_lossy(&response.body).into_owned();
        assert!(!body.contains("no such path"), "{row:?}");
    }
}

#[actix_web::test]
async fn openapi_references_resolve_and_operation_ids_are_unique() {
    let document = document().await;
    let mut references = Vec::new();
    collect(&document, &mut references);
    assert!(references.len() > 20);
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    let operations = || {
        document["paths"].as_object().unwrap().values().flat_map(|item| item.as_object().unwrap().values())
    };
    let ids: BTreeSet<_> = operations().map(|operation| operation["operationId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), operations().count());
}

fn collect(value: &Value, references: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(reference)) = map.get("$ref") {
                references.push(reference.clone());
            }
            map.values().for_each(|value| collect(value, references));
        }
        Value::Array(items) => items.iter().for_each(|value| collect(value, references)),
        _ => {}
    }
}

/// A property that every response has is `required`, even if it may be null, so that generated clients need no check.
#[actix_web::test]
async fn openapi_requires_the_properties_that_every_response_has() {
    let document = document().await;
    let optional = |schema: &str| {
        let schema = &document["components"]["schemas"][schema];
        let required: Vec<&str> =
            schema["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let properties = schema["properties"].as_object().unwrap().keys();
        properties.filter(|name| !required.contains(&name.as_str())).cloned().collect::<Vec<_>>()
    };
    let all = ["ChunkItem", "NodeItem", "SearchResultItem", "DocumentList", "ChunkList", "TaskList"];
    for schema in
        all.into_iter().chain(["DocumentDetail", "SummaryItem", "ScoresItem", "WebhookList", "SpaceItem"])
    {
        assert_eq!(optional(schema), Vec::<String>::new(), "{schema}");
    }
    assert_eq!(optional("SearchAnswer"), ["explain"]);
}

#[actix_web::test]
async fn openapi_documents_security_and_errors_of_each_route() {
    let document = document().await;
    for row in endpoints().into_iter().filter(Endpoint::is_listed) {
        let operation = &document["paths"][row.path][row.method.as_str().to_lowercase()];
        let security = operation["security"].as_array();
        match row.access {
            Access::Public => assert!(security.is_none(), "{row:?}"),
            Access::PublicVerified | Access::Reader | Access::SpaceReader => {
                assert_eq!(security.unwrap().len(), 3, "{row:?}");
            }
            _ => assert_eq!(security.unwrap().len(), 2, "{row:?}"),
        }
        let responses = operation["responses"].as_object().unwrap();
        assert_eq!(
            responses.contains_key("401"),
            row.access != Access::Public || row.path.ends_with("/login"),
            "{row:?}"
        );
        if row.path.starts_with("/api/v1/") {
            assert!(responses["500"]["description"].as_str().unwrap().contains("internal"), "{row:?}");
        }
        if row.path.contains('{') {
            assert_eq!(operation["parameters"][0]["in"], "path", "{row:?}");
        }
    }
    let schemes = &document["components"]["securitySchemes"];
    assert!(schemes["bearer"].is_object());
    assert_eq!(
        (&schemes["cookie"]["in"], &schemes["cookie"]["name"]),
        (&json!("cookie"), &json!("lkr_session"))
    );
    assert_eq!((&schemes["csrf"]["in"], &schemes["csrf"]["name"]), (&json!("header"), &json!("X-Lkr-CSRF")));
    let cookie = |path: &str, method: &str| document["paths"][path][method]["security"][2].clone();
    assert_eq!(cookie("/api/v1/documents", "get"), json!({ "cookie": [] }));
    assert_eq!(cookie("/api/v1/search", "post"), json!({ "cookie": [], "csrf": [] }));
}

/// A download has any content type; a partial response has a `Content-Range`.
#[actix_web::test]
async fn openapi_documents_the_responses_of_a_download() {
    let document = document().await;
    let responses = &document["paths"]["/api/v1/documents/{doc_id}/file"]["get"]["responses"];
    for (status, content, headers) in [
        ("200", Some("*/*"), &["Accept-Ranges", "Content-Disposition", "ETag"][..]),
        ("206", Some("*/*"), &["Accept-Ranges", "Content-Disposition", "Content-Range", "ETag"]),
        ("304", None, &["Accept-Ranges", "Content-Disposition", "ETag"]),
        ("404", Some("application/json"), &[]),
        ("409", Some("application/json"), &[]),
        ("416", Some("application/json"), &["Content-Range"]),
    ] {
        let keys = |of: &str| -> Vec<String> {
            responses[status][of].as_object().map(|map| map.keys().cloned().collect()).unwrap_or_default()
        };
        assert_eq!(keys("content"), Vec::from_iter(content), "{status}");
        let documented: Vec<_> = keys("headers").into_iter().filter(|name| name != "X-Request-Id").collect();
        assert_eq!(documented, headers, "{status}");
    }
    assert_eq!(responses["200"]["content"]["*/*"], serde_json::json!({}), "a body of any type has no schema");
}

#[actix_web::test]
async fn openapi_documents_readiness_for_200_and_503() {
    let document = document().await;
    let responses = &document["paths"]["/readyz"]["get"]["responses"];
    for status in ["200", "503"] {
        let data = &responses[status]["content"]["application/json"]["schema"]["properties"]["data"];
        let name = data["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
        let dependencies = &document["components"]["schemas"][name]["properties"]["dependencies"];
        let dependencies = match dependencies["$ref"].as_str() {
            Some(name) => &document["components"]["schemas"][name.rsplit('/').next().unwrap()],
            None => dependencies,
        };
        assert!(dependencies["properties"]["vectors"].is_object(), "{status}: {dependencies}");
    }
}
