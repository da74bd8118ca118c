//! Passes messages on to a server, each by a request of its own.

use std::{
    io::{BufRead, Write, stdin, stdout},
    sync::{
        Mutex, PoisonError,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use anyhow::{Context, Result};
use lkr_mcp::json_rpc::{INTERNAL_ERROR, PARSE_ERROR, error_response};
use serde_json::Value;

use super::headers::Headers;
use crate::{error_line::error_line, http::Client};

/// The most requests in flight, so that a slow call delays no other.
const IN_FLIGHT: usize = 8;

/// Passes on each line of the input until it ends, and prints the answers.
pub(super) fn run(client: &Client) -> Result<()> {
    let headers = Headers::default();
    let (lines, waiting) = sync_channel::<String>(IN_FLIGHT);
    let waiting = Mutex::new(waiting);
    thread::scope(|scope| {
        for _ in 0..IN_FLIGHT {
            scope.spawn(|| pass_on_all(client, &headers, &waiting));
        }
        read(&lines).inspect(|()| drop(lines))
    })
}

fn read(lines: &SyncSender<String>) -> Result<()> {
    for line in stdin().lock().lines() {
        let line = line.context("read the input")?;
        if !line.trim().is_empty() {
            lines.send(line).context("pass on a message")?;
        }
    }
    Ok(())
}

fn pass_on_all(client: &Client, headers: &Headers, waiting: &Mutex<Receiver<String>>) {
    loop {
        // The lock is released before the message is sent.
        let line = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(line) = line else { return };
        if let Some(answer) = pass_on(client, headers, &line) {
            print(&answer);
        }
    }
}

/// The answer to a message; `None` for one that needs none.
fn pass_on(client: &Client, headers: &Headers, line: &str) -> Option<Value> {
    let message: Value = match serde_json::from_str(line) {
        Ok(message) => message,
        Err(error) => {
            let reason = format!("the message is not JSON: {error}");
            return Some(error_response(&Value::Null, PARSE_ERROR, &reason));
        }
    };
    let id = message.get("id").filter(|_| message.get("method").is_some());
    match client.pass_on("/mcp", &headers.of(&message), line) {
        Ok(Some(answer)) => {
            headers.note(&message, &answer);
            // A refusal by the server itself belongs to no request of the protocol; it answers this one.
            match (answer.get("id"), id) {
                (None | Some(Value::Null), Some(id)) => Some(with_id(answer, id)),
                _ => Some(answer),
            }
        }
        Ok(None) => None,
        Err(error) => id.map(|id| error_response(id, INTERNAL_ERROR, &error_line(&error))),
    }
}

fn with_id(mut answer: Value, id: &Value) -> Value {
    if let Some(answer) = answer.as_object_mut() {
        answer.insert("id".to_owned(), id.clone());
    }
    answer
}

/// Prints a message as one line. If the client is gone, there is nobody to tell.
fn print(message: &Value) {
    let mut out = stdout().lock();
    let _ = writeln!(out, "{message}").and_then(|()| out.flush());
}
