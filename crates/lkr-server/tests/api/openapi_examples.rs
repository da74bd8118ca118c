//! The descriptions, examples and links of the OpenAPI document.

use std::collections::BTreeSet;

use actix_web::http::Method;
use lkr_server::endpoints;
use serde_json::{Value, json};

use crate::{
    conformance::errors,
    support::{Api, App, TEXT, api},
};

async fn document() -> Value {
    api().await.get("/api/v1/openapi.json").await.json()
}

/// The operations with their methods and paths.
fn operations(document: &Value) -> impl Iterator<Item = (String, &Value)> {
    let items = document["paths"].as_object().unwrap().iter();
    items.flat_map(|(path, item)| {
        let operations = item.as_object().unwrap().iter();
        operations.map(move |(method, operation)| (format!("{method} {path}"), operation))
    })
}

fn described(value: &Value) -> bool {
    value["description"].as_str().is_some_and(|text| !text.trim().is_empty())
}

#[actix_web::test]
async fn openapi_describes_parameters_bodies_responses_headers_and_tags() {
    let document = document().await;
    let mut missing = Vec::new();
    for (place, operation) in operations(&document) {
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            if !described(parameter) {
                missing.push(format!("{place} {}", parameter["name"]));
            }
        }
        if operation["requestBody"].is_object() && !described(&operation["requestBody"]) {
            missing.push(format!("{place} body"));
        }
        for (status, response) in operation["responses"].as_object().unwrap() {
            let headers = response["headers"].as_object().unwrap().values();
            if !described(response) || !headers.clone().all(described) {
                missing.push(format!("{place} {status}"));
            }
        }
        let tag = &operation["tags"][0];
        let tags = document["tags"].as_array().unwrap();
        if !tags.iter().any(|known| known["name"] == *tag && described(known)) {
            missing.push(format!("{place} tag {tag}"));
        }
    }
    assert_eq!(missing, Vec::<String>::new());
    assert!(described(&document["info"]) && described(&document["servers"][0]));
    assert_eq!(document["info"]["license"]["identifier"], "MIT OR Apache-2.0");
}

