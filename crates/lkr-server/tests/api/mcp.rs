//! The Model Context Protocol.

use actix_web::{http::Method, test::TestRequest};
use lkr_spaces::{NewSpace, ReadPolicy, SpaceName, WritePolicy};
use lkr_text::prompt_tokens;
use serde_json::{Value, json};

use crate::support::{Api, App, TEXT, TestOptions, TestResponse, api, api_with};

const CURRENT: &str = "2026-07-28";

/// The most tokens that a tool may return. Some more than the crate's own bound, for the JSON around the text.
const MAX_TOKENS: usize = 8_500;

fn request(token: &str, headers: &[(&str, &str)]) -> TestRequest {
    let mut request = TestRequest::post()
        .uri("/mcp")
        .insert_header(("accept", "application/json, text/event-stream"))
        .insert_header(("content-type", "application/json"));
    if !token.is_empty() {
        request = request.insert_header(("authorization", format!("Bearer {token}")));
    }
    headers.iter().fold(request, |request, header| request.insert_header(*header))
}

async fn post<S: App>(api: &Api<S>, token: &str, message: &Value) -> TestResponse {
    api.send(request(token, &[]).set_payload(message.to_string())).await
}

/// The response to a request of a revision of 2025.
async fn ask<S: App>(api: &Api<S>, token: &str, method: &str, params: Value) -> Value {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let response = post(api, token, &message).await;
    assert_eq!(response.status.as_u16(), 200, "{}", response.json());
    response.json()
}

/// The result of a tool, and whether it is an error.
async fn tool<S: App>(api: &Api<S>, token: &str, name: &str, arguments: Value) -> (bool, Vec<String>) {
    let response = ask(api, token, "tools/call", json!({ "name": name, "arguments": arguments })).await;
    let result = &response["result"];
    let texts = result["content"].as_array().unwrap_or_else(|| panic!("{response}")).iter();
    let texts: Vec<String> = texts.map(|part| part["text"].as_str().unwrap().to_owned()).collect();
    let tokens: usize = texts.iter().map(|text| prompt_tokens(text)).sum();
    assert!(tokens <= MAX_TOKENS, "{name} returned {tokens} tokens");
    (result["isError"].as_bool().unwrap(), texts)
}

/// The JSON that a tool returns.
async fn found<S: App>(api: &Api<S>, token: &str, name: &str, arguments: Value) -> Value {
    let (is_error, texts) = tool(api, token, name, arguments).await;
    assert!(!is_error, "{texts:?}");
    serde_json::from_str(&texts[0]).unwrap()
}

/// The reason for which a tool fails.
async fn refused<S: App>(api: &Api<S>, token: &str, name: &str, arguments: Value) -> String {
    let (is_error, texts) = tool(api, token, name, arguments).await;
    assert!(is_error, "{texts:?}");
    texts.concat()
}

async fn tool_names<S: App>(api: &Api<S>, token: &str) -> Vec<String> {
    let tools = ask(api, token, "tools/list", json!({})).await["result"]["tools"].clone();
    tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// A space that only its members read, with one document.
async fn private_document<S: App>(api: &Api<S>, admin: &str) -> String {
    let space = NewSpace {
        name: SpaceName::new("legal").unwrap(),
        title: String::new(),
        description: String::new(),
        read: ReadPolicy::Members,
        write: WritePolicy::Members,
        created_by: String::new(),
    };
    api.spaces.create(space, vec![]).await.unwrap();
    api.add(admin, json!({ "text": "# Contract\n\nThe obsidian clause.", "space": "legal" })).await
}

#[actix_web::test]
async fn handshake_of_each_revision_of_2025_agrees_on_it() {
    let api = api().await;
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let client = json!({ "name": "a client", "version": "1" });
        let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client });
        let result = ask(&api, "", "initialize", params).await["result"].clone();
        assert_eq!(
            (&result["protocolVersion"], &result["serverInfo"]["name"]),
            (&json!(version), &json!("lkr"))
        );
        assert!(
            result["capabilities"]["tools"].is_object() && result["capabilities"]["resources"].is_object()
        );
        assert!(prompt_tokens(result["instructions"].as_str().unwrap()) < 100);
    }
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let noted = post(&api, "", &note).await;
    assert_eq!((noted.status.as_u16(), noted.body.len()), (202, 0));
    assert_eq!(ask(&api, "", "ping", json!({})).await["result"], json!({}));
}

