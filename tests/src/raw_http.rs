use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use crate::Response;

/// Sends bytes as they are to a port of this machine and reads the answer until the server ends the connection, or
/// nothing comes for half a minute.
///
/// # Panics
/// Where the server does not answer in HTTP.
#[must_use]
pub fn send_raw(port: u16, request: &[u8]) -> Response {
    send_raw_in_parts(port, request, || &[])
}

/// The same with a request that comes in two parts; the second is asked for once the first was sent.
///
/// # Panics
/// Where the server does not answer in HTTP.
#[must_use]
pub fn send_raw_in_parts<'a>(port: u16, first: &[u8], second: impl FnOnce() -> &'a [u8]) -> Response {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("connect");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("set timeout");
    // A refusal may come before the whole request was taken.
    let _ = stream.write_all(first);
    let _ = stream.write_all(second());
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    parse(&bytes).unwrap_or_else(|| panic!("not HTTP: {:?}", String::from_utf8_lossy(&bytes)))
}

/// Sends a request over a connection that may be used again, and reads its answer; `None` where the server ends the
/// connection before the answer is whole, or nothing comes for half a minute.
pub fn send_raw_on(stream: &mut TcpStream, request: &[u8]) -> Option<Response> {
    stream.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
    stream.write_all(request).ok()?;
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut part).ok().filter(|&read| read > 0)?;
        bytes.extend_from_slice(part.get(..read)?);
        let response = parse(&bytes);
        let whole = |response: &Response| {
            let length = response.header("content-length").and_then(|length| length.parse().ok());
            length.is_some_and(|length: usize| response.body.len() >= length)
        };
        if let Some(response) = response.filter(whole) {
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
