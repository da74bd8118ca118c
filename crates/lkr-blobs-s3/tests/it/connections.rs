use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

use lkr_blobs_s3::{ErrorKind, S3Config, check, open};
use object_store::{Error, ObjectStoreExt, PutMode, PutOptions, path::Path};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};

use crate::{
    proxy::{Faults, Proxy},
    support::{config, server, store},
};

/// A server that answers each request with 204 and keeps connections open, or closes the first ones unanswered.
struct Scripted {
    url: String,
    connections: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
}

impl Scripted {
    async fn start(unanswered: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let scripted = Self { url, connections: Arc::default(), requests: Arc::default() };
        let (connections, requests) = (Arc::clone(&scripted.connections), Arc::clone(&scripted.requests));
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                connections.fetch_add(1, SeqCst);
                let requests = Arc::clone(&requests);
                tokio::spawn(async move {
                    while read_head(&mut client).await {
                        if requests.fetch_add(1, SeqCst) < unanswered {
                            break;
                        }
                        client.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
                    }
                });
            }
        });
        scripted
    }
}

/// Reads the head of a request without a body; whether there was one.
async fn read_head(client: &mut TcpStream) -> bool {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match client.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return false,
        }
    }
    true
}

#[tokio::test]
async fn connection_is_used_for_many_requests() {
    let server = Scripted::start(0).await;
    let store = store(&server.url, "s3://lkr");
    for _ in 0..5 {
        store.delete(&Path::from("a")).await.unwrap();
    }
    assert_eq!((server.connections.load(SeqCst), server.requests.load(SeqCst)), (1, 5));
}

#[tokio::test]
async fn lost_delete_is_repeated() {
    let server = Scripted::start(1).await;
    store(&server.url, "s3://lkr").delete(&Path::from("a")).await.unwrap();
    assert_eq!(server.requests.load(SeqCst), 2);
}

/// The lost request may have created the object, and a second one would be refused because of it.
#[tokio::test]
async fn lost_conditional_put_is_not_repeated() {
    let server = Scripted::start(1).await;
    let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
    let created = store(&server.url, "s3://lkr").put_opts(&Path::from("a"), "".into(), options).await;
    assert!(matches!(created, Err(Error::Generic { .. })), "{created:?}");
    assert_eq!(server.requests.load(SeqCst), 1);
}

#[tokio::test]
async fn server_is_trusted_by_the_certificates_of_the_file_alone() {
    let Some(server) = server() else { return };
    server.create_bucket("encrypted");
    let proxy = Proxy::start_with(server.port(), Faults::default(), Some(acceptor()));
    let untrusting = config(&proxy.https_url(), "s3://encrypted");
    let ca_file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/tls/authority.pem");
    let trusting = S3Config { ca_file: Some(ca_file.into()), ..untrusting.clone() };
    check(&open(&trusting).unwrap(), &trusting.location).await.unwrap();
    let untrusting = S3Config { retry_budget: std::time::Duration::ZERO, ..untrusting };
    let error = check(&open(&untrusting).unwrap(), &untrusting.location).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("certificate"), "{error}");
}

fn acceptor() -> TlsAcceptor {
    let certificate = CertificateDer::from_pem_slice(include_bytes!("tls/server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("tls/server.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}