#[actix_web::test]
async fn request_of_the_current_revision_needs_no_handshake() {
    let api = api().await;
    let admin = api.admin().await;
    api.add(&admin, json!({ "text": TEXT })).await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": CURRENT,
        "io.modelcontextprotocol/clientInfo": { "name": "a client", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let send = async |method: &str, mut params: Value, name: Option<&str>| {
        params["_meta"] = meta.clone();
        let message = json!({ "jsonrpc": "2.0", "id": "a", "method": method, "params": params });
        let mut headers = vec![("mcp-protocol-version", CURRENT), ("mcp-method", method)];
        headers.extend(name.map(|name| ("mcp-name", name)));
        let response = api.send(request("", &headers).set_payload(message.to_string())).await;
        assert_eq!(response.status.as_u16(), 200, "{}", response.json());
        assert_eq!(response.header("mcp-session-id"), None);
        response.json()["result"].clone()
    };
    let discovered = send("server/discover", json!({}), None).await;
    assert!(discovered["supportedVersions"].as_array().unwrap().contains(&json!(CURRENT)), "{discovered}");
    let listed = send("tools/list", json!({}), None).await;
    assert_eq!(listed["tools"].as_array().unwrap().len(), 4);
    let call = json!({ "name": "search", "arguments": { "query": "volcanoes" } });
    let called = send("tools/call", call, Some("search")).await;
    assert!(called["content"][0]["text"].as_str().unwrap().contains("Io has volcanoes"), "{called}");
}

#[actix_web::test]
async fn tools_find_read_and_list_documents() {
    let api = api().await;
    let admin = api.admin().await;
    let doc_id = api.add(&admin, json!({ "text": TEXT, "source": "https://example.org/moons" })).await;
    let results = found(&api, "", "search", json!({ "query": "volcanoes" })).await["results"].clone();
    let best = &results[0];
    assert_eq!((&best["title"], &best["url"]), (&json!("Moons"), &json!("https://example.org/moons")));
    assert_eq!((&best["path"], &best["space"]), (&json!(["Io"]), &json!("default")));
    assert!(best["text"].as_str().unwrap().contains("Io has volcanoes"));
    let id = best["id"].as_str().unwrap();
    let start: usize = id.strip_prefix(&format!("{doc_id}#")).unwrap().parse().unwrap();
    let part = found(&api, "", "fetch", json!({ "id": id })).await;
    let rest: String = TEXT.chars().skip(start).collect();
    assert_eq!(part["text"].as_str(), Some(rest.as_str()), "fetch reads on from the passage");
    let whole = found(&api, "", "fetch", json!({ "id": doc_id })).await;
    assert_eq!((&whole["text"], &whole["title"]), (&json!(TEXT), &json!("Moons")));
    assert_eq!(whole["metadata"]["chars"], json!([0, TEXT.chars().count(), TEXT.chars().count()]));
    assert_eq!(whole.get("next"), None);
    let (is_error, texts) = tool(&api, "", "context", json!({ "query": "moons with an ocean" })).await;
    assert!(!is_error && texts[0].contains("[1]") && texts[0].contains("Europa hides an ocean"), "{texts:?}");
    let cited: Value = serde_json::from_str(&texts[1]).unwrap();
    assert_eq!(cited["passages"][0]["marker"], "[1]");
    let listed = found(&api, "", "list", json!({})).await;
    assert_eq!((&listed["documents"][0]["id"], &listed["spaces"]), (&json!(doc_id), &json!(["default"])));
    let untitled = found(&api, "", "list", json!({ "title": "Sun" })).await;
    assert_eq!(untitled["documents"], json!([]));
}

#[actix_web::test]
async fn documents_are_resources() {
    let api = api().await;
    let admin = api.admin().await;
    let doc_id = api.add(&admin, json!({ "text": TEXT })).await;
    let listed = ask(&api, "", "resources/list", json!({})).await["result"].clone();
    let uri = format!("lkr://documents/{doc_id}");
    assert_eq!(
        (&listed["resources"][0]["uri"], &listed["resources"][0]["title"]),
        (&json!(uri), &json!("Moons"))
    );
    let templates = ask(&api, "", "resources/templates/list", json!({})).await["result"].clone();
    assert_eq!(templates["resourceTemplates"].as_array().unwrap().len(), 2);
    let read = ask(&api, "", "resources/read", json!({ "uri": uri })).await["result"].clone();
    assert_eq!(read["contents"][0]["text"], TEXT);
    let part = ask(&api, "", "resources/read", json!({ "uri": format!("{uri}/9") })).await["result"].clone();
    let rest: String = TEXT.chars().skip(9).collect();
    assert_eq!(part["contents"][0]["text"].as_str(), Some(rest.as_str()));
    for unknown in ["lkr://documents/00000000000000000000000000000000", "file:///etc/passwd", "x"] {
        let error = ask(&api, "", "resources/read", json!({ "uri": unknown })).await["error"].clone();
        assert_eq!(error["code"], -32_002, "{error}");
    }
}

#[actix_web::test]
async fn lesson_40_fetch_is_bounded_whatever_a_document_contains() {
    let api = api().await;
    let admin = api.admin().await;
    let metadata: Value =
        (0..60).map(|n| (format!("{n} {}", "x7 Q".repeat(75)), json!("\u{1}".repeat(99)))).collect();
    let text = "\"moon\\\" \"\u{1}\\\"\n".repeat(9_000);
    let source = format!("https://example.org/{}", "7x/Q".repeat(490));
    let doc_id = api.add(&admin, json!({ "text": text, "source": source, "metadata": metadata })).await;
    let (mut id, mut parts, mut end) = (doc_id, 0, json!(0));
    // The helper checks the bound of each answer.
    loop {
        let part = found(&api, "", "fetch", json!({ "id": id })).await;
        let chars = &part["metadata"]["chars"];
        assert_eq!(chars[0], end, "a part begins where the one before ends");
        let length = part["text"].as_str().unwrap().chars().count() as u64;
        assert_eq!(chars[1].as_u64().unwrap(), chars[0].as_u64().unwrap() + length);
        end = chars[1].clone();
        parts += 1;
        match part["next"].as_str() {
            Some(next) => id = next.to_owned(),
            None => {
                assert_eq!(end, chars[2]);
                break;
            }
        }
    }
    assert!(parts > 2, "{parts} parts");
}

#[actix_web::test]
async fn lesson_40_every_answer_is_bounded_and_long_documents_come_in_parts() {
    let api = api().await;
    let admin = api.admin().await;
    let sentences: String = (0..4_000).map(|n| format!("Volcano number {n} sleeps under ice.\n")).collect();
    let text = format!("# Volcanoes\n\n{sentences}");
    let long = "Volcano ".repeat(500);
    let metadata: Value = (0..60).map(|n| (n.to_string(), json!("v".repeat(3_000)))).collect();
    let body = json!({ "text": text, "title": long, "source": long, "metadata": metadata });
    let doc_id = api.add(&admin, body).await;
    for n in 0..60 {
        let text = format!("# {n} {}\n\n{n} {}", "volcano ".repeat(60), "A volcano of ice. ".repeat(200));
        api.add(&admin, json!({ "text": text, "title": format!("{n} {}", "Volcano ".repeat(100)) })).await;
    }
    // The helper checks the bound of each answer.
    let results = found(&api, "", "search", json!({ "query": "volcano ice", "limit": 20 })).await;
    assert!(results["results"].as_array().unwrap().len() >= 8, "{results}");
    tool(&api, "", "context", json!({ "query": "volcano ice", "max_tokens": 6_000 })).await;
    let (mut id, mut read, mut parts) = (doc_id.clone(), String::new(), 0);
    loop {
        let part = found(&api, "", "fetch", json!({ "id": id })).await;
        let text = part["text"].as_str().unwrap();
        assert!(text.ends_with('\n'), "parts end behind a line");
        read.push_str(text);
        parts += 1;
        match part["next"].as_str() {
            Some(next) => id = next.to_owned(),
            None => break,
        }
    }
    assert!(read == text && parts > 3, "{parts} parts");
    let (mut listed, mut cursor) = (0, Value::Null);
    loop {
        let page = found(&api, "", "list", json!({ "limit": 50, "cursor": cursor })).await;
        listed += page["documents"].as_array().unwrap().len();
        match page.get("next") {
            Some(next) => cursor = next.clone(),
            None => break,
        }
    }
    assert_eq!(listed, 61);
    let resources = ask(&api, "", "resources/list", json!({})).await["result"].clone();
    assert_eq!(resources["resources"].as_array().unwrap().len(), 50);
    let page = json!({ "cursor": resources["nextCursor"] });
    let rest = ask(&api, "", "resources/list", page).await["result"].clone();
    assert_eq!((rest["resources"].as_array().unwrap().len(), rest.get("nextCursor")), (11, None));
    let tools = ask(&api, &admin, "tools/list", json!({})).await["result"]["tools"].to_string();
    assert!(prompt_tokens(&tools) < 1_500, "{tools}");
}

/// The number in the warning of an answer that contains `part`; 0 if there is no such warning.
fn left_out(answer: &Value, part: &str) -> usize {
    let mut warnings = answer["warnings"].as_array().unwrap().iter().map(|warning| warning.as_str().unwrap());
    let Some(warning) = warnings.find(|warning| warning.contains(part)) else { return 0 };
    warning.split([' ', ';']).find_map(|word| word.parse().ok()).unwrap()
}

#[actix_web::test]
async fn what_has_no_room_in_an_answer_is_counted() {
    let api = api().await;
    let admin = api.admin().await;
    for n in 0..80 {
        let text = match n < 20 {
            true => (0..90).map(|stone| format!("Glacier {n} has stone {stone}. ")).collect(),
            false => format!("Volcano {n} sleeps. {}", "A volcano of ice. ".repeat(20)),
        };
        let (title, source) = (format!("{n} {}", "Volcano ".repeat(40)), "a9/".repeat(80));
        let source = format!("https://example.org/{n}/{source}");
        api.add(&admin, json!({ "text": text, "title": title, "source": source })).await;
    }
    let results = found(&api, "", "search", json!({ "query": "glacier stone", "limit": 20 })).await;
    let missing = left_out(&results, "results that have no room: ");
    assert!(missing > 0, "{results}");
    assert_eq!(results["results"].as_array().unwrap().len() + missing, 20);
    let results = found(&api, "", "search", json!({ "query": "glacier stone", "limit": 5 })).await;
    assert_eq!(left_out(&results, "have no room"), 0);
    for (max_tokens, is_cut) in [(6_000, true), (1_500, false)] {
        let arguments = json!({ "query": "volcano ice", "max_tokens": max_tokens });
        let (is_error, texts) = tool(&api, "", "context", arguments).await;
        assert!(!is_error, "{texts:?}");
        let list: Value = serde_json::from_str(&texts[1]).unwrap();
        let missing = left_out(&list, "passages that have no room in the list: ");
        let listed = list["passages"].as_array().unwrap().len();
        let numbered = (1..=60).filter(|n| texts[0].contains(&format!("[{n}]"))).count();
        assert_eq!((listed + missing, missing > 0), (numbered, is_cut), "{max_tokens}");
        assert!(prompt_tokens(&texts[1]) > 1_700, "{max_tokens}: {} tokens", prompt_tokens(&texts[1]));
    }
}

#[actix_web::test]
async fn key_that_may_write_adds_documents_and_others_do_not() {
    let api = api().await;
    let admin = api.admin().await;
    private_document(&api, &admin).await;
    let eva = api.user("eva").await;
    let reading = api.key_with(&eva, json!({ "name": "reads", "scope": "read" })).await;
    let writing = api.key_with(&eva, json!({ "name": "writes" })).await;
    for token in ["", &reading] {
        assert_eq!(tool_names(&api, token).await, ["search", "fetch", "context", "list"]);
        let reason = refused(&api, token, "add", json!({ "text": "Basalt is dark." })).await;
        assert!(!reason.is_empty());
    }
    assert!(tool_names(&api, &writing).await.contains(&"add".to_owned()));
    let document = json!({ "text": "Basalt is dark.", "title": "Rocks", "metadata": { "by": "an agent" } });
    let added = found(&api, &writing, "add", document).await;
    assert_eq!(added["status"], "done", "{added}");
    let read = found(&api, &reading, "fetch", json!({ "id": added["id"] })).await;
    assert_eq!((&read["text"], &read["metadata"]["by"]), (&json!("Basalt is dark."), &json!("an agent")));
    let path = format!("/api/v1/documents/{}", added["id"].as_str().unwrap());
    assert_eq!(api.get(&path).await.data()["l1"]["created_by"], "eva");
    let reason = refused(&api, &writing, "add", json!({ "text": " " })).await;
    assert!(reason.contains("text"), "{reason}");
    let elsewhere = api.key_with(&admin, json!({ "name": "elsewhere", "spaces": ["legal"] })).await;
    assert!(tool_names(&api, &elsewhere).await.contains(&"add".to_owned()));
    let reason = refused(&api, &elsewhere, "add", json!({ "text": "Basalt is dark." })).await;
    assert_eq!(reason, "no space has the name \"default\"", "the key sees another space alone");
    assert_eq!(found(&api, &elsewhere, "list", json!({})).await["spaces"], json!(["legal"]));
    let elsewhere = json!({ "text": "The granite clause.", "space": "legal" });
    assert!(refused(&api, &writing, "add", elsewhere).await.contains("no space"), "no member");
}

#[actix_web::test]
async fn unreadable_document_and_space_are_answered_as_unknown_ones() {
    let api = api().await;
    let admin = api.admin().await;
    let doc_id = private_document(&api, &admin).await;
    let eva = api.user("eva").await;
    assert!(
        found(&api, &admin, "search", json!({ "query": "obsidian" })).await.to_string().contains("clause")
    );
    let unknown = "0".repeat(32);
    for token in ["", &eva] {
        for (name, known, other) in [
            ("fetch", json!({ "id": doc_id }), json!({ "id": unknown })),
            (
                "search",
                json!({ "query": "obsidian", "space": "legal" }),
                json!({ "query": "obsidian", "space": "nope" }),
            ),
            (
                "context",
                json!({ "query": "obsidian", "space": "legal" }),
                json!({ "query": "obsidian", "space": "nope" }),
            ),
            ("list", json!({ "space": "legal" }), json!({ "space": "nope" })),
            ("add", json!({ "text": "x", "space": "legal" }), json!({ "text": "x", "space": "nope" })),
        ] {
            let hidden =
                refused(&api, token, name, known).await.replace(&doc_id, &unknown).replace("legal", "nope");
            assert_eq!(hidden, refused(&api, token, name, other).await, "{name}");
        }
        let results = found(&api, token, "search", json!({ "query": "obsidian" })).await;
        assert_eq!(results["results"], json!([]));
        let listed = found(&api, token, "list", json!({})).await;
        assert_eq!((&listed["documents"], &listed["spaces"]), (&json!([]), &json!(["default"])));
        let read =
            ask(&api, token, "resources/read", json!({ "uri": format!("lkr://documents/{doc_id}") })).await;
        assert_eq!(read["error"]["code"], -32_002);
        assert_eq!(ask(&api, token, "resources/list", json!({})).await["result"]["resources"], json!([]));
    }
}

#[actix_web::test]
async fn invalid_arguments_are_refused_with_the_reason() {
    let api = api().await;
    for (name, arguments, expected) in [
        ("search", json!({}), "query"),
        ("search", json!({ "query": " " }), "query"),
        ("search", json!({ "query": "a", "limit": 21 }), "limit is 21, 1 to 20"),
        ("search", json!({ "query": "a", "more": 1 }), "more"),
        ("search", json!({ "query": ["a"] }), "string"),
        ("search", json!({ "query": "a".repeat(2_001) }), "2000"),
        ("fetch", json!({ "id": "x" }), "no document has the id \"x\""),
        ("context", json!({ "query": "a", "max_tokens": 49 }), "max_tokens is 49"),
        ("list", json!({ "cursor": "x" }), "cursor"),
    ] {
        let reason = refused(&api, "", name, arguments).await;
        assert!(reason.contains(expected), "{name}: {reason}");
    }
    let error =
        ask(&api, "", "tools/call", json!({ "name": "delete", "arguments": {} })).await["error"].clone();
    assert_eq!(
        (&error["code"], &error["message"]),
        (&json!(-32_602), &json!("no tool has the name \"delete\""))
    );
    let error = ask(&api, "", "prompts/get", json!({ "name": "x" })).await["error"].clone();
    assert_eq!(error["code"], -32_601);
}

#[actix_web::test]
async fn errors_outside_of_a_request_are_errors_of_json_rpc() {
    let api =
        api_with(TestOptions { cors_origins: &["https://app.example"], ..TestOptions::default() }).await;
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    let plain = || TestRequest::post().uri("/mcp");
    let requests = [
        (400, request("", &[]).set_payload("{")),
        (400, request("", &[]).set_payload("[1]")),
        (400, request("", &[("mcp-protocol-version", "1999-01-01")]).set_payload(ping.clone())),
        (401, request("nobody", &[]).set_payload(ping.clone())),
        (403, request("", &[("origin", "https://evil.example")]).set_payload(ping.clone())),
        (405, request("", &[]).method(Method::GET)),
        (406, plain().insert_header(("content-type", "application/json")).set_payload(ping.clone())),
        (413, request("", &[]).set_payload("x".repeat(5 * 1024 * 1024))),
        (
            415,
            plain()
                .insert_header(("accept", "application/json, text/event-stream"))
                .set_payload(ping.clone()),
        ),
    ];
    for (status, request) in requests {
        let response = api.send(request).await;
        assert_eq!(response.status.as_u16(), status, "{}", String::from_utf8_lossy(&response.body));
        let body = response.json();
        assert_eq!((&body["jsonrpc"], &body["id"]), (&json!("2.0"), &Value::Null), "{body}");
        assert!(body["error"]["code"].is_i64() && body["error"]["message"].is_string(), "{body}");
        assert!(response.header("x-request-id").is_some());
    }
    for headers in [
        [("host", "lkr.example"), ("origin", "https://app.example")],
        [("host", "127.0.0.1:8080"), ("origin", "http://127.0.0.1:8080")],
    ] {
        assert_eq!(api.send(request("", &headers).set_payload(ping.clone())).await.status.as_u16(), 200);
    }
    let rebound = [("host", "evil.example:8080"), ("origin", "http://evil.example:8080")];
    assert_eq!(api.send(request("", &rebound).set_payload(ping)).await.status.as_u16(), 403);
}

#[actix_web::test]
async fn login_for_reads_covers_the_protocol() {
    let api = api_with(TestOptions { require_login_for_reads: true, ..TestOptions::default() }).await;
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let refused = post(&api, "", &list).await;
    assert_eq!((refused.status.as_u16(), refused.header("www-authenticate")), (401, Some("Bearer")));
    let eva = api.user("eva").await;
    let reading = api.key_with(&eva, json!({ "name": "reads", "scope": "read" })).await;
    assert_eq!(tool_names(&api, &reading).await.len(), 4);
}
