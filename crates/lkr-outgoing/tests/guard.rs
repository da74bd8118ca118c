//! The client against real servers on this machine.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::{
    collections::VecDeque,
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use lkr_outgoing::{
    Error, ErrorKind, Limits, Method, Outgoing, Policy, Request, Resolve, Response, Roots, header,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpListener,
    sync::Notify,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};

const LOOPBACK: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
const METADATA: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(169, 254, 169, 254));

const AUTHORITY: &[u8] = include_bytes!("tls/authority.pem");
const CERTIFICATE: &[u8] = include_bytes!("tls/models.example.pem");
const KEY: &[u8] = include_bytes!("tls/models.example.key");

/// A name server that returns the scripted answers in turn and records the names that it resolves.
#[derive(Debug, Default)]
struct ScriptedResolver {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    lookups: Mutex<Vec<String>>,
}

impl ScriptedResolver {
    fn with_answers<const N: usize>(answers: [&[IpAddr]; N]) -> Arc<Self> {
        let answers = answers.map(<[IpAddr]>::to_vec).into();
        Arc::new(Self { answers: Mutex::new(answers), lookups: Mutex::default() })
    }

    fn lookups(&self) -> Vec<String> {
        self.lookups.lock().unwrap().clone()
    }
}

#[async_trait]
impl Resolve for ScriptedResolver {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        self.lookups.lock().unwrap().push(name.to_owned());
        let next = self.answers.lock().unwrap().pop_front();
        next.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such name"))
    }
}

/// A server that sends the same response to every request, and records the heads of the requests.
#[derive(Debug, Clone)]
struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
    disconnected: Arc<Notify>,
}

impl Server {
    /// Sends the parts of the response one by one. Then closes the connection, or waits for the client to close it if
    /// the last part is empty or there is none.
    async fn responding(parts: &'static [&'static str]) -> Self {
        Self::start(parts, None).await
    }

    async fn start(parts: &'static [&'static str], tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind((LOOPBACK, 0)).await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            seen: Arc::default(),
            disconnected: Arc::default(),
        };
        let serving = server.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (serving, tls) = (serving.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serving.serve(stream, parts).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serving.serve(stream, parts).await;
                            }
                        }
                    }
                });
            }
        });
        server
    }

    async fn serve(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin, parts: &[&str]) {
        let mut text = Vec::new();
        while !text.windows(4).any(|end| end == b"\r\n\r\n") {
            if stream.read_buf(&mut text).await.unwrap_or(0) == 0 {
                return;
            }
        }
        self.seen.lock().unwrap().push(String::from_utf8_lossy(&text).into_owned());
        for part in parts {
            let _ = stream.write_all(part.as_bytes()).await;
            let _ = stream.flush().await;
            tokio::task::yield_now().await;
        }
        if parts.last().is_none_or(|last| last.is_empty()) {
            while stream.read(&mut [0; 64]).await.unwrap_or(0) > 0 {}
            self.disconnected.notify_one();
        }
        let _ = stream.shutdown().await;
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    fn url(&self, host: &str) -> String {
        format!("http://{host}:{}/v1/x?y=1#z", self.address.port())
    }
}

fn client(policy: Policy, names: &Arc<ScriptedResolver>) -> Outgoing {
    Outgoing::with(policy, Arc::clone(names) as Arc<dyn Resolve>, &Roots::Pem(AUTHORITY.to_vec())).unwrap()
}

fn kind<T: std::fmt::Debug>(response: Result<T, Error>) -> ErrorKind {
    response.unwrap_err().kind()
}

async fn body(response: Response) -> String {
    String::from_utf8(response.bytes().await.unwrap().to_vec()).unwrap()
}

fn get(address: &str) -> Request {
    Request::new(Method::GET, address)
}

