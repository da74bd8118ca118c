//! Passes messages on to a server, each by a request of its own.

use std::{
    io::{BufRead, Write, stdin, stdout},
    str,
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
    let (lines, waiting) = sync_channel::<Vec<u8>>(IN_FLIGHT);
    let waiting = Mutex::new(waiting);
    thread::scope(|scope| {
        for _ in 0..IN_FLIGHT {
            scope.spawn(|| pass_on_all(client, &headers, &waiting));
        }
        read(stdin().lock(), &lines).inspect(|()| drop(lines))
    })
}

/// Sends each line of the input on. A line may be anything; what is no text is answered like other malformed messages.
fn read(mut input: impl BufRead, lines: &SyncSender<Vec<u8>>) -> Result<()> {
    loop {
        let mut line = Vec::new();
        if input.read_until(b'\n', &mut line).context("read the input")? == 0 {
            return Ok(());
        }
        if !line.trim_ascii().is_empty() {
            lines.send(line).context("pass on a message")?;
        }
    }
}

fn pass_on_all(client: &Client, headers: &Headers, waiting: &Mutex<Receiver<Vec<u8>>>) {
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
fn pass_on(client: &Client, headers: &Headers, line: &[u8]) -> Option<Value> {
    let (line, message) = match parse(line) {
        Ok(parsed) => parsed,
        Err(refusal) => return Some(refusal),
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

/// The message as text and as JSON, or the answer to a line that is neither.
fn parse(line: &[u8]) -> Result<(&str, Value), Value> {
    let refusal = |reason: String| error_response(&Value::Null, PARSE_ERROR, &reason);
    let text = str::from_utf8(line).map_err(|error| refusal(format!("the message is not UTF-8: {error}")))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim_end();
    let message =
        serde_json::from_str(text).map_err(|error| refusal(format!("the message is not JSON: {error}")))?;
    Ok((text, message))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_that_are_no_text_are_read_like_others() {
        let (lines, waiting) = sync_channel(4);
        read(&b"{}\r\n\xFF\n \n\n1"[..], &lines).unwrap();
        drop(lines);
        assert_eq!(waiting.iter().collect::<Vec<_>>(), [&b"{}\r\n"[..], b"\xFF\n", b"1"]);
    }

    #[test]
    fn line_that_is_no_json_is_answered_with_a_parse_error() {
        for line in [&b"garbage\n"[..], b"\xFF\n", b"{\"id\":1,\"method\":\"\xFF\"}\n"] {
            let answer = parse(line).unwrap_err();
            assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(PARSE_ERROR)));
        }
        assert_eq!(parse(b"{\"id\":1}\r\n"), Ok(("{\"id\":1}", json!({ "id": 1 }))));
    }
}
