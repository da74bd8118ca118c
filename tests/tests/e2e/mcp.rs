//! `lkr mcp` as a program of agents starts it: a process that answers lines, on a folder and on a server.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use lkr_tests::{CommandLine, Server};
use serde_json::{Value, json};

/// A session with the process.
struct Session {
    process: Child,
    input: ChildStdin,
    lines: mpsc::Receiver<String>,
}

impl Session {
    fn start(lkr: &CommandLine, arguments: &[&str]) -> Self {
        let mut process = lkr.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let mut session = Self { process, input, lines };
        let client = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let answer = session.ask("initialize", &client);
        assert!(answer["result"]["capabilities"]["tools"].is_object(), "{answer}");
        session.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
        session
    }

    fn send(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    /// The next line of the output, of which each is a message.
    fn receive(&mut self) -> Value {
        let line = self.lines.recv_timeout(Duration::from_secs(60)).unwrap();
        let message = serde_json::from_str(&line);
        assert!(message.is_ok(), "{line}");
        message.unwrap()
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params }).to_string());
        let answer = self.receive();
        assert_eq!(answer["id"], method, "{answer}");
        answer
    }

    /// What a tool answers.
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }));
        assert_ne!(answer["result"]["isError"], true, "{answer}");
        serde_json::from_str(answer["result"]["content"][0]["text"].as_str().unwrap()).unwrap()
    }

    fn tools(&mut self) -> Vec<Value> {
        let answer = self.ask("tools/list", &json!({}));
        answer["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect()
    }

    /// Ends the input, and asserts that the process ends without a further line.
    fn end(self) {
        let Self { mut process, input, lines } = self;
        drop(input);
        assert_eq!(lines.iter().collect::<Vec<_>>(), [""; 0]);
        assert!(process.wait().unwrap().success());
    }
}

/// What an agent does, whichever way the process was started.
fn use_tools(session: &mut Session) {
    assert_eq!(session.tools(), ["search", "fetch", "context", "list", "add"]);
    let text = "The moon pulls the sea twice a day.";
    let added = session.call("add", &json!({ "text": text, "title": "Tides" }));
    assert_eq!(added["status"], "done", "{added}");
    let found = session.call("search", &json!({ "query": "moon and sea" }));
    assert_eq!(found["results"][0]["id"], added["id"], "{found}");

    session.send("{\"jsonrpc\": \"2.0\", \"id\": 7, ");
    let malformed = session.receive();
    assert_eq!(malformed["error"]["code"], -32700, "{malformed}");
    let refused = session.ask("tools/call", &json!({ "name": "search", "arguments": { "query": "" } }));
    assert!(refused["result"]["isError"] == true || refused["error"].is_object(), "{refused}");
    let listed = session.call("list", &json!({}));
    assert_eq!(listed["documents"][0]["title"], "Tides", "{listed}");
}

#[test]
fn agent_uses_a_folder() {
    let lkr = CommandLine::alone();
    let mut session = Session::start(&lkr, &["mcp", "--data-dir", "kept"]);
    use_tools(&mut session);
    session.end();

    let mut session = Session::start(&lkr, &["mcp", "--data-dir", "kept", "--read-only"]);
    assert_eq!(session.tools(), ["search", "fetch", "context", "list"]);
    assert_eq!(session.call("list", &json!({}))["documents"][0]["title"], "Tides");
    session.end();
}

#[test]
fn agent_uses_a_server() {
    let server = Server::start();
    let mut session = Session::start(&CommandLine::on(&server), &["mcp"]);
    use_tools(&mut session);
    session.end();
    assert_eq!(server.list_all("/documents").len(), 1);
}
