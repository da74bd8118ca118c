use std::{
    future::pending,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split},
    net::{TcpSocket, TcpStream},
    time::sleep,
};
use tokio_rustls::TlsAcceptor;

/// What a proxy does to the connections through it. The default is nothing.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// Connections are cut after this many bytes of a response, as long as there are cuts left.
    pub(crate) cut_after: usize,
    pub(crate) cuts: AtomicUsize,
    /// A cut connection stays open, and nothing more comes.
    pub(crate) hang: bool,
    /// Bytes of requests and what they are replaced by, of the same length.
    pub(crate) replace: Option<(&'static str, &'static str)>,
    /// The pause after each part of a request that a socket gives, some 100 kB.
    pub(crate) slow: Option<Duration>,
}

/// A proxy before an S3 server. It ends with the async runtime of the test.
pub(crate) struct Proxy {
    address: SocketAddr,
    pub(crate) faults: Arc<Faults>,
}

const READ_BYTES: usize = 256 * 1024;

impl Proxy {
    pub(crate) fn start(server: u16, faults: Faults) -> Self {
        Self::start_with(server, faults, None)
    }

    pub(crate) fn start_with(server: u16, faults: Faults, tls: Option<TlsAcceptor>) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        // What the proxy has not read yet waits at the client rather than here.
        socket.set_recv_buffer_size(64 * 1024).unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let (listener, faults) = (socket.listen(64).unwrap(), Arc::new(faults));
        let proxy = Self { address: listener.local_addr().unwrap(), faults: Arc::clone(&faults) };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (tls, faults) = (tls.clone(), Arc::clone(&faults));
                tokio::spawn(async move {
                    match tls {
                        None => relay(client, server, &faults).await,
                        Some(tls) => {
                            if let Ok(client) = tls.accept(client).await {
                                relay(client, server, &faults).await;
                            }
                        }
                    }
                });
            }
        });
        proxy
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn https_url(&self) -> String {
        format!("https://{}", self.address)
    }
}

/// Relays one connection until one of its ends closes it, or it is cut.
async fn relay(client: impl AsyncRead + AsyncWrite + Send, server: u16, faults: &Faults) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await else { return };
    let (mut from_client, mut to_client) = split(client);
    let (mut from_server, mut to_server) = server.into_split();
    let requests = async {
        let mut buffer = vec![0; READ_BYTES];
        while let Ok(read @ 1..) = from_client.read(&mut buffer).await {
            if let Some((old, new)) = faults.replace {
                replace(&mut buffer[..read], old.as_bytes(), new.as_bytes());
            }
            if to_server.write_all(&buffer[..read]).await.is_err() {
                break;
            }
            if let Some(pause) = faults.slow {
                sleep(pause).await;
            }
        }
    };
    let responses = async {
        let (mut buffer, mut total) = (vec![0; READ_BYTES], 0);
        while let Ok(read @ 1..) = from_server.read(&mut buffer).await {
            total += read;
            let cut = faults.cut_after > 0
                && total > faults.cut_after
                && faults.cuts.fetch_update(SeqCst, SeqCst, |cuts| cuts.checked_sub(1)).is_ok();
            let sent = if cut { read.saturating_sub(total - faults.cut_after) } else { read };
            if to_client.write_all(&buffer[..sent]).await.is_err() {
                break;
            }
            if cut && faults.hang {
                pending::<()>().await;
            } else if cut {
                break;
            }
        }
        let _ = to_client.shutdown().await;
    };
    // The server closes each connection after its response.
    tokio::select! { () = responses => (), () = async { requests.await; pending().await } => () }
}

fn replace(bytes: &mut [u8], old: &[u8], new: &[u8]) {
    assert_eq!(old.len(), new.len());
    if let Some(at) = bytes.windows(old.len()).position(|window| window == old) {
        bytes[at..at + new.len()].copy_from_slice(new);
    }
}
