//! Replacing a document.

use actix_web::http::Method;
use serde_json::{Value, json};

use crate::support::{Api, App, TestResponse, api};

/// Replaces a document as JSON or with a file, and names a space.
async fn replace<S: App>(
    api: &Api<S>,
    token: &str,
    doc_id: &str,
    (space, as_file): (&str, bool),
) -> TestResponse {
    let path = format!("/api/v1/documents/{doc_id}");
    if !as_file {
        let body = json!({ "text": "New basalt.", "space": space });
        return api.call(Method::PUT, &path, token, Some(body)).await;
    }
    let parts = [("space", None, space.as_bytes()), ("file", Some("a.txt"), b"New basalt.".as_slice())];
    api.put_file(token, doc_id, &parts).await
}

#[actix_web::test]
async fn replacement_stays_in_the_space_and_warns_about_another() {
    let api = api().await;
    let token = api.admin().await;
    let doc_id = api.add(&token, json!({ "text": "Old basalt." })).await;
    let ignored = "space was ignored: a replacement stays in the space default";
    for as_file in [false, true] {
        for (space, warnings) in [("default", vec![]), ("elsewhere", vec![json!(ignored)])] {
            let accepted = replace(&api, &token, &doc_id, (space, as_file)).await.data();
            let task: Value = api.ended(&token, accepted["task_id"].as_str().unwrap()).await;
            let given = task["result"]["warnings"].as_array().unwrap().iter();
            let about_space = given.filter(|warning| warning.as_str().unwrap().starts_with("space"));
            assert!(about_space.eq(&warnings), "{as_file} {space}: {task}");
            let detail = api.get(&format!("/api/v1/documents/{doc_id}")).await.data();
            assert_eq!(detail["l1"]["space"], "default");
        }
    }
}
