//! Responses and examples against the OpenAPI document.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock},
};

use actix_web::http::{Method, StatusCode};
use jsonschema::Validator;
use serde_json::{Value, json};

use crate::support::TestResponse;

static DOCUMENT: OnceLock<Value> = OnceLock::new();

/// The document, if a test has read it already. It is the same for every application.
pub(crate) fn known_document() -> Option<&'static Value> {
    DOCUMENT.get()
}

/// Keeps the document for all tests.
pub(crate) fn keep_document(document: Value) -> &'static Value {
    DOCUMENT.get_or_init(|| document)
}

/// Checks that a response has a status that the document gives to the operation, and a body of its schema. Paths and methods
/// without an operation are not checked.
pub(crate) fn check(document: &Value, method: &Method, path: &str, response: &TestResponse) {
    let path = path.split('?').next().unwrap();
    let Some((template, operation)) = operation(document, method, path) else { return };
    if response.status == StatusCode::METHOD_NOT_ALLOWED {
        return;
    }
    let place = format!("{method} {template} {}", response.status.as_u16());
    let documented = &operation["responses"][response.status.as_str()];
    assert!(documented.is_object(), "{place} is not documented");
    let schema = &documented["content"]["application/json"]["schema"];
    if schema.is_object() && *method != Method::HEAD {
        let errors = errors(document, &place, schema, &response.json());
        assert_eq!(errors, Vec::<String>::new(), "{place}: {}", response.json());
    }
}

/// The path template and the operation of a request. A fixed part of a path counts before a parameter.
fn operation<'a>(document: &'a Value, method: &Method, path: &str) -> Option<(&'a str, &'a Value)> {
    let method = if *method == Method::HEAD { "get".to_owned() } else { method.as_str().to_lowercase() };
    let templates = document["paths"].as_object()?.iter().filter(|(template, _)| matches(template, path));
    let (template, item) = templates.min_by_key(|(template, _)| template.matches('{').count())?;
    Some((template, item.get(&method)?))
}

fn matches(template: &str, path: &str) -> bool {
    let (template, path): (Vec<&str>, Vec<&str>) = (template.split('/').collect(), path.split('/').collect());
    template.len() == path.len()
        && template.iter().zip(&path).all(|(known, part)| known == part || known.starts_with('{'))
}

/// What is wrong with a value by a schema of the document. The validator is kept for the next value of the same place.
pub(crate) fn errors(document: &Value, place: &str, schema: &Value, value: &Value) -> Vec<String> {
    static VALIDATORS: OnceLock<Mutex<HashMap<String, Arc<Validator>>>> = OnceLock::new();
    let mut validators = VALIDATORS.get_or_init(Mutex::default).lock().unwrap();
    let validator = validators.entry(place.to_owned()).or_insert_with(|| {
        let schema = json!({ "allOf": [schema], "components": document["components"] });
        Arc::new(jsonschema::draft202012::new(&schema).unwrap())
    });
    let validator = Arc::clone(validator);
    drop(validators);
    validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
}
