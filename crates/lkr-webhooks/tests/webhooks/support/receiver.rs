use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};

use super::TIMEOUT;

pub(crate) const OK: &str = "HTTP/1.1 204 No Content\r\n\r\n";
pub(crate) const SERVER_ERROR: &str = "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n";

/// A request that a receiver got.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedDelivery {
    /// The request line and the headers, in lower case.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl ReceivedDelivery {
    pub(crate) fn header(&self, name: &str) -> &str {
        let line = self.head.lines().find_map(|line| line.split_once(": ").filter(|(key, _)| *key == name));
        line.unwrap_or_else(|| panic!("no {name} in {}", self.head)).1
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(crate) fn doc_id(&self) -> String {
        self.json()["data"]["doc_id"].as_str().unwrap().to_owned()
    }
}

/// A server that receives deliveries. `respond` is called with the number of earlier deliveries and returns the
/// response; if that is empty, the server never responds.
#[derive(Debug, Clone)]
pub(crate) struct Receiver {
    pub(crate) url: String,
    received: Arc<Mutex<Vec<ReceivedDelivery>>>,
    arrived: Arc<Semaphore>,
}

impl Receiver {
    pub(crate) async fn start(respond: impl Fn(usize) -> &'static str + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let receiver = Self { url, received: Arc::default(), arrived: Arc::new(Semaphore::new(0)) };
        let (server, respond) = (receiver.clone(), Arc::new(respond));
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let (server, respond) = (server.clone(), Arc::clone(&respond));
                tokio::spawn(async move {
                    let Some(delivery) = read(&mut stream).await else { return };
                    let response = {
                        let mut received = server.received.lock().unwrap();
                        received.push(delivery);
                        respond(received.len() - 1)
                    };
                    server.arrived.add_permits(1);
                    let _ = stream.write_all(response.as_bytes()).await;
                    if response.is_empty() {
                        while stream.read(&mut [0; 64]).await.unwrap_or(0) > 0 {}
                    }
                });
            }
        });
        receiver
    }

    /// Waits for `count` more deliveries, and returns all that arrived so far.
    pub(crate) async fn wait(&self, count: u32) -> Vec<ReceivedDelivery> {
        let arrived = tokio::time::timeout(TIMEOUT, self.arrived.acquire_many(count)).await;
        arrived.expect("the deliveries arrive in time").unwrap().forget();
        self.received()
    }

    pub(crate) fn received(&self) -> Vec<ReceivedDelivery> {
        self.received.lock().unwrap().clone()
    }
}

async fn read(stream: &mut TcpStream) -> Option<ReceivedDelivery> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_lowercase();
        let length = head.split_once("content-length: ")?.1.lines().next()?.parse::<usize>().ok()?;
        if body.len() >= length {
            return Some(ReceivedDelivery { head, body: body.to_owned() });
        }
    }
}
