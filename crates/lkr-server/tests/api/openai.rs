//! The vector stores of the OpenAI API.

use std::{cell::Cell, collections::BTreeSet, time::Duration};

use actix_web::{http::Method, test::TestRequest};
use serde_json::{Value, json};

use crate::support::{Api, App, TEXT, TestOptions, TestResponse, api, api_with};

const STORES: &str = "/api/v1/openai/vector_stores";
const SEARCH: &str = "/api/v1/openai/vector_stores/default/search";

async fn search<S: App>(api: &Api<S>, body: Value) -> Value {
    let response = api.post(SEARCH, "", body).await;
    assert_eq!(response.status.as_u16(), 200, "{}", response.json());
    response.json()
}

async fn list<S: App>(api: &Api<S>, path: &str, token: &str) -> Value {
    let response = api.call(Method::GET, path, token, None).await;
    assert_eq!(response.status.as_u16(), 200, "{path}: {}", response.json());
    let json = response.json();
    let keys: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["data", "first_id", "has_more", "last_id", "object"]);
    json
}

fn ids(list: &Value) -> Vec<&str> {
    list["data"].as_array().unwrap().iter().map(|object| object["id"].as_str().unwrap()).collect()
}

/// Documents with metadata that all contain the word ocean; their ids, the oldest first.
async fn add_documents<S: App>(api: &Api<S>, token: &str) -> Vec<String> {
    let mut ids = Vec::new();
    for (n, year) in ["2024", "2025", "2026"].into_iter().enumerate() {
        let metadata =
            json!({ "year": year, "kind": if n == 0 { "draft" } else { "final" }, "public": "true" });
        let text = format!("# Report {n}\n\nThe ocean of the year {year} is deep.\n");
        ids.push(
            api.add(token, json!({ "text": text, "source": format!("/{n}.md"), "metadata": metadata })).await,
        );
    }
    ids
}

#[actix_web::test]
async fn space_is_a_vector_store_and_document_a_file() {
    let api = api().await;
    let admin = api.admin().await;
    let doc_id =
        api.add(&admin, json!({ "text": TEXT, "source": "s", "metadata": { "kind": "moons" } })).await;
    let stores = list(&api, STORES, "").await;
    assert_eq!((ids(&stores), &stores["object"]), (vec!["default"], &json!("list")));
    assert_eq!((&stores["first_id"], &stores["last_id"]), (&json!("default"), &json!("default")));
    let store = api.get(&format!("{STORES}/default")).await.json();
    assert_eq!(store, stores["data"][0]);
    assert_eq!((&store["object"], &store["status"]), (&json!("vector_store"), &json!("completed")));
    let counts = json!({ "in_progress": 0, "completed": 1, "failed": 0, "cancelled": 0, "total": 1 });
    assert_eq!(store["file_counts"], counts);
    assert!(store["created_at"].as_i64().unwrap() > 1_700_000_000);
    let files = list(&api, &format!("{STORES}/default/files"), "").await;
    assert_eq!(ids(&files), [&doc_id]);
    let file = api.get(&format!("{STORES}/default/files/{doc_id}")).await.json();
    assert_eq!(file, files["data"][0]);
    assert_eq!((&file["object"], &file["vector_store_id"]), (&json!("vector_store.file"), &json!("default")));
    assert_eq!(file["last_error"], Value::Null);
    assert_eq!(
        (&file["attributes"]["kind"], &file["attributes"]["lkr.source"]),
        (&json!("moons"), &json!("s"))
    );
    let response = api.get(&format!("{STORES}/default/files/{doc_id}/content")).await;
    let expected = json!({
        "object": "vector_store.file_content.page",
        "data": [{ "type": "text", "text": TEXT }],
        "has_more": false,
        "next_page": null,
    });
    assert_eq!(response.json(), expected);
    assert_eq!(response.header("content-type"), Some("application/json"));
    assert!(response.header("x-request-id").is_some());
}