const OK: &[&str] = &["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "hello"];

#[tokio::test]
async fn request_is_sent_with_its_headers_and_body() {
    let server = Server::responding(OK).await;
    let names = ScriptedResolver::with_answers([&[LOOPBACK]]);
    let outgoing = client(Policy::any(), &names);
    let mut request = Request { body: Bytes::from_static(b"{}"), ..get(&server.url("Models.Example.")) };
    request.method = Method::POST;
    request.headers.insert(header::HOST, "other.example".parse().unwrap());
    request.headers.insert("x-a", "b".parse().unwrap());
    let response = outgoing.send(request).await.unwrap();
    assert_eq!(response.status, 200);
    assert_eq!(body(response).await, "hello");
    let seen = server.seen().remove(0).to_lowercase();
    assert!(seen.starts_with("post /v1/x?y=1 http/1.1\r\n"), "{seen}");
    let host = format!("host: models.example:{}\r\n", server.address.port());
    for line in [&host, "x-a: b\r\n", "content-length: 2\r\n", "user-agent: lkr/"] {
        assert!(seen.contains(line), "{line} is not in {seen}");
    }
    assert!(!seen.contains("other.example") && !seen.contains("accept-encoding"), "{seen}");
    assert_eq!(names.lookups(), ["models.example"]);
}

#[tokio::test]
async fn lesson_26_redirects_are_not_followed() {
    let target = Server::responding(OK).await;
    let names = ScriptedResolver::with_answers([]);
    let outgoing = client(Policy::any(), &names);
    let to_metadata = "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest/meta-data\r\nContent-Length: 0\r\n\r\n";
    let to_target = format!(
        "HTTP/1.1 307 Temporary Redirect\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n",
        target.url("127.0.0.1")
    );
    for (text, status) in [(to_metadata.to_owned(), 302), (to_target, 307)] {
        let parts: &'static [&'static str] = Box::leak(Box::new([&*Box::leak(text.into_boxed_str())]));
        let server = Server::responding(parts).await;
        let response = outgoing.send(get(&server.url("127.0.0.1"))).await.unwrap();
        assert_eq!(response.status, status, "the redirect is returned as the response");
        assert_eq!(server.seen().len(), 1);
    }
    assert_eq!(target.seen(), Vec::<String>::new());
    assert_eq!(names.lookups(), Vec::<String>::new());
}

/// DNS rebinding: the name server returns an allowed address to the first lookup and a forbidden one to the next.
#[tokio::test]
async fn lesson_26_name_is_resolved_once() {
    let server = Server::responding(OK).await;
    let names = ScriptedResolver::with_answers([&[LOOPBACK], &[METADATA], &[LOOPBACK]]);
    let outgoing = client(Policy::any(), &names);
    let url = server.url("rebinding.example");
    assert_eq!(outgoing.send(get(&url)).await.unwrap().status, 200);
    assert_eq!(names.lookups().len(), 1, "the checked address is the one that is connected to");
    assert_eq!(kind(outgoing.send(get(&url)).await), ErrorKind::Refused);
    assert_eq!(outgoing.send(get(&url)).await.unwrap().status, 200);
    assert_eq!((names.lookups().len(), server.seen().len()), (3, 2), "each request resolves the name again");
}

#[tokio::test]
async fn lesson_26_names_that_resolve_to_forbidden_addresses_are_refused() {
    let listed = Policy::only(["a.example"]).unwrap();
    let wrapped: IpAddr = "64:ff9b::a9fe:a9fe".parse().unwrap();
    let link_local: IpAddr = "fe80::1".parse().unwrap();
    for policy in [Policy::any(), listed] {
        for address in [METADATA, wrapped, link_local, "0.0.0.0".parse().unwrap()] {
            let names = ScriptedResolver::with_answers([&[address]]);
            let error = client(policy.clone(), &names).send(get("http://a.example/")).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused, "{address}");
            assert!(error.reason().contains("never called"), "{error}");
        }
    }
    // If some of several addresses are allowed, one of these is called.
    let server = Server::responding(OK).await;
    let names = ScriptedResolver::with_answers([&[METADATA, link_local, LOOPBACK]]);
    let response = client(Policy::any(), &names).send(get(&server.url("a.example"))).await;
    assert_eq!(response.unwrap().status, 200);
}

#[tokio::test]
async fn lesson_26_unlisted_hosts_are_not_resolved() {
    let server = Server::responding(OK).await;
    let names = ScriptedResolver::with_answers([&[LOOPBACK]]);
    let outgoing = client(Policy::only(["listed.example"]).unwrap(), &names);
    for host in ["127.0.0.1", "localhost", "other.example", "[::1]"] {
        assert_eq!(kind(outgoing.send(get(&server.url(host))).await), ErrorKind::Refused, "{host}");
    }
    assert_eq!((names.lookups().len(), server.seen().len()), (0, 0));
    assert_eq!(outgoing.send(get(&server.url("listed.example"))).await.unwrap().status, 200);
}

