//! An HTTP server that receives webhook deliveries.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use lkr_domain::hex;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::server::TIMEOUT;

/// A server that records all requests.
#[derive(Debug, Clone)]
pub struct WebhookReceiver {
    port: u16,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    response: String,
    deliveries: Vec<Delivery>,
}

/// A recorded delivery.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The request line.
    pub request: String,
    /// The body.
    pub body: String,
    /// The body, byte by byte.
    pub bytes: Vec<u8>,
    headers: Vec<(String, String)>,
}

impl WebhookReceiver {
    /// Starts a receiver that responds with 200.
    ///
    /// # Panics
    /// If it cannot listen.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let receiver = Self { port, shared: Arc::default() };
        receiver.set_response("200 OK");
        let serving = receiver.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = serving.clone();
                thread::spawn(move || serving.serve(stream));
            }
        });
        receiver
    }

    /// Sets the response: a status line, optionally with headers. An empty string makes requests hang.
    pub fn set_response(&self, response: &str) {
        self.shared().response = response.to_owned();
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook", self.port)
    }

    /// All deliveries so far.
    #[must_use]
    pub fn deliveries(&self) -> Vec<Delivery> {
        self.shared().deliveries.clone()
    }

    /// Waits for a delivery.
    ///
    /// # Panics
    /// If that takes more than two minutes.
    #[must_use]
    pub fn wait_for(&self, matches: impl Fn(&Delivery) -> bool) -> Delivery {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(delivery) = self.deliveries().into_iter().find(&matches) {
                return delivery;
            }
            assert!(Instant::now() < deadline, "no matching delivery among {:?}", self.deliveries());
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn serve(&self, mut stream: TcpStream) {
        let Some(delivery) = read(&mut stream) else { return };
        let response = {
            let mut shared = self.shared();
            shared.deliveries.push(delivery);
            shared.response.clone()
        };
        if response.is_empty() {
            let _ = stream.read(&mut [0; 64]);
            return;
        }
        let _ = write!(stream, "HTTP/1.1 {response}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Delivery {
    /// A header by its name in lower case; empty if absent.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// If it is not JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("a body of JSON")
    }

    /// Whether it has a valid signature with this secret, made in the last ten minutes.
    #[must_use]
    pub fn is_signed_with(&self, secret: &str) -> bool {
        let parts =
            self.header("x-lkr-signature").strip_prefix("t=").and_then(|rest| rest.split_once(",v1="));
        let Some((time, digest)) = parts else { return false };
        let now = std::time::UNIX_EPOCH.elapsed().expect("a clock after 1970").as_secs();
        let age = time.parse::<u64>().map(|time| now.saturating_sub(time));
        let message = format!("{time}.{}", self.body);
        age.is_ok_and(|age| age < 600) && hmac(secret.as_bytes(), message.as_bytes()) == digest
    }
}

/// HMAC-SHA256 by RFC 2104, written with the hash alone as an independent check of the server's implementation.
fn hmac(secret: &[u8], message: &[u8]) -> String {
    let mut key = [0_u8; 64];
    let hashed = Sha256::digest(secret);
    let short: &[u8] = if secret.len() > key.len() { &hashed } else { secret };
    key[..short.len()].copy_from_slice(short);
    let padded = |pad: u8| key.map(|byte| byte ^ pad);
    let inner = Sha256::digest([padded(0x36).as_slice(), message].concat());
    hex(&Sha256::digest([padded(0x5c).as_slice(), &inner].concat()))
}

fn read(stream: &mut TcpStream) -> Option<Delivery> {
    let mut bytes = Vec::new();
    loop {
        let mut part = [0; 4096];
        let count = stream.read(&mut part).ok().filter(|&count| count > 0)?;
        bytes.extend_from_slice(&part[..count]);
        let Some(end) = bytes.windows(4).position(|end| end == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let (request, rest) = head.split_once("\r\n")?;
        let header = |line: &str| line.split_once(": ").map(|(k, v)| (k.to_ascii_lowercase(), v.to_owned()));
        let headers: Vec<_> = rest.lines().filter_map(header).collect();
        let length = headers.iter().find(|(key, _)| key == "content-length").map_or("0", |(_, value)| value);
        let body = &bytes[end + 4..];
        if body.len() >= length.parse().ok()? {
            let (body, bytes) = (String::from_utf8_lossy(body).into_owned(), body.to_vec());
            return Some(Delivery { request: request.to_owned(), body, bytes, headers });
        }
    }
}
