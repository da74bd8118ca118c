//! The part of HTTP/1.1 that the provider needs.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
};

/// A request.
pub(crate) struct Request {
    /// The method and the path.
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// Reads the next request; `None` if the client closed the connection.
    pub(crate) fn read(stream: &TcpStream) -> Option<Self> {
        let mut reader = BufReader::new(stream);
        let mut next = || {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
            Some(line.trim_end().to_owned())
        };
        let line = next()?;
        let mut headers = Vec::new();
        while let Some(line) = next().filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':')?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut request = Self { line, headers, body: Vec::new() };
        let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        reader.take(length).read_to_end(&mut request.body).ok()?;
        Some(request)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A response.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<String>,
    /// The complete body, or the parts of a stream.
    pub(crate) body: Body,
    pub(crate) end: End,
}

pub(crate) enum Body {
    Whole(String),
    Parts(Vec<String>),
}

/// What happens after the body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Good,
    /// The connection stays open without further bytes.
    Hang,
    /// The connection is closed before the announced end of the body.
    Cut,
}

impl Answer {
    pub(crate) fn json(status: u16, body: &serde_json::Value) -> Self {
        let headers = vec!["Content-Type: application/json".to_owned()];
        Self { status, headers, body: Body::Whole(body.to_string()), end: End::Good }
    }

    /// Sends the response. A client that closes the connection is no error.
    pub(crate) fn send(&self, stream: &mut TcpStream) {
        let _ = self.write(stream);
        if self.end == End::Hang {
            wait_for_close(stream);
        }
    }

    fn write(&self, stream: &mut TcpStream) -> std::io::Result<()> {
        let mut head = format!("HTTP/1.1 {} Injected\r\nConnection: close\r\n", self.status);
        for line in &self.headers {
            head.push_str(&format!("{line}\r\n"));
        }
        match &self.body {
            Body::Whole(body) => {
                // A body that is cut off is announced as longer.
                let more = usize::from(self.end != End::Good);
                stream
                    .write_all(format!("{head}Content-Length: {}\r\n\r\n", body.len() + more).as_bytes())?;
                stream.write_all(body.as_bytes())
            }
            Body::Parts(parts) => {
                stream.write_all(format!("{head}Transfer-Encoding: chunked\r\n\r\n").as_bytes())?;
                for part in parts {
                    stream.write_all(format!("{:x}\r\n{part}\r\n", part.len()).as_bytes())?;
                    stream.flush()?;
                }
                if self.end == End::Good { stream.write_all(b"0\r\n\r\n") } else { Ok(()) }
            }
        }
    }
}

/// Waits until the client closes the connection.
pub(crate) fn wait_for_close(stream: &mut TcpStream) {
    while stream.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
}
