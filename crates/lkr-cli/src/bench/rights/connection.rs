//! One HTTP/1.1 connection without the variable cost of a general client.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};

/// The timeout of a read.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The largest response. Those that are measured are short.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// A connection that stays open between requests.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    host: String,
    buffer: Vec<u8>,
}

impl Connection {
    /// Connects to the server at `url`, such as `http://127.0.0.1:8080`.
    pub(super) fn open(url: &str) -> Result<Self> {
        let host = url.strip_prefix("http://").context("only http:// addresses can be measured")?;
        let host = host.trim_end_matches('/').to_owned();
        let address = if host.contains(':') { host.clone() } else { format!("{host}:80") };
        let stream = TcpStream::connect(&address).with_context(|| format!("connect to {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self { stream, host, buffer: vec![0; MAX_RESPONSE_BYTES] })
    }

    /// The bytes of a request.
    pub(super) fn encode(&self, method: &str, path: &str, token: &str, body: &str) -> Vec<u8> {
        let (host, length) = (&self.host, body.len());
        let content = match body {
            "" => String::new(),
            body => format!("content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"),
        };
        let end = if body.is_empty() { "\r\n" } else { "" };
        let head = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n");
        format!("{head}{content}{end}").into_bytes()
    }

    /// Sends a request, reads its whole response, and returns the status.
    pub(super) fn send(&mut self, request: &[u8]) -> Result<u16> {
        self.stream.write_all(request).context("send a request")?;
        let mut filled = 0;
        loop {
            let free = self.buffer.get_mut(filled..).unwrap_or_default();
            let read = self.stream.read(free).context("read a response")?;
            ensure!(read > 0, "the server closed the connection");
            filled += read;
            if let Some(status) = complete(self.buffer.get(..filled).unwrap_or_default())? {
                return Ok(status);
            }
        }
    }
}

/// The status of a complete response; `None` if bytes are missing.
fn complete(response: &[u8]) -> Result<Option<u16>> {
    let Some(end) = response.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { return Ok(None) };
    let (head, body) = response.split_at(end + 4);
    let head = std::str::from_utf8(head).context("read a response")?;
    let field = |line: &str| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    };
    let Some(length) = head.lines().find_map(field) else { bail!("a response has no length") };
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.context("a response has no status")?;
    Ok((body.len() >= length).then_some(status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_is_complete_with_its_last_byte() {
        let response = b"HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\nx: y\r\n\r\nabc";
        let read = |bytes: usize| complete(response.get(..bytes).unwrap()).unwrap();
        assert_eq!((read(30), read(response.len() - 1), read(response.len())), (None, None, Some(404)));
        assert!(complete(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