#[actix_web::test]
async fn search_returns_chunks_with_falling_scores_from_0_to_1() {
    let api = api().await;
    let admin = api.admin().await;
    let doc_id = api.add(&admin, json!({ "text": TEXT, "metadata": { "kind": "moons" } })).await;
    let page = search(&api, json!({ "query": "volcanoes of Io or an ocean", "max_num_results": 2 })).await;
    let keys: Vec<_> = page.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["data", "has_more", "next_page", "object", "search_query"]);
    assert_eq!(page["object"], "vector_store.search_results.page");
    assert_eq!(
        (&page["search_query"], &page["next_page"]),
        (&json!(["volcanoes of Io or an ocean"]), &Value::Null)
    );
    let results = page["data"].as_array().unwrap();
    assert_eq!(results.len(), 2);
    let best = &results[0];
    assert_eq!((best["file_id"].as_str(), &best["filename"]), (Some(doc_id.as_str()), &json!("Moons")));
    assert_eq!(best["content"][0]["type"], "text");
    assert!(best["content"][0]["text"].as_str().unwrap().contains("volcanoes"));
    assert_eq!(
        (&best["attributes"]["kind"], &best["attributes"]["lkr.doc_id"]),
        (&json!("moons"), &json!(doc_id))
    );
    assert!(best["attributes"]["lkr.char_start"].is_u64());
    let scores: Vec<f64> = results.iter().map(|result| result["score"].as_f64().unwrap()).collect();
    assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)) && scores[0] > scores[1], "{scores:?}");
    let threshold = f64::midpoint(scores[0], scores[1]);
    let options = json!({ "score_threshold": threshold });
    let above =
        search(&api, json!({ "query": "volcanoes of Io or an ocean", "ranking_options": options })).await;
    assert_eq!(above["data"].as_array().unwrap().len(), 1);
    let both =
        search(&api, json!({ "query": ["volcanoes of Io", "ocean under ice"], "max_num_results": 50 })).await;
    let texts: Vec<_> = both["data"].as_array().unwrap().iter().map(|it| &it["content"][0]["text"]).collect();
    assert!((2..=3).contains(&texts.len()), "each chunk is listed once: {texts:?}");
    assert_eq!(both["search_query"], json!(["volcanoes of Io", "ocean under ice"]));
}

/// A document each of whose sections names its version, which is its title, too.
fn version(version: u32) -> Value {
    let section =
        |topic: &str| format!("## The {topic}\n\nThe {topic} of version {version} is deep and wide.\n\n");
    let text: String = ["ocean", "volcano", "glacier"].into_iter().map(section).collect();
    json!({ "text": text, "title": format!("V{version}") })
}

