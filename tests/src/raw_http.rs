use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use crate::Response;

/// Sends raw bytes to a local port and reads the response until the server closes the connection, or until 30 seconds
/// pass without data.
///
/// # Panics
/// If the response is not HTTP.
#[must_use]
pub fn send_raw(port: u16, request: &[u8]) -> Response {
    send_raw_in_parts(port, request, || &[])
}

/// Like [`send_raw`], with a request in two parts; `second` is called after the first was sent.
///
/// # Panics
/// If the response is not HTTP.
#[must_use]
pub fn send_raw_in_parts<'a>(port: u16, first: &[u8], second: impl FnOnce() -> &'a [u8]) -> Response {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("connect");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("set timeout");
    // The server may respond before it has read the whole request.
    let _ = stream.write_all(first);
    let _ = stream.write_all(second());
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    parse(&bytes).unwrap_or_else(|| panic!("not HTTP: {:?}", String::from_utf8_lossy(&bytes)))
}

/// Sends a request over a reusable connection and reads the response; `None` if the server closes the connection before
/// the response is complete, or if 30 seconds pass without data.
pub fn send_raw_on(stream: &mut TcpStream, request: &[u8]) -> Option<Response> {
    stream.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
    stream.write_all(request).ok()?;
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut part).ok().filter(|&read| read > 0)?;
        bytes.extend_from_slice(part.get(..read)?);
        let response = parse(&bytes);
        let is_complete = |response: &Response| {
            let length = response.header("content-length").and_then(|length| length.parse().ok());
            length.is_some_and(|length: usize| response.body.len() >= length)
        };
        if let Some(response) = response.filter(is_complete) {
            return Some(response);
        }
    }
}

fn parse(bytes: &[u8]) -> Option<Response> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let (head, body) = bytes.split_at_checked(end)?;
    let mut lines = std::str::from_utf8(head).ok()?.lines();
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let header =
        |line: &str| line.split_once(": ").map(|(key, value)| (key.to_lowercase(), value.to_owned()));
    Some(Response::new(status, lines.filter_map(header).collect(), body.get(4..)?.to_vec()))
}