/// A description may stand beside a reference, or in the alternative that is not null.
#[actix_web::test]
async fn openapi_describes_every_schema_and_property() {
    let document = document().await;
    let mut missing = Vec::new();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        if !described(schema) {
            missing.push(name.clone());
        }
        for (property, schema) in schema["properties"].as_object().into_iter().flatten() {
            let alternatives = schema["oneOf"].as_array();
            let any = alternatives.is_some_and(|alternatives| alternatives.iter().any(described));
            if !described(schema) && !any {
                missing.push(format!("{name}.{property}"));
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}

/// Bodies in memory as JSON or text. Archives and files have no example.
fn has_text(content_type: &str) -> bool {
    content_type == "application/json" || content_type.starts_with("text/")
}

#[actix_web::test]
async fn openapi_has_an_example_of_every_body_payload_and_error() {
    let document = document().await;
    let mut missing = Vec::new();
    for (place, operation) in operations(&document) {
        for (content_type, content) in operation["requestBody"]["content"].as_object().into_iter().flatten() {
            if content["example"].is_null() {
                missing.push(format!("{place} body {content_type}"));
            }
        }
        for (status, response) in operation["responses"].as_object().unwrap() {
            for (content_type, content) in response["content"].as_object().into_iter().flatten() {
                let has_example = content["example"] != Value::Null || content["examples"].is_object();
                if has_text(content_type) && !has_example {
                    missing.push(format!("{place} {status}"));
                }
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}

#[actix_web::test]
async fn openapi_examples_match_their_schemas() {
    let document = document().await;
    let (mut wrong, mut checked) = (Vec::new(), 0);
    let mut check = |place: String, content: &Value| {
        let named =
            content["examples"].as_object().into_iter().flatten().map(|(_, example)| &example["value"]);
        let schema = content.get("schema").cloned().unwrap_or(Value::Bool(true));
        for example in content.get("example").into_iter().chain(named) {
            checked += 1;
            let errors = errors(&document, &format!("example of {place}"), &schema, example);
            wrong.extend(errors.into_iter().map(|error| format!("{place}: {error}")));
        }
    };
    for (place, operation) in operations(&document) {
        for (_, content) in operation["requestBody"]["content"].as_object().into_iter().flatten() {
            check(format!("{place} body"), content);
        }
        for (status, response) in operation["responses"].as_object().unwrap() {
            for (content_type, content) in response["content"].as_object().into_iter().flatten() {
                check(format!("{place} {status} {content_type}"), content);
            }
        }
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            check(format!("{place} {}", parameter["name"]), parameter);
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(checked > 300, "{checked}");
}

#[actix_web::test]
async fn openapi_example_outside_its_schema_is_found() {
    let document = document().await;
    let schema =
        &document["paths"]["/api/v1/search"]["post"]["requestBody"]["content"]["application/json"]["schema"];
    for wrong in [
        json!({}),
        json!({ "query": " " }),
        json!({ "query": "x", "top_k": 101 }),
        json!({ "query": "x", "k": 1 }),
    ] {
        assert_ne!(errors(&document, "a search", schema, &wrong), Vec::<String>::new(), "{wrong}");
    }
    assert_eq!(errors(&document, "a search", schema, &json!({ "query": "x" })), Vec::<String>::new());
}

/// The objects that the examples name: a document, its task, an account, a group and a space.
async fn with_named_objects<S: App>(api: &Api<S>, document: &Value) -> (String, Vec<(&'static str, String)>) {
    let admin = api.admin().await;
    for id in ["create_space", "create_group", "create_user"] {
        let (place, operation) =
            operations(document).find(|(_, operation)| operation["operationId"] == id).unwrap();
        let (_, path) = place.split_once(' ').unwrap();
        let body = operation["requestBody"]["content"]["application/json"]["example"].clone();
        assert_eq!(api.post(path, &admin, body).await.status, 201, "{id}");
    }
    let doc_id = api.add(&admin, json!({ "text": TEXT })).await;
    let tasks = api.call(Method::GET, "/api/v1/documents/tasks", &admin, None).await.data();
    let task_id = tasks["items"][0]["task_id"].as_str().unwrap().to_owned();
    let names = [("space", "legal"), ("group", "lawyers"), ("username", "ada"), ("member", "user:ada")];
    let names = names.map(|(name, value)| (name, value.to_owned())).into_iter();
    (admin, names.chain([("doc_id", doc_id), ("task_id", task_id)]).collect())
}

/// Each request example is sent by an admin, who has the password of the examples. Second creations are conflicts, and
/// registration is disabled.
#[actix_web::test]
async fn openapi_request_examples_are_accepted() {
    let document = document().await;
    let mut sent = 0;
    for row in endpoints() {
        let operation = &document["paths"][row.path][row.method.as_str().to_lowercase()];
        let example = &operation["requestBody"]["content"]["application/json"]["example"];
        if example.is_null() {
            continue;
        }
        let api = api().await;
        let (admin, names) = with_named_objects(&api, &document).await;
        let mut path = row.path.to_owned();
        for (name, value) in &names {
            path = path.replace(&format!("{{{name}}}"), value);
        }
        let response = api.call(row.method.clone(), &path, &admin, Some(example.clone())).await;
        let expected: &[u16] = match operation["operationId"].as_str().unwrap() {
            "create_space" | "create_group" | "create_user" => &[409],
            "register" => &[403],
            _ => &[200, 201, 202],
        };
        assert!(expected.contains(&response.status.as_u16()), "{row:?}: {}", response.json());
        sent += 1;
    }
    assert!(sent > 20, "{sent}");
}

#[actix_web::test]
async fn openapi_links_lead_to_operations_with_their_parameters() {
    let document = document().await;
    let by_id = |id: &Value| {
        operations(&document)
            .map(|(_, operation)| operation)
            .find(|operation| operation["operationId"] == *id)
    };
    let mut followed = BTreeSet::new();
    for (place, operation) in operations(&document) {
        for (status, response) in operation["responses"].as_object().unwrap() {
            for (name, link) in response["links"].as_object().into_iter().flatten() {
                let target = by_id(&link["operationId"]).unwrap_or_else(|| panic!("{place} {status} {name}"));
                let parameters = target["parameters"].as_array().unwrap();
                for (parameter, expression) in link["parameters"].as_object().unwrap() {
                    assert!(
                        parameters.iter().any(|known| known["name"] == *parameter),
                        "{place} {name}: {parameter}"
                    );
                    let pointer = expression.as_str().unwrap().strip_prefix("$response.body#").unwrap();
                    let example = &response["content"]["application/json"]["example"];
                    assert!(example.pointer(pointer).is_some(), "{place} {status} {name}: {pointer}");
                }
                assert!(described(link), "{place} {name}");
                followed.insert(link["operationId"].to_string());
            }
        }
    }
    assert!(followed.len() > 15, "{followed:?}");
}