#[actix_web::test]
async fn search_shows_one_revision_of_a_document_that_is_being_replaced() {
    let api = api().await;
    let admin = api.admin().await;
    let doc_id = api.add(&admin, version(0)).await;
    let is_replaced = Cell::new(false);
    let replacing = async {
        let path = format!("/api/v1/documents/{doc_id}");
        for n in 1..=30 {
            let accepted = api.call(Method::PUT, &path, &admin, Some(version(n))).await.data();
            let task = api.ended(&admin, accepted["task_id"].as_str().unwrap()).await;
            assert_eq!(task["status"], "done", "{task}");
        }
        is_replaced.set(true);
    };
    let searching = async || {
        let mut shown = BTreeSet::new();
        while !is_replaced.get() {
            let queries = json!(["deep ocean", "wide volcano", "glacier", "version"]);
            let page = search(&api, json!({ "query": queries, "max_num_results": 50 })).await;
            let mut versions = BTreeSet::new();
            for result in page["data"].as_array().unwrap() {
                let text = result["content"][0]["text"].as_str().unwrap();
                let (_, after) = text.split_once("version ").unwrap();
                let title = format!("V{}", after.split(' ').next().unwrap());
                assert_eq!(
                    (&result["attributes"]["lkr.title"], &result["filename"]),
                    (&json!(title), &json!(title))
                );
                versions.insert(title);
            }
            assert!(versions.len() <= 1, "{page}");
            shown.extend(versions);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        shown
    };
    let ((), first, second) = tokio::join!(replacing, searching(), searching());
    assert!(first.len() > 1 && second.len() > 1, "{first:?} {second:?}");
}

#[actix_web::test]
async fn filters_select_documents_by_their_attributes() {
    let api = api().await;
    let admin = api.admin().await;
    let all = add_documents(&api, &admin).await;
    let year = |operator: &str, value: Value| json!({ "type": operator, "key": "year", "value": value });
    for (filter, expected) in [
        (year("eq", json!("2024")), &all[..1]),
        (year("ne", json!("2024")), &all[1..]),
        (year("gte", json!(2025)), &all[1..]),
        (year("in", json!(["2024", "2025"])), &all[..2]),
        (year("nin", json!(["2024", "2025"])), &all[2..]),
        (json!({ "type": "eq", "key": "public", "value": true }), &all[..]),
        (json!({ "type": "eq", "key": "lkr.source", "value": "/1.md" }), &all[1..2]),
        (json!({ "type": "eq", "key": "missing", "value": "x" }), &[]),
        (
            json!({ "type": "or", "filters": [
                { "type": "and", "filters": [
                    { "type": "eq", "key": "kind", "value": "final" },
                    year("lt", json!(2026)),
                ] },
                year("eq", json!(2024)),
            ] }),
            &all[..2],
        ),
    ] {
        let page = search(&api, json!({ "query": "ocean", "filters": filter })).await;
        let mut found: Vec<_> =
            page["data"].as_array().unwrap().iter().map(|it| it["file_id"].as_str().unwrap()).collect();
        let mut expected: Vec<_> = expected.iter().map(String::as_str).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{filter}");
    }
}

#[actix_web::test]
async fn listings_are_paged_in_both_directions() {
    let api = api().await;
    let admin = api.admin().await;
    for space in ["a", "b", "c"] {
        api.post("/api/v1/spaces", &admin, json!({ "space": space })).await.data();
    }
    let documents = add_documents(&api, &admin).await;
    let files: Vec<&str> = documents.iter().map(String::as_str).collect();
    for (path, oldest_first) in
        [(STORES.to_owned(), vec!["default", "a", "b", "c"]), (format!("{STORES}/default/files"), files)]
    {
        let newest_first: Vec<&str> = oldest_first.iter().rev().copied().collect();
        for (order, expected) in
            [("", &newest_first), ("&order=desc", &newest_first), ("&order=asc", &oldest_first)]
        {
            let (mut seen, mut after) = (Vec::new(), String::new());
            loop {
                let page = list(&api, &format!("{path}?limit=2{order}{after}"), &admin).await;
                seen.extend(ids(&page).into_iter().map(str::to_owned));
                after = format!("&after={}", page["last_id"].as_str().unwrap());
                if page["has_more"] == false {
                    break;
                }
            }
            assert_eq!(&seen, expected, "{path} {order}");
            let (before, count) = (expected.last().unwrap(), expected.len());
            let page = list(&api, &format!("{path}?limit=2{order}&before={before}"), &admin).await;
            assert_eq!(ids(&page), expected[count - 3..count - 1], "{path} {order}");
            assert_eq!(page["has_more"], count > 3);
        }
    }
    let completed = list(&api, &format!("{STORES}/default/files?filter=completed"), "").await;
    assert_eq!(ids(&completed).len(), 3);
    let failed = list(&api, &format!("{STORES}/default/files?filter=failed"), "").await;
    assert_eq!((ids(&failed).len(), &failed["first_id"]), (0, &Value::Null));
}

#[actix_web::test]
async fn wrong_request_is_answered_with_the_wrong_parameter() {
    let api = api().await;
    let files = format!("{STORES}/default/files");
    for (path, param) in [
        (format!("{STORES}?limit=0"), "limit"),
        (format!("{STORES}?limit=101"), "limit"),
        (format!("{STORES}?order=up"), "order"),
        (format!("{STORES}?after=nowhere"), "after"),
        (format!("{STORES}?after=No%20Name"), "after"),
        (format!("{STORES}?before=nowhere"), "before"),
        (format!("{STORES}?after=default&before=default"), "before"),
        (format!("{STORES}?offset=1"), "offset"),
        (format!("{STORES}/default?limit=1"), "limit"),
        (format!("{files}?after=nothing"), "after"),
        (format!("{files}?filter=done"), "filter"),
        (format!("{files}?limit=1&limit=2"), "limit"),
    ] {
        let error = api.get(&path).await.expect_openai_error(400, "invalid_request");
        assert_eq!(
            (&error["param"], &error["type"]),
            (&json!(param), &json!("invalid_request_error")),
            "{path}"
        );
    }
    for (body, param) in [
        (json!({}), Value::Null),
        (json!({ "query": "" }), json!("query")),
        (json!({ "query": null }), json!("query")),
        (json!({ "query": ["a", 1] }), json!("query")),
        (json!({ "query": "x".repeat(2_001) }), json!("query")),
        (json!({ "query": "a", "max_num_results": 51 }), json!("max_num_results")),
        (json!({ "query": "a", "max_num_results": "7" }), json!("max_num_results")),
        (json!({ "query": "a", "rewrite_query": 1 }), json!("rewrite_query")),
        (
            json!({ "query": "a", "ranking_options": { "score_threshold": 2 } }),
            json!("ranking_options.score_threshold"),
        ),
        (json!({ "query": "a", "filters": { "type": "xor" } }), json!("filters.type")),
        (json!({ "query": "a", "top_k": 3 }), json!("top_k")),
    ] {
        let error = api.post(SEARCH, "", body.clone()).await.expect_openai_error(400, "invalid_request");
        assert_eq!(error["param"], param, "{body}: {error}");
    }
}

#[actix_web::test]
async fn every_error_below_the_path_has_the_form_of_the_protocol() {
    let options = TestOptions { require_login_for_reads: true, ..TestOptions::default() };
    let api = api_with(TestOptions { cors_origins: &["https://app.example"], ..options }).await;
    let admin = api.admin().await;
    let call = async |method: Method, path: &str, token: &str| api.call(method, path, token, None).await;
    for path in [STORES, "/api/v1/openai/nothing", "/api/v1/openai"] {
        let response = call(Method::GET, path, "").await;
        response.expect_openai_error(401, "invalid_api_key");
        assert_eq!(response.header("www-authenticate"), Some("Bearer"));
        call(Method::GET, path, "wrong").await.expect_openai_error(401, "invalid_api_key");
    }
    for path in [
        "/api/v1/openai",
        "/api/v1/openai/files",
        "/api/v1/openai/vector_stores/",
        "/api/v1/openai/chat/completions",
    ] {
        call(Method::POST, path, &admin).await.expect_openai_error(404, "not_found");
    }
    for (method, path, allow) in [
        (Method::POST, STORES.to_owned(), "GET, HEAD"),
        (Method::DELETE, format!("{STORES}/default"), "GET, HEAD"),
        (Method::POST, format!("{STORES}/default/files"), "GET, HEAD"),
        (Method::GET, SEARCH.to_owned(), "POST"),
    ] {
        let response = call(method, &path, &admin).await;
        response.expect_openai_error(405, "invalid_request");
        assert_eq!(response.header("allow"), Some(allow), "{path}");
    }
    let raw = |content_type: &'static str, body: String| {
        TestRequest::with_uri(SEARCH)
            .method(Method::POST)
            .insert_header(("authorization", format!("Bearer {admin}")))
            .insert_header(("content-type", content_type))
            .set_payload(body)
    };
    api.send(raw("application/json", "{".to_owned())).await.expect_openai_error(400, "invalid_request");
    api.send(raw("text/plain", "{}".to_owned())).await.expect_openai_error(415, "invalid_request");
    let large = api.send(raw("application/json", " ".repeat(2 * 1024 * 1024))).await;
    large.expect_openai_error(413, "invalid_request");
    for id in ["0".repeat(32), "no-id".to_owned()] {
        for tail in ["", "/content"] {
            let path = format!("{STORES}/default/files/{id}{tail}");
            let error = call(Method::GET, &path, &admin).await.expect_openai_error(404, "not_found");
            assert_eq!(error["message"], "no such document");
        }
    }
    let preflight = TestRequest::with_uri(SEARCH)
        .method(Method::OPTIONS)
        .insert_header(("origin", "https://evil.example"))
        .insert_header(("access-control-request-method", "POST"));
    api.send(preflight).await.expect_openai_error(400, "invalid_request");
    api.faults.set("vectors", "query_batch", false);
    let failed = api.post(SEARCH, &admin, json!({ "query": "a" })).await;
    assert_eq!(failed.expect_openai_error(500, "internal")["type"], "server_error");
}

