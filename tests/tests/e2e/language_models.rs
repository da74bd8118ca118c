//! Remote language models that are configured in the settings.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use lkr_test_provider::{Fault, ProviderBehavior, TestProvider};
use lkr_tests::Server;
use serde_json::{Value, json};

const KEY: &str = "sk-planted-4711";

fn test_settings(server: &Server, name: &str, entry: &Value) -> (bool, String) {
    let body = json!({ "models": { name: entry } });
    let tested = server.call("POST", "/settings/test", Some(&body), Some(server.admin()));
    assert_eq!(tested.status, 200, "{}", tested.message());
    let data = tested.data();
    let detail = data["detail"].as_str().unwrap().to_owned();
    assert!(!detail.contains(KEY), "{detail}");
    (data["ok"] == true, detail)
}

#[test]
fn settings_test_uses_stored_key_after_restart() {
    let provider =
        TestProvider::with(ProviderBehavior { key: Some(KEY.to_owned()), ..ProviderBehavior::default() });
    let server = Server::start();
    let entry = json!({
        "provider": "remote_compatible", "model": "thinker", "base_url": provider.base_url(), "api_key": KEY,
    });
    let saved = json!({ "models": { "summarize": entry } });
    assert_eq!(server.call("PUT", "/settings", Some(&saved), Some(server.admin())).status, 200);
    server.stop();
    server.restart();
    let (ok, detail) = test_settings(&server, "summarize", &json!({ "api_key": "********" }));
    assert!(ok && detail.contains("thinker answered") && detail.contains("accepts a schema"), "{detail}");
    // The stored key is never sent to another address.
    let elsewhere = TestProvider::start();
    let (ok, _) = test_settings(
        &server,
        "summarize",
        &json!({ "base_url": elsewhere.base_url(), "api_key": "********" }),
    );
    assert!(ok && elsewhere.seen().iter().all(|seen| seen.authorization.is_none()));
    provider.next([Fault::redirect(&elsewhere.base_url())]);
    let before = elsewhere.seen().len();
    let (ok, detail) = test_settings(&server, "summarize", &json!({}));
    assert!(
        !ok && detail.contains("redirects are not followed") && elsewhere.seen().len() == before,
        "{detail}"
    );
    let (ok, detail) = test_settings(&server, "embed", &entry);
    assert!(ok && detail.contains("64 dimensions"), "{detail}");
    for provider in [provider, elsewhere] {
        provider.assert_well_asked();
    }
}

/// A text of three sections, each long enough for a summary.
fn stones() -> String {
    let section = |stone: &str| {
        let sentences: String =
            (1..12).map(|n| format!("The {stone} number {n} rests in its bed of sand. ")).collect();
        format!("## About {stone}\n\n{sentences}\n\n")
    };
    format!("# Stones\n\n{}", ["basalt", "gneiss", "marble"].map(section).concat())
}

#[test]
fn lesson_03_model_replies_from_before_a_kill_are_reused() {
    let provider = TestProvider::start();
    let hanging = Arc::new(AtomicBool::new(true));
    let hangs = Arc::clone(&hanging);
    provider.script(move |body| {
        let shown = body["messages"][1]["content"].as_str().unwrap().to_owned();
        while shown.contains("marble") && hangs.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(10));
        }
        json!({ "summary": "A stone rests in its bed of sand.", "parts": [], "keywords": [] }).to_string()
    });
    let server = Server::start();
    let entry = json!({ "provider": "local_llm", "model": "thinker", "base_url": provider.base_url() });
    let saved = json!({ "models": { "summarize": entry } });
    assert_eq!(server.call("PUT", "/settings", Some(&saved), Some(server.admin())).status, 200);
    let task = server.submit(&json!({ "text": stones() }));
    let task_id = task["task_id"].as_str().unwrap();
    let notes = server.data_dir().join("blobs/notes");
    server.wait_until(|| {
        // The name of an unfinished file contains `#`.
        let finished = walk(&notes).into_iter().filter(|path| !path.to_string_lossy().contains('#'));
        let contents = finished.filter_map(|path| fs::read_to_string(path).ok());
        contents.map(|content| content.matches("summary").count()).find(|&count| count >= 2)
    });
    let calls = |stone: &str| {
        let shown = |body: &Value| {
            body["messages"][1]["content"].as_str().unwrap().contains(&format!("> About {stone}"))
        };
        provider.seen().iter().filter(|seen| shown(&seen.body)).count()
    };
    // On a busy machine, the third section may be asked for after the others were answered.
    server.wait_until(|| (calls("marble") > 0).then_some(()));
    server.kill();
    hanging.store(false, Ordering::SeqCst);
    server.restart();
    let task = server.wait_for_task(task_id);
    assert_eq!((&task["status"], &task["attempts"]), (&json!("done"), &json!(1)), "{task}");
    let warnings = task["result"]["warnings"].to_string();
    assert!(!warnings.contains("extractive"), "{task}");
    let shown: Vec<String> = provider.seen().iter().map(|seen| seen.body["messages"].to_string()).collect();
    assert_eq!((calls("basalt"), calls("gneiss"), calls("marble")), (1, 1, 2), "{shown:#?}");
    assert_eq!(
        task["result"]["usage"]["calls"], 2,
        "one call for the unfinished section, one for the document: {task} {shown:#?}"
    );
    provider.assert_well_asked();
    let doc_id = task["doc_id"].as_str().unwrap();
    assert_eq!(
        server.call("DELETE", &format!("/documents/{doc_id}"), None, Some(server.admin())).status,
        200
    );
    server.wait_until(|| walk(&notes).is_empty().then_some(()));
}

/// All files below a folder.
fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}