#[tokio::test]
async fn response_is_read_in_parts_up_to_its_limit() {
    let stream = &[
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
        "4\r\none\n\r\n",
        "4\r\ntwo\n\r\n",
        "",
    ];
    let server = Server::responding(stream).await;
    let outgoing = client(Policy::any(), &ScriptedResolver::with_answers([]));
    let mut response = outgoing.send(get(&server.url("127.0.0.1"))).await.unwrap();
    let mut received = String::new();
    while received.len() < 8 {
        received.push_str(std::str::from_utf8(&response.chunk().await.unwrap().unwrap()).unwrap());
    }
    assert_eq!(received, "one\ntwo\n", "the parts are readable before the response ends");
    drop(response);
    server.disconnected.notified().await;

    let limits = Limits { body: 4, ..Limits::default() };
    let server = Server::responding(OK).await;
    let response = outgoing.send(Request { limits, ..get(&server.url("127.0.0.1")) }).await.unwrap();
    assert_eq!(kind(response.bytes().await), ErrorKind::TooLarge);
}

#[tokio::test]
async fn time_limits_end_the_request() {
    let limits = Limits { total: Duration::from_millis(200), ..Limits::default() };
    let outgoing = client(Policy::any(), &ScriptedResolver::with_answers([]));
    // One server sends nothing, another stops in the middle of the body.
    let silent = Server::responding(&[]).await;
    let response = outgoing.send(Request { limits, ..get(&silent.url("127.0.0.1")) }).await;
    assert_eq!(kind(response), ErrorKind::TimedOut);
    silent.disconnected.notified().await;
    let partial = Server::responding(&["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", ""]).await;
    let response = outgoing.send(Request { limits, ..get(&partial.url("127.0.0.1")) }).await.unwrap();
    assert_eq!(kind(response.bytes().await), ErrorKind::TimedOut);
    partial.disconnected.notified().await;
    // The time limit between two parts.
    let limits = Limits { idle: Duration::from_millis(200), ..Limits::default() };
    let stalled = Server::responding(&["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", ""]).await;
    let mut response = outgoing.send(Request { limits, ..get(&stalled.url("127.0.0.1")) }).await.unwrap();
    assert_eq!(response.chunk().await.unwrap().unwrap(), "hel");
    assert_eq!(kind(response.chunk().await), ErrorKind::TimedOut);
    drop(response);
    stalled.disconnected.notified().await;
}

#[tokio::test]
async fn invalid_responses_are_broken() {
    let outgoing = client(Policy::any(), &ScriptedResolver::with_answers([]));
    for parts in [&["SSH-2.0-server\r\n"] as &'static [&'static str], &["HTTP/1.1 200 OK\r\n"]] {
        let server = Server::responding(parts).await;
        assert_eq!(kind(outgoing.send(get(&server.url("127.0.0.1"))).await), ErrorKind::Broken, "{parts:?}");
    }
    let truncated = Server::responding(&["HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhel"]).await;
    let response = outgoing.send(get(&truncated.url("127.0.0.1"))).await.unwrap();
    assert_eq!(kind(response.bytes().await), ErrorKind::Broken);
    let closed = TcpListener::bind((LOOPBACK, 0)).await.unwrap().local_addr().unwrap();
    assert_eq!(kind(outgoing.send(get(&format!("http://{closed}/"))).await), ErrorKind::Unreachable);
    assert_eq!(kind(outgoing.send(get("http://unknown.example/")).await), ErrorKind::Unreachable);
}

#[tokio::test]
async fn untrusted_certificates_are_refused() {
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            CertificateDer::pem_slice_iter(CERTIFICATE).map(Result::unwrap).collect(),
            PrivateKeyDer::from_pem_slice(KEY).unwrap(),
        )
        .unwrap();
    let server = Server::start(OK, Some(TlsAcceptor::from(Arc::new(config)))).await;
    let url = |host: &str| server.url(host).replacen("http:", "https:", 1);
    let names = ScriptedResolver::with_answers([&[LOOPBACK], &[LOOPBACK], &[LOOPBACK]]);
    let trusting = client(Policy::any(), &names);
    let response = trusting.send(get(&url("models.example"))).await.unwrap();
    assert_eq!(body(response).await, "hello");
    assert_eq!(
        kind(trusting.send(get(&url("other.example"))).await),
        ErrorKind::Unreachable,
        "the certificate is for another name"
    );
    let names: Arc<dyn Resolve> = names;
    let system_roots = Outgoing::with(Policy::any(), names, &Roots::System).unwrap();
    let response = system_roots.send(get(&url("models.example"))).await;
    assert_eq!(kind(response), ErrorKind::Unreachable, "the certificate authority is unknown");
    assert_eq!(server.seen().len(), 1);
}