/// A response without what differs for each request.
fn comparable(response: &TestResponse, id: &str) -> (u16, String) {
    (response.status.as_u16(), String::from_utf8_lossy(&response.body).replace(id, "ID"))
}

#[actix_web::test]
async fn unreadable_space_and_document_are_answered_as_unknown_ones() {
    let api = api().await;
    let admin = api.admin().await;
    for space in ["legal", "open"] {
        api.post("/api/v1/spaces", &admin, json!({ "space": space })).await.data();
    }
    let doc_id = api.add(&admin, json!({ "text": TEXT, "space": "legal" })).await;
    let outsider = api.user("eva").await;
    let key = json!({ "name": "k", "scope": "read", "spaces": ["legal"] });
    let reading_key = api.key_with(&admin, key).await;
    let key = json!({ "name": "k", "scope": "read", "spaces": ["open"] });
    let other_key = api.key_with(&admin, key).await;
    for token in ["", &outsider, &other_key] {
        for (method, tail, body) in [
            (Method::GET, "", None),
            (Method::GET, "/files", None),
            (Method::GET, &format!("/files/{doc_id}"), None),
            (Method::GET, &format!("/files/{doc_id}/content"), None),
            (Method::POST, "/search", Some(json!({ "query": "moons" }))),
        ] {
            let hidden =
                api.call(method.clone(), &format!("{STORES}/legal{tail}"), token, body.clone()).await;
            hidden.expect_openai_error(404, "not_found");
            let unknown = api.call(method, &format!("{STORES}/nowhere{tail}"), token, body).await;
            assert_eq!(comparable(&hidden, "legal"), comparable(&unknown, "nowhere"), "{tail}");
        }
        let [hidden, unknown] = ["legal", "nowhere"].map(|space| format!("{STORES}?after={space}"));
        let hidden = api.call(Method::GET, &hidden, token, None).await;
        let unknown = api.call(Method::GET, &unknown, token, None).await;
        assert_eq!(comparable(&hidden, "legal"), comparable(&unknown, "nowhere"));
        assert!(!ids(&list(&api, STORES, token).await).contains(&"legal"));
    }
    assert_eq!(ids(&list(&api, STORES, &reading_key).await), ["legal"]);
    let elsewhere = format!("{STORES}/open/files/{doc_id}");
    api.call(Method::GET, &elsewhere, &other_key, None).await.expect_openai_error(404, "not_found");
    let path = format!("{STORES}/legal/search");
    let found = api.post(&path, &reading_key, json!({ "query": "volcanoes" })).await.json();
    assert_eq!(found["data"][0]["file_id"], json!(doc_id));
}
