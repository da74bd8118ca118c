//! One HTTP/1.1 connection without the variable cost of a general client.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use anyhow::{Context, Result, ensure};

/// The timeout of a read.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The bytes that a response may have before memory is taken for more.
const USUAL_RESPONSE_BYTES: usize = 64 * 1024;

/// The largest response that is read, in bytes.
const MAX_RESPONSE_BYTES: usize = 64 << 20;

/// A connection that stays open between requests.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    host: String,
    buffer: Vec<u8>,
}

/// A response, in the buffer of its connection.
#[derive(Debug)]
pub(super) struct Response<'a> {
    pub(super) status: u16,
    head: &'a str,
    pub(super) body: &'a [u8],
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
        Ok(Self { stream, host, buffer: vec![0; USUAL_RESPONSE_BYTES] })
    }

    /// The bytes of a request; without a credential if `token` is empty.
    pub(super) fn encode(&self, method: &str, path: &str, token: &str, body: &str) -> Vec<u8> {
        let (host, length) = (&self.host, body.len());
        let credential = match token {
            "" => String::new(),
            token => format!("authorization: Bearer {token}\r\n"),
        };
        let content = match body {
            "" => String::new(),
            body => format!("content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"),
        };
        let end = if body.is_empty() { "\r\n" } else { "" };
        let head = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\n{credential}");
        format!("{head}{content}{end}").into_bytes()
    }

    /// Sends a request and reads its whole response.
    pub(super) fn send(&mut self, request: &[u8]) -> Result<Response<'_>> {
        self.stream.write_all(request).context("send a request")?;
        let mut filled = 0;
        let (status, head_bytes) = loop {
            if filled == self.buffer.len() {
                ensure!(filled < MAX_RESPONSE_BYTES, "a response is larger than {MAX_RESPONSE_BYTES} bytes");
                self.buffer.resize(2 * filled, 0);
            }
            let free = self.buffer.get_mut(filled..).unwrap_or_default();
            let read = self.stream.read(free).context("read a response")?;
            ensure!(read > 0, "the server closed the connection");
            filled += read;
            if let Some(complete) = complete(self.buffer.get(..filled).unwrap_or_default())? {
                break complete;
            }
        };
        let (head, body) = self.buffer.get(..filled).unwrap_or_default().split_at(head_bytes);
        Ok(Response { status, head: std::str::from_utf8(head).context("read a response")?, body })
    }
}

impl Response<'_> {
    /// The value of a header; `None` if the response has no such header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        header(self.head, name)
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let field = |line: &'a str| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    };
    head.lines().find_map(field)
}

/// The status of a complete response, and the bytes of its head; `None` if bytes are missing.
fn complete(response: &[u8]) -> Result<Option<(u16, usize)>> {
    let Some(end) = response.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { return Ok(None) };
    let (head, body) = response.split_at(end + 4);
    let head = std::str::from_utf8(head).context("read a response")?;
    let length = header(head, "content-length").and_then(|length| length.parse::<usize>().ok());
    let length = length.context("a response has no length")?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.context("a response has no status")?;
    Ok((body.len() >= length).then_some((status, end + 4)))
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, thread};

    use super::*;

    #[test]
    fn response_is_complete_with_its_last_byte() {
        let response = b"HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\nx: y\r\n\r\nabc";
        let read = |bytes: usize| complete(response.get(..bytes).unwrap()).unwrap();
        let all = Some((404, response.len() - 3));
        assert_eq!((read(30), read(response.len() - 1), read(response.len())), (None, None, all));
        assert!(complete(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }

    #[test]
    fn responses_of_any_size_are_read_one_after_another() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let sizes = [5 * USUAL_RESPONSE_BYTES, 0, 7];
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            for size in sizes {
                let mut request = [0; 1024];
                assert!(stream.read(&mut request).unwrap() > 0);
                let head = format!("HTTP/1.1 200 OK\r\nX-Size: {size}\r\ncontent-length: {size}\r\n\r\n");
                stream.write_all(head.as_bytes()).unwrap();
                stream.write_all(&vec![b'x'; size]).unwrap();
            }
        });
        let mut connection = Connection::open(&url).unwrap();
        let request = connection.encode("GET", "/", "", "");
        for size in sizes {
            let response = connection.send(&request).unwrap();
            let shown = (response.status, response.header("x-size"), response.body.len());
            assert_eq!(shown, (200, Some(size.to_string().as_str()), size));
        }
        server.join().unwrap();
    }
}
