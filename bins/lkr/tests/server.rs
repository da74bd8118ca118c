//! The executable as the server: arguments, signals and files.
#![cfg(unix)]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by a panic")]

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(60);

fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lkr"));
    command.arg0("lkr-server");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("LKR_")) {
        command.env_remove(name);
    }
    command.current_dir(folder).env("RUST_LOG", "warn").stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A server that is killed when the test ends.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(folder: &Path) -> Self {
        Self::start_by(command(folder))
    }

    fn start_by(mut command: Command) -> Self {
        let port = free_port();
        let child = command
            .args(["--listen", &format!("127.0.0.1:{port}"), "--data-dir", "data"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { child, port };
        let started = Instant::now();
        while server.try_call("GET", "/readyz", "", None).is_none_or(|(status, _)| status != 200) {
            assert!(started.elapsed() < TIMEOUT, "the server did not become ready");
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    fn call(&self, method: &str, path: &str, token: &str, body: Option<Value>) -> (u16, Value) {
        self.try_call(method, path, token, body).expect("the server answers")
    }

    fn try_call(&self, method: &str, path: &str, token: &str, body: Option<Value>) -> Option<(u16, Value)> {
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n\
             authorization: {token}\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let head = if token.is_empty() { head.replace("authorization: \r\n", "") } else { head };
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.write_all((head + &body).as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some((status, serde_json::from_str(body).unwrap_or(Value::Null)))
    }

    fn login(&self, password: &str) -> (u16, Value) {
        let body = json!({ "username": "admin", "password": password });
        self.call("POST", "/api/v1/auth/login", "", Some(body))
    }

    /// Stops the server and returns its exit code.
    fn stop(mut self) -> Option<i32> {
        self.signal("TERM");
        self.child.wait().unwrap().code()
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Asserts that a start failed with one line, and returns the line.
fn start_error(output: &Output) -> String {
    assert!(!output.status.success());
    assert!(output.stdout.is_empty());
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

#[test]
fn start_with_an_invalid_configuration_fails_with_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let run = |argument: &str, code: i32| {
        let output = command(folder.path()).arg(argument).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        start_error(&output)
    };
    assert!(run("--nope", 2).contains("--nope"));
    assert!(run("--upload-max-size-mb=x", 2).contains("--upload-max-size-mb"));
    assert!(run("--vectors=qdrant", 1).contains("vectors = qdrant needs qdrant_url"));
    let output = command(folder.path()).env("LKR_LISTEN", "nowhere").output().unwrap();
    assert!(start_error(&output).contains("LKR_LISTEN"));
    assert_eq!(output.status.code(), Some(1));
    fs::write(folder.path().join("lkr.toml"), "nope = 1\n").unwrap();
    let output = command(folder.path()).output().unwrap();
    assert!(start_error(&output).contains("unknown key nope in lkr.toml"));
    assert!(!folder.path().join("lkr-data").exists(), "a failed start created the data folder");
}

#[test]
fn every_way_to_start_the_server_parses_the_same_flags() {
    let folder = tempfile::tempdir().unwrap();
    let lkr = || {
        let mut lkr = command(folder.path());
        lkr.arg0("/some/where/lkr");
        lkr
    };
    let flags = ["--check-config", "--data-dir", "there"];
    let server = command(folder.path()).args(flags).output().unwrap();
    assert!(server.status.success(), "{server:?}");
    let serve = lkr().arg("serve").args(flags).output().unwrap();
    assert_eq!((serve.status, &serve.stdout), (server.status, &server.stdout), "{serve:?}");
    let help = lkr().args(["serve", "--help"]).output().unwrap();
    assert!(String::from_utf8_lossy(&help.stdout).contains("--data-dir"), "{help:?}");
    let reset = lkr().args(["reset-admin", "--data-dir", "missing"]).output().unwrap();
    assert!(start_error(&reset).contains("missing"), "{reset:?}");
    let command_line = lkr().arg("--help").output().unwrap();
    assert!(String::from_utf8_lossy(&command_line.stdout).contains("search"), "{command_line:?}");
}

/// A terminal that is closed sends the signal to what was started there, and `nohup` starts programs that ignore it.
#[test]
#[cfg(target_os = "linux")]
fn hangup_stops_the_server_unless_it_was_started_to_ignore_it() {
    for (start, is_ignored) in
        [("exec env --default-signal=HUP \"$@\"", false), ("trap '' HUP; exec \"$@\"", true)]
    {
        let folder = tempfile::tempdir().unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", start, "sh", env!("CARGO_BIN_EXE_lkr"), "serve"]).current_dir(folder.path());
        let mut server = Server::start_by(shell);
        server.signal("HUP");
        if is_ignored {
            std::thread::sleep(Duration::from_millis(500));
            assert_eq!(server.call("GET", "/readyz", "", None).0, 200);
            assert_eq!(server.stop(), Some(0));
        } else {
            assert_eq!(server.child.wait().unwrap().code(), Some(0));
        }
    }
}

/// Each would remove the texts of the other as left over.
#[test]
fn second_knowledge_base_on_the_same_texts_is_refused() {
    let [one, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let texts = one.path().join("texts");
    let start = || {
        let mut first = command(one.path());
        first.env("LKR_BLOBS", &texts).env("LKR_ADMIN_PASSWORD", "a long password");
        Server::start_by(first)
    };
    // It has a store, and texts of its own.
    assert_eq!(Server::start(other.path()).stop(), Some(0));
    let server = start();
    let (_, session) = server.login("a long password");
    let token = format!("Bearer {}", session["data"]["access_token"].as_str().unwrap());
    let refused = || {
        let mut other = command(other.path());
        other.args(["--listen", &format!("127.0.0.1:{}", free_port()), "--data-dir", "data"]);
        start_error(&other.env("LKR_BLOBS", &texts).env("RUST_LOG", "error").output().unwrap())
    };
    assert!(refused().contains("the texts belong to another knowledge base"));
    let (status, added) =
        server.call("POST", "/api/v1/documents", &token, Some(json!({ "text": "Io has volcanoes." })));
    assert_eq!(status, 202, "{added}");
    assert_eq!(server.stop(), Some(0));
    assert!(refused().contains("the texts belong to another knowledge base"));
    let server = start();
    let started = Instant::now();
    let doc_id = loop {
        let (_, listed) = server.call("GET", "/api/v1/documents", &token, None);
        if let Some(doc_id) = listed["data"]["items"][0]["doc_id"].as_str() {
            break doc_id.to_owned();
        }
        assert!(started.elapsed() < TIMEOUT, "the document is not done: {listed}");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(server.call("GET", &format!("/api/v1/documents/{doc_id}/text"), &token, None).0, 200);
}

#[test]
fn commands_on_a_folder_refuse_one_whose_records_are_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("lkr.toml");
    fs::write(&config, "state = \"redis\"\nredis_url = \"redis://127.0.0.1:1\"\n").unwrap();
    fs::create_dir(folder.path().join("data")).unwrap();
    for arguments in [&["doctor", "--repair"][..], &["backup", "--output", "all.tar"], &["mcp"]] {
        let mut lkr = command(folder.path());
        let refused = lkr.arg0("lkr").args(arguments).args(["--data-dir", "data"]).output().unwrap();
        assert!(!refused.status.success());
        let error = String::from_utf8(refused.stderr).unwrap();
        assert!(error.contains("state is redis") && error.lines().count() == 1, "{arguments:?}: {error}");
        assert!(!folder.path().join("all.tar").exists());
    }
}

#[test]
fn check_config_refuses_a_taxonomy_that_a_start_would_refuse() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("taxonomy.json");
    for text in [None, Some("[{]")] {
        if let Some(text) = text {
            fs::write(&file, text).unwrap();
        }
        let checked =
            command(folder.path()).arg("--check-config").env("LKR_TAXONOMY_PATH", &file).output().unwrap();
        assert!(checked.stdout.is_empty(), "{checked:?}");
        let started = command(folder.path()).env("LKR_TAXONOMY_PATH", &file).output().unwrap();
        assert_eq!(start_error(&checked), start_error(&started));
        assert!(start_error(&checked).contains("taxonomy.json"), "{checked:?}");
    }
}

#[test]
fn check_config_prints_the_effective_configuration_and_starts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let output = command(folder.path())
        .arg("--check-config")
        .env("LKR_ADMIN_PASSWORD", "hush hush hush")
        .env("LKR_UNHEARD_OF", "1")
        .output()
        .unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("listen = \"127.0.0.1:8080\"") && !text.contains("hush"), "{text}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("LKR_UNHEARD_OF"),
        "no warning names the unknown variable"
    );
    assert!(!folder.path().join("lkr-data").exists());
}

#[test]
fn lesson_23_first_admin_password_file_is_private_and_removed_after_the_change() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let file = folder.path().join("data/initial-admin-password");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let password = fs::read_to_string(&file).unwrap().trim().to_owned();
    let (status, login) = server.login(&password);
    assert_eq!((status, login["data"]["user"]["must_change_password"].as_bool()), (200, Some(true)));
    let token = format!("Bearer {}", login["data"]["access_token"].as_str().unwrap());
    let (status, refused) = server.call("POST", "/api/v1/documents", &token, Some(json!({ "text": "x" })));
    assert_eq!((status, refused["code"].as_u64()), (403, Some(1008)));
    let change = json!({ "current_password": password, "new_password": "my own password" });
    let (status, changed) = server.call("POST", "/api/v1/auth/password", &token, Some(change));
    assert_eq!(status, 200, "{changed}");
    assert!(!file.exists());
    let token = format!("Bearer {}", changed["data"]["access_token"].as_str().unwrap());
    assert_eq!(server.stop(), Some(0), "a signal stops the server cleanly");

    let server = Server::start(folder.path());
    let (status, me) = server.call("GET", "/api/v1/auth/me", &token, None);
    assert_eq!(
        (status, me["data"]["username"].as_str()),
        (200, Some("admin")),
        "a session survives a restart"
    );
    assert!(!file.exists(), "the first admin was created again");
}

#[test]
fn second_process_on_the_same_folder_or_port_fails_with_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let same_folder = command(folder.path())
        .args(["--listen", &format!("127.0.0.1:{}", free_port()), "--data-dir", "data"])
        .env("RUST_LOG", "error")
        .output()
        .unwrap();
    assert!(start_error(&same_folder).contains("in use by another process"));
    let same_port = command(folder.path())
        .args(["--listen", &format!("127.0.0.1:{}", server.port), "--data-dir", "other"])
        .output()
        .unwrap();
    assert!(start_error(&same_port).contains("cannot listen on"));
    assert_eq!(server.call("GET", "/readyz", "", None).0, 200, "the first process stopped serving");
}

/// A search whose body the server waits for.
fn request_in_flight(server: &Server) -> TcpStream {
    let mut open = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    open.set_read_timeout(Some(TIMEOUT)).unwrap();
    let head = "POST /api/v1/search HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
        expect: 100-continue\r\ncontent-length: 13\r\n\r\n";
    open.write_all(head.as_bytes()).unwrap();
    let mut response = [0; 25];
    open.read_exact(&mut response).unwrap();
    assert!(response.starts_with(b"HTTP/1.1 100"), "the server does not read the request");
    open
}

#[test]
fn second_signal_stops_the_server_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path());
    let _open = request_in_flight(&server);
    server.signal("INT");
    std::thread::sleep(Duration::from_millis(500));
    assert!(server.child.try_wait().unwrap().is_none(), "the server did not wait for the request in flight");
    server.signal("INT");
    let signalled = Instant::now();
    assert_eq!(server.child.wait().unwrap().code(), Some(1));
    assert!(signalled.elapsed() < Duration::from_secs(10), "{:?}", signalled.elapsed());
}

#[test]
fn lesson_35_stop_answers_the_request_in_flight_and_refuses_new_connections() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path());
    let mut open = request_in_flight(&server);
    server.signal("TERM");
    let signalled = Instant::now();
    while TcpStream::connect(("127.0.0.1", server.port)).is_ok() {
        assert!(signalled.elapsed() < TIMEOUT, "the server still accepts connections");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(server.child.try_wait().unwrap().is_none(), "the server did not wait for the request in flight");
    open.write_all(b"{\"query\":\"a\"}").unwrap();
    let mut answer = String::new();
    open.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn start_with_an_invalid_pdfium_library_fails_with_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("libpdfium.so");
    fs::write(&library, "not a library").unwrap();
    let mut command = command(folder.path());
    command.env("RUST_LOG", "off").env("LKR_PDFIUM_LIBRARY", &library);
    let output = command.args(["--listen", &format!("127.0.0.1:{}", free_port())]).output().unwrap();
    let error = start_error(&output);
    assert!(error.contains("pdfium_library") && error.contains("libpdfium.so"), "{error}");
}
